# SPDX-License-Identifier: MIT OR Apache-2.0
"""A power supply of sinstruments: scpi.py URL [FAULTS]. URL is a port, or the path of a terminal. FAULTS is how often an
answer to MEAS:VOLT? is wrong, doubled, cut and late: 50 means that of 50 answers the 11th is wrong, the 21st comes twice, the
31st is cut and the 41st comes when nobody waits for it any more, which another connection says (a terminal has none); the
others are the number of the question. At the end it prints what it did."""

import json
import signal
import struct
import sys

import gevent
from sinstruments.simulator import BaseDevice, Server

COUNTS = {"asked": 0, "right": 0, "wrong": 0, "doubled": 0, "cut": 0, "late": 0, "connections": 0}
KINDS = {10: "wrong", 20: "doubled", 30: "cut", 40: "late"}


class Supply(BaseDevice):
    """What it has is what the messages below ask for and set."""

    every = 0
    level = 0.0
    errors: list[str] = []

    def handle_message(self, message):
        text = message.decode("latin-1").strip()
        if text == "*IDN?":
            COUNTS["connections"] += 1
            yield b"ACME,PS1,0,1.0\n"
        elif text == "SYST:ERR?":
            error = self.errors.pop(0) if self.errors else '0,"No error"'
            yield f"{error}\n".encode()
        elif text == "MEAS:VOLT?":
            yield from self.measure()
        elif text == "MEAS:ALL?":
            yield b"1.5,2.5,CC\n"
        elif text == "CURV?":
            yield b"#18" + struct.pack(">ff", 1.25, -2.0) + b"\n"
        elif text == "VOLT?":
            yield f"{self.level:.3f} V\n".encode()
        elif text.startswith("VOLT ") and float(text[5:]) <= 30:
            self.level = float(text[5:])
        elif text.startswith("VOLT "):
            self.errors.append('-222,"Data out of range"')
        else:
            self.errors.append('-113,"Undefined header"')

    def measure(self):
        number = COUNTS["asked"]
        COUNTS["asked"] += 1
        kind = KINDS.get(number % self.every, "right") if self.every else "right"
        COUNTS[kind] += 1
        answer = f"{number}.5\n".encode()
        match kind:
            case "right":
                yield answer
            case "wrong":
                yield b"OVERLOAD\n"
            case "doubled":
                yield answer + answer
            case "cut":
                yield answer[:1]
                raise ConnectionError("cut on purpose")
            case "late":
                connections = COUNTS["connections"]
                while COUNTS["connections"] == connections:
                    gevent.sleep(0.01)
                yield answer


def main() -> None:
    url = sys.argv[1]
    Supply.every = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    transport = {"type": "tcp", "url": ["127.0.0.1", int(url)]} if url.isdigit() else {"type": "serial", "url": url}
    server = Server([{"name": "psu", "package": "__main__", "class": "Supply", "transports": [transport]}])
    if url.isdigit():
        server.devices["psu"].transports[0].init_socket()
    gevent.signal_handler(signal.SIGTERM, lambda: (print(json.dumps(COUNTS), flush=True), sys.exit(0)))
    tasks = server.start()
    print("ready", flush=True)
    gevent.joinall(tasks)


main()
