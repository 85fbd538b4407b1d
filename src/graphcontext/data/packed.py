"""Open files that may be packed by gzip, and name the faults of reading one that is cut, damaged or not to be read."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import BinaryIO

DAMAGE = (EOFError, OSError, zlib.error)  # cut; no gzip, a wrong checksum or no permission; a damaged block


def open_bytes(path: Path) -> BinaryIO:
    """Open a file for reading, unpacked where its name ends in ``.gz``."""
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb")


def open_text(path: Path, newline: str | None = None) -> io.TextIOWrapper:
    """Open a UTF-8 file, with or without a byte order mark, for reading; ``newline`` as in :func:`open`."""
    return io.TextIOWrapper(open_bytes(path), encoding="utf-8-sig", newline=newline)
