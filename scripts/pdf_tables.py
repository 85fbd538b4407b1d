"""Print the share of gold table cells that are found, per PDF and in all.

    python scripts/pdf_tables.py [FOLDER]        # PDFs with ICDAR-2013 gold beside them (*-str.xml)

A gold cell is found if a cell of a table that was extracted from its page has the same text after NFKC, lower case,
dashes alike, and without white space and leader dots; each extracted cell counts once. ``pairs`` is stricter: of the
pairs of gold cells that are neighbours in a row or a column (ICDAR 2013), how many are neighbours in the extraction.
``extra`` is the share of extracted cells that no gold cell equals, on pages that have gold.
"""

from __future__ import annotations

import re
import sys
import time
import unicodedata
from collections import Counter
from pathlib import Path

from lxml import etree

from graphcontext.data.location import data_root

Cell = tuple[int, int, int, int, str]  # first row, first column, last row, last column, text


def normalised(text: str) -> str:
    text = unicodedata.normalize("NFKC", text).casefold()
    text = re.sub(r"[‐‑‒–—―−]", "-", text)
    return re.sub(r"(?:\s*\.){3,}\s*$|\s+", "", text)


def gold(path: Path) -> dict[int, list[list[Cell]]]:
    """Return page → tables → cells."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    pages: dict[int, list[list[Cell]]] = {}
    for region in etree.parse(str(path), parser).iter("region"):
        cells = []
        for cell in region.iter("cell"):
            row, column = int(cell.get("start-row")), int(cell.get("start-col"))
            last = int(cell.get("end-row") or row), int(cell.get("end-col") or column)
            text = normalised(cell.findtext("content") or "")
            if text:
                cells.append((row, column, *last, text))
        pages.setdefault(int(region.get("page")), []).append(cells)
    return pages


def neighbours(cells: list[Cell]) -> Counter[tuple[str, str, str]]:
    """Return the pairs of non-empty cells that are next to each other, blanks between them passed over."""
    found: Counter[tuple[str, str, str]] = Counter()
    for r0, c0, r1, c1, text in cells:
        right = [c for c in cells if c[1] > c1 and c[0] <= r1 and c[2] >= r0]
        below = [c for c in cells if c[0] > r1 and c[1] <= c1 and c[3] >= c0]
        found.update((text, c[4], "right") for c in right if c[1] == min(o[1] for o in right))
        found.update((text, c[4], "below") for c in below if c[0] == min(o[0] for o in below))
    return found


def extracted(path: Path) -> dict[int, list[list[Cell]]]:
    from graphcontext.data.pdf import read_tables

    pages: dict[int, list[list[Cell]]] = {}
    for number, table in read_tables(path):
        cells = [(r, c, r, c, normalised(t)) for r, row in enumerate(table.rows) for c, t in enumerate(row) if t]
        pages.setdefault(number, []).append(cells)
    return pages


def main(folder: Path, verbose: bool) -> None:
    total: Counter[str] = Counter()
    print("| file | gold cells | found | share | pairs | extra | tables gold | extracted |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    start = time.perf_counter()
    for path in sorted(folder.glob("*.pdf")):
        known, ours = gold(path.with_name(f"{path.stem}-str.xml")), extracted(path)
        counts: Counter[str] = Counter()
        for page, tables in known.items():
            want = Counter(cell[4] for table in tables for cell in table)
            got = Counter(cell[4] for table in ours.get(page, []) for cell in table)
            want_pairs = sum((neighbours(table) for table in tables), Counter())
            got_pairs = sum((neighbours(table) for table in ours.get(page, [])), Counter())
            counts += Counter(gold=want.total(), found=(want & got).total(), got=got.total(), tables=len(tables))
            counts += Counter(pairs=want_pairs.total(), found_pairs=(want_pairs & got_pairs).total())
            if verbose:
                print(path.stem, page, "lacking", sorted((want - got).elements())[:40], file=sys.stderr)
                print(path.stem, page, "extra", sorted((got - want).elements())[:40], file=sys.stderr)
        counts["extracted"] = sum(map(len, ours.values()))
        total += counts
        print(line(path.name, counts))
    print(line("all", total))
    print(f"{time.perf_counter() - start:.1f} s", file=sys.stderr)


def line(name: str, n: Counter[str]) -> str:
    extra = 1 - n["found"] / max(n["got"], 1)
    shares = f"{n['found'] / n['gold']:.1%} | {n['found_pairs'] / max(n['pairs'], 1):.1%} | {extra:.1%}"
    return f"| {name} | {n['gold']} | {n['found']} | {shares} | {n['tables']} | {n['extracted']} |"


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "-v"]
    main(Path(words[0]) if words else data_root() / "pdf_tables", "-v" in sys.argv)
