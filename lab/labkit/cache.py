# SPDX-License-Identifier: MIT OR Apache-2.0
"""The cache directory, and Debian packages unpacked into it (never installed).

Everything here may be deleted at any time: it comes back from the package mirror.
"""

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from . import LabError


def cache_dir() -> Path:
    """The directory that survives between builds; STROBE_CACHE moves it."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    path = Path(os.environ.get("STROBE_CACHE") or Path(home) / "strobe").absolute()
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Only one process at a time fills a place."""
    with open(file, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def unpacked(name: str, packages: Callable[[], list[str]], finish: Callable[[Path], None]) -> Path:
    """The directory `name` of the cache, made of the given packages if it is not there yet.

    `packages` answers apt's NAME=VERSION words. `finish` adapts the unpacked tree. The directory appears in one step, complete.
    """
    place = cache_dir() / name
    with locked(cache_dir() / f".{name}.lock"):
        if place.exists():
            return place
        words = packages()
        with tempfile.TemporaryDirectory(dir=cache_dir(), prefix=f".{name}.") as temporary:
            root = Path(temporary) / "root"
            root.mkdir()
            if words:
                download(words, root)
            finish(root)
            root.chmod(0o755)
            root.rename(place)
    return place


def download(words: list[str], root: Path, options: list[str] | None = None) -> None:
    """Downloads packages and unpacks them below root, where the file `packages` names them; options are more options for apt."""
    archives = root.parent / "archives"
    archives.mkdir()
    apt_get(["download", *words], archives, options or [])
    for archive in sorted(archives.glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", archive, root], check=True)
    shutil.rmtree(archives)
    (root / "packages").write_text("".join(f"{word}\n" for word in words))


def apt_get(words: list[str], directory: Path, options: list[str]) -> None:
    # Who is root would otherwise become another user, who cannot write here.
    apt = ["apt-get", "-q", "-o", "APT::Sandbox::User=root", *options, *words]
    done = subprocess.run(apt, cwd=directory, capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"apt-get {' '.join(words)} failed:\n{done.stderr.strip()}\n"
                       "check the network, and run `apt-get update` as root if apt's lists are old or missing")


def package(name: str, version: str = "", options: Sequence[str] = ()) -> dict[str, str] | None:
    """The fields of a version of a package, by default the one that apt would install, or None."""
    if not shutil.which("apt-cache"):
        raise LabError("the lab's kernels come as Debian packages, and this system has no apt; "
                       "run it on Debian 12 or newer, or in a container of that")
    show = subprocess.run(["apt-cache", *options, "show", "--no-all-versions", f"{name}={version}" if version else name],
                          capture_output=True, text=True)
    fields = dict(re.findall(r"^([\w-]+): (.*)$", show.stdout, re.MULTILINE))
    return fields if "Version" in fields else None


def closure(names: list[str], pattern: str, options: Sequence[str] = ()) -> list[str]:
    """NAME=VERSION of the packages, and of all they depend on whose name matches the pattern."""
    found: dict[str, str] = {}
    wanted = set(names)
    while wanted:
        # All at once: apt-cache takes long to start.
        known = packages(sorted(wanted), options)
        if unknown := wanted - known.keys():
            raise LabError(f"apt does not know the package {min(unknown)}: run `apt-get update` as root")
        found |= {name: known[name]["Version"] for name in wanted}
        depends = ", ".join(known[name][kind] for name in wanted for kind in ("Pre-Depends", "Depends") if kind in known[name])
        first_choices = re.findall(r"(?:^|,)\s*([\w.+-]+)", depends)
        wanted = {choice for choice in first_choices if re.match(pattern, choice)} - found.keys()
    return [f"{name}={version}" for name, version in sorted(found.items())]


def packages(names: Sequence[str], options: Sequence[str] = ()) -> dict[str, dict[str, str]]:
    """The fields of these packages, by their names, as far as apt knows them."""
    show = subprocess.run(["apt-cache", *options, "show", "--no-all-versions", *names], capture_output=True, text=True)
    all_fields = (dict(re.findall(r"^([\w-]+): (.*)$", text, re.MULTILINE)) for text in show.stdout.split("\n\n"))
    return {fields["Package"]: fields for fields in all_fields if "Version" in fields}
