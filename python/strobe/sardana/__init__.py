# SPDX-License-Identifier: MIT OR Apache-2.0
"""For Sardana's PoolPath: this folder, with a controller of counters that stands on a device of `strobe-tango`."""
