# SPDX-License-Identifier: MIT OR Apache-2.0
"""Debian's root with systemd, for guests that are as machines are: packages of apt's suite, unpacked into the cache.

No package's scripts run, so nobody needs to be root. What those would do for the few packages that are here is done below,
or by systemd at each boot.
"""

import shutil
from pathlib import Path

from . import cache, say

WANTED = ("base-files", "base-passwd", "bash", "coreutils", "dash", "findutils", "grep", "hostname", "iproute2", "kmod", "login", "mawk",
          "mount", "passwd", "sed", "systemd", "systemd-sysv", "tar", "udev", "util-linux")
# What only installs packages, and what reports to a bus: systemctl speaks to systemd itself.
WITHOUT = r"(?!adduser|awk$|dbus|debconf|dpkg|perl|libperl|usrmerge|lib.*-perl$)"
MERGED = ("bin", "lib", "lib64", "sbin")
LEFT_OUT = ("usr/share/doc", "usr/share/info", "usr/share/lintian", "usr/share/locale", "usr/share/man", "usr/lib/udev/hwdb.d",
            "usr/lib/x86_64-linux-gnu/gconv")
FILES = {
    "etc/hostname": "lab\n",
    # Not empty: else systemd takes the boot for the first one, and enables all that is there.
    "etc/machine-id": "5".zfill(32) + "\n",
    "etc/fstab": "",
    "etc/nsswitch.conf": "passwd: files systemd\ngroup: files systemd\nshadow: files\nhosts: files\n",
}


def root() -> Path:
    """Where it is."""
    return cache.unpacked("debian-root", list, fill)


def fill(place: Path) -> None:
    words = cache.closure(list(WANTED), WITHOUT)
    say(f"fetching Debian's root, {len(words)} packages, into {cache.cache_dir()}")
    cache.download(words, place)
    for name in MERGED:
        shutil.copytree(place / name, place / "usr" / name, symlinks=True, dirs_exist_ok=True)
        shutil.rmtree(place / name)
        (place / name).symlink_to(f"usr/{name}")
    for name in LEFT_OUT:
        shutil.rmtree(place / name, ignore_errors=True)
    for name, text in FILES.items():
        (place / name).write_text(text)
    for name in ("passwd", "group"):
        master = place / "usr/share/base-passwd" / f"{name}.master"
        (place / "etc" / name).write_text(master.read_text().replace(":*:", ":x:"))
