# SPDX-License-Identifier: MIT OR Apache-2.0
"""Recipes of the tests."""

SCAN = 'event = "timer:1kHz"\nread = ["sim.counter", "sim.ramp", "sim.sine"]\nengine = "user"\nrows = 1000\n'
SOFT = 'event = "soft"\nread = ["sim.counter"]\nengine = "user"\n'
