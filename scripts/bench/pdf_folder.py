"""Pages a second of reading a folder of PDFs, ours beside pdfplumber's own text and tables.

    python scripts/bench/pdf_folder.py --pages 500 --workers 1 2

PDFs are those of ``$GRAPHCONTEXT_DATA/pdf_tables`` where it is there, else the shipped sample's, copied until there are
so many pages. ``kept`` reads the folder again: every file's content is in the store. Once each; CPU seconds
are those of all processes.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import os
import shutil
import tempfile
import time
from pathlib import Path

import clock

from graphcontext.data.folder_files import list_files, read_all
from graphcontext.data.location import SHIPPED, data_root
from graphcontext.store import Store


def main(pages: int, workers: list[int]) -> None:
    import pdfplumber

    source = data_root() / "pdf_tables"
    known = sorted((source if source.is_dir() else SHIPPED / "structural_sample").glob("*.pdf"))
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "pdfs"
        folder.mkdir()
        n = 0
        for number, path in enumerate(itertools.cycle(known)):
            if n >= pages:
                break
            shutil.copy(path, folder / f"{number:05d}-{path.name}")
            with pdfplumber.open(path) as pdf:
                n += len(pdf.pages)
        listing = list_files(folder, [])

        start, cpu = time.perf_counter(), used()
        for path in listing.files.values():
            with pdfplumber.open(path) as pdf:
                for page in pdf.pages:
                    page.extract_text()
                    page.extract_tables()
                    page.close()
        rows.append(row("pdfplumber, its own text and tables", n, start, cpu))
        for count in workers:
            store = Store(Path(scratch) / f"store-{count}")
            for label in (f"ours, workers={count}", f"ours, workers={count}, kept"):
                start, cpu = time.perf_counter(), used()
                with contextlib.redirect_stderr(io.StringIO()):
                    documents, faults = read_all(listing, store, count, quiet=True)
                made = row(label, n, start, cpu)
                assert len(documents) == len(listing.files) and not faults
                rows.append(made)
    clock.table("way | pages | seconds | pages a second | CPU seconds | pages a CPU second", rows)


def used() -> float:
    """Return the CPU seconds of this process and of those it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def row(label: str, n: int, start: float, cpu: float) -> tuple[str, int, str, str, str, str]:
    seconds, cpu = time.perf_counter() - start, used() - cpu
    return label, n, f"{seconds:.1f}", f"{n / seconds:.1f}", f"{cpu:.1f}", f"{n / max(cpu, 0.01):.1f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--pages", type=int, default=500)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    found = parser.parse_args()
    main(found.pages, found.workers)
