# SPDX-License-Identifier: MIT OR Apache-2.0
"""A disk with a write cache that loses what was not flushed when its power is cut.

It speaks the NBD protocol (the old handshake, which QEMU knows) on a Unix socket, with one guest at a time. What is
written stays in memory until the guest says flush, and goes to the image then. At a cut each sector that is still in
the cache gets to the image or not, by chance: a real cache has written back some, in any order.
"""

import random
import socket
import struct
import threading
from pathlib import Path

SECTOR = 512
HELLO = struct.Struct(">8sQQI124x")
REQUEST = struct.Struct(">IHHQQI")
REPLY = struct.Struct(">IIQ")
READ, WRITE, DISCONNECT, FLUSH = range(4)
HAS_FLAGS, SEND_FLUSH = 1, 4
INVALID = 22


class Cache:
    """The image, and the sectors that are not in it yet."""

    def __init__(self, image: Path):
        self.file = open(image, "r+b")
        self.size = image.stat().st_size
        self.sectors: dict[int, bytes] = {}
        self.is_cut = False

    def read(self, offset: int, length: int) -> bytes:
        self.file.seek(offset)
        data = bytearray(self.file.read(length))
        for start in range(0, length, SECTOR):
            if cached := self.sectors.get((offset + start) // SECTOR):
                data[start:start + SECTOR] = cached
        return bytes(data)

    def write(self, offset: int, data: bytes) -> None:
        for start in range(0, len(data), SECTOR):
            self.sectors[(offset + start) // SECTOR] = data[start:start + SECTOR]

    def flush(self) -> None:
        for number, data in self.sectors.items():
            self.file.seek(number * SECTOR)
            self.file.write(data)
        self.file.flush()
        self.sectors.clear()

    def cut(self, chance: random.Random, survive: float = 0.5) -> int:
        """The end of the power: answers how many sectors are lost. Nothing is taken from the guest after it."""
        self.is_cut = True
        kept = {number: data for number, data in self.sectors.items() if chance.random() < survive}
        lost = len(self.sectors) - len(kept)
        self.sectors = kept
        self.flush()
        self.file.close()
        return lost


class Disk:
    """A cache that a guest can be connected to; a context, which ends when nobody is connected any more."""

    def __init__(self, image: Path, path: Path):
        self.cache = Cache(image)
        self.lock = threading.Lock()
        self.path = path
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(1)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def __enter__(self) -> "Disk":
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.close()
        self.path.unlink(missing_ok=True)

    def cut(self, chance: random.Random) -> int:
        with self.lock:
            return self.cache.cut(chance)

    def serve(self) -> None:
        try:
            guest, _ = self.listener.accept()
        except OSError:  # closed before anybody came
            return
        with guest:
            guest.sendall(HELLO.pack(b"NBDMAGIC", 0x00420281861253, self.cache.size, HAS_FLAGS | SEND_FLUSH))
            while self.answer(guest):
                pass

    def answer(self, guest: socket.socket) -> bool:
        """Does one request of the guest's; False: it was the last."""
        try:
            header = receive(guest, REQUEST.size)
            if len(header) < REQUEST.size:
                return False
            _, _, kind, cookie, offset, length = REQUEST.unpack(header)
            data = receive(guest, length) if kind == WRITE else b""
            with self.lock:
                if self.cache.is_cut or kind == DISCONNECT:
                    return False
                error, answer = self.do(kind, offset, length, data)
            guest.sendall(REPLY.pack(0x67446698, error, cookie) + answer)
        except OSError:  # the guest is gone
            return False
        return True

    def do(self, kind: int, offset: int, length: int, data: bytes) -> tuple[int, bytes]:
        if kind == READ:
            return 0, self.cache.read(offset, length)
        if kind == WRITE:
            self.cache.write(offset, data)
        elif kind == FLUSH:
            self.cache.flush()
        else:
            return INVALID, b""
        return 0, b""


def receive(guest: socket.socket, length: int) -> bytes:
    parts = bytearray()
    while len(parts) < length and (part := guest.recv(length - len(parts))):
        parts += part
    return bytes(parts)
