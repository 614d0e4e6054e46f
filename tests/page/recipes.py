# SPDX-License-Identifier: MIT OR Apache-2.0
"""Recipes of the tests. FOLDER is the daemon's."""

# A value that the test sets, in a file; 0 unless it is said. Triggers come by call.
SPIKE = """\
event = "soft"
read = ["sim.counter", "spike.value"]
engine = "user"
board = "FOLDER/spike.toml"
rows = 1000000
ring = 131072
"""

SPIKE_BOARD = """\
[board]
name = "spike"
description = "A number in a file"

[channel.value]
file = "{folder}/value"
unit = "V"
"""

# In this ring, as in the next one, there is room for the rows of many seconds: who reads late loses none.
WAVES = """\
event = "timer:1kHz"
read = ["sim.sine", "sim.ramp", "sim.noise"]
engine = "user"
ring = 65536
"""

# It computes with a number that is tuned.
TUNED = """\
event = "timer:100Hz"
read = ["sim.counter", "sim.sine"]
engine = "user"
tune = ["limit = 0"]
derive = ["double = 2 * limit"]
"""

SIXTEEN = """\
event = "timer:10kHz"
read = ["sim.sine", "sim.ramp", "sim.noise", "sim.counter", "sim.sine", "sim.ramp", "sim.noise", "sim.counter",
        "sim.sine", "sim.ramp", "sim.noise", "sim.counter", "sim.sine", "sim.ramp", "clock.late", "clock.elapsed"]
engine = "user"
ring = 65536
"""
