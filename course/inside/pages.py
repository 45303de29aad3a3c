"""Memory pages that a forked child will write: made its own while it waits, instead of one by one in its run.

Decision: each page that a child writes first is copied by the kernel, some thousand times a run, which is a
sixth of a short one; runs of one kind write the same pages. Only Linux tells which they were
(/proc/self/pagemap) and takes many at once (madvise); elsewhere nothing is known and done.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import mmap
from collections.abc import Iterator
from pathlib import Path

Ranges = list[tuple[int, int]]

_POPULATE_WRITE = 23  # MADV_POPULATE_WRITE of Linux 5.14, which Python has no name for
_EXCLUSIVE, _PRESENT = 1 << 56, 1 << 63  # bits of a page's entry: mapped here alone, and there at all


def write_own_pages(file: Path) -> None:
    """Note this process's own pages in a file, as lines of address and length in bytes."""
    with contextlib.suppress(OSError, ValueError):
        file.write_text("".join(f"{start} {length}\n" for start, length in _own_pages()), "ascii")


def read_pages(file: Path) -> Ranges:
    """What was noted there, nothing where that can't be read; the file is removed."""
    try:
        pairs = [line.split() for line in file.read_text("ascii").splitlines()]
        file.unlink()
        return [(int(start), int(length)) for start, length in pairs]
    except (OSError, ValueError):
        return []


def take_pages(ranges: Ranges) -> None:
    """Make these pages this process's own, as far as it has them."""
    if not ranges:
        return
    try:
        madvise = ctypes.CDLL(None).madvise
    except (OSError, AttributeError):
        return
    for start, length in ranges:
        madvise(ctypes.c_void_p(start), ctypes.c_size_t(length), _POPULATE_WRITE)


def _own_pages() -> Iterator[tuple[int, int]]:
    size = mmap.PAGESIZE
    maps = Path("/proc/self/maps").read_text("ascii", "replace").splitlines()
    with Path("/proc/self/pagemap").open("rb", buffering=0) as pagemap:
        for line in maps:
            addresses, permissions = line.split()[:2]
            if not permissions.startswith("rw-p"):
                continue
            first, last = (int(part, 16) // size for part in addresses.split("-"))
            pagemap.seek(first * 8)
            entries = array.array("Q", pagemap.read((last - first) * 8))
            begun = None
            for number, entry in enumerate([*entries, 0], first):
                own = entry & _EXCLUSIVE and entry & _PRESENT
                if own and begun is None:
                    begun = number
                elif not own and begun is not None:
                    yield begun * size, (number - begun) * size
                    begun = None
