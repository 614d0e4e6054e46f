# SPDX-License-Identifier: MIT OR Apache-2.0
"""A writer of initramfs archives ("newc" cpio).

Written here because the archive must belong to root although nobody is root, and be the same, byte for byte,
whenever its files are the same: owner 0, time 0, numbers in order.
"""

import os
import stat
from pathlib import Path, PurePosixPath
from types import TracebackType


class Archive:
    """Adds files, links and directories by their absolute path in the guest; parents come of themselves."""

    def __init__(self, path: Path):
        self.file = open(path, "wb")
        self.directories = {PurePosixPath("/")}
        self.number = 0

    def __enter__(self) -> "Archive":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if not kind:
            self._entry("TRAILER!!!", 0, b"")
        self.file.close()

    def directory(self, path: str, mode: int = 0o755) -> None:
        place = PurePosixPath(path)
        if place not in self.directories:
            self.directory(str(place.parent))
            self.directories.add(place)
            self._entry(path, stat.S_IFDIR | mode, b"")

    def data(self, path: str, content: bytes | str, mode: int = 0o644) -> None:
        self.directory(str(PurePosixPath(path).parent))
        self._entry(path, stat.S_IFREG | mode, content.encode() if isinstance(content, str) else content)

    def link(self, path: str, target: str) -> None:
        self.directory(str(PurePosixPath(path).parent))
        # What is put below it goes to where it leads.
        self.directories.add(PurePosixPath(path))
        self._entry(path, stat.S_IFLNK | 0o777, target.encode())

    def copy(self, source: Path, path: str) -> None:
        """A file or a whole directory of the host; symbolic links in it stay links."""
        if source.is_symlink():
            self.link(path, os.readlink(source))
        elif source.is_dir():
            self.directory(path)
            for child in sorted(source.iterdir()):
                self.copy(child, f"{path}/{child.name}")
        else:
            self.data(path, source.read_bytes(), 0o755 if os.access(source, os.X_OK) else 0o644)

    def _entry(self, path: str, mode: int, content: bytes) -> None:
        self.number += 1
        name = path.lstrip("/").encode() + b"\0"
        fields = (self.number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0)
        self._padded(b"070701" + b"".join(b"%08x" % field for field in fields) + name)
        self._padded(content)

    def _padded(self, content: bytes) -> None:
        self.file.write(content + bytes(-len(content) % 4))
