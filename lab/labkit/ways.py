# SPDX-License-Identifier: MIT OR Apache-2.0
"""The ways in which a loop waits, as `strobe jitter` calls them: lab/cases/jitter measures each, and lab/verify one after the other."""

WAYS = ("kernel:workqueue", "kernel:relative", "kernel:loop", "kernel:timer", "hybrid")
