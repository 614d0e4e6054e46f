# SPDX-License-Identifier: MIT OR Apache-2.0
"""A server of pymodbus: modbus.py URL [FAULTS]. URL is a port, or the path of a terminal. Of FAULTS answers the 11th is
wrong, the 21st comes twice, the 31st is cut and the 41st does not come. At the end it prints how many of each there were."""

import asyncio
import json
import signal
import struct
import sys

from pymodbus import FramerType
from pymodbus.server import ModbusSerialServer, ModbusTcpServer
from pymodbus.simulator import DataType, SimData, SimDevice

COUNTS = {"answers": 0, "right": 0, "wrong": 0, "doubled": 0, "cut": 0, "late": 0}
KINDS = {10: "wrong", 20: "doubled", 30: "cut", 40: "late"}


def main() -> None:
    url = sys.argv[1]
    every = int(sys.argv[2]) if len(sys.argv) > 2 else 0

    def trace(sending: bool, data: bytes) -> bytes:
        if not sending:
            return data
        kind = KINDS.get(COUNTS["answers"] % every, "right") if every else "right"
        COUNTS["answers"] += 1
        COUNTS[kind] += 1
        match kind:
            case "wrong":
                # Another function than was asked for; on a serial line, the sum is wrong as well.
                at = 7 if url.isdigit() else 1
                return data[:at] + bytes([data[at] ^ 0x02]) + data[at + 1:]
            case "doubled":
                return data + data
            case "cut":
                return data[:4]
            case "late":
                return b""
        return data

    values = [0] * 200
    values[10:12] = struct.unpack(">HH", struct.pack(">f", 21.5))
    high, low = struct.unpack(">HH", struct.pack(">i", -70000))
    values[20:22] = [low, high]
    values[30] = 0x0ABC
    registers = [SimData(0, values=values, datatype=DataType.REGISTERS)]
    inputs = [SimData(0, values=[7] * 50, datatype=DataType.REGISTERS)]
    coils, discretes = ([SimData(0, count=50, values=is_on, datatype=DataType.BITS)] for is_on in (False, True))
    context = SimDevice(1, simdata=(coils, discretes, registers, inputs))
    asyncio.run(serve(url, context, trace))


async def serve(url, context, trace) -> None:
    if url.isdigit():
        server = ModbusTcpServer(context, address=("127.0.0.1", int(url)), trace_packet=trace)
    else:
        server = ModbusSerialServer(context, framer=FramerType.RTU, port=url, baudrate=115200, trace_packet=trace)
    task = asyncio.create_task(server.serve_forever())
    await asyncio.sleep(0.5)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    print("ready", flush=True)
    await stop.wait()
    print(json.dumps(COUNTS), flush=True)
    task.cancel()
    sys.exit(0)


main()
