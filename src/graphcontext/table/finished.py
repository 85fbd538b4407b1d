"""Tables that were made before, read from ``results/``: their cells, data sets, and what a file's name adds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphcontext.errors import InputError

SAME = re.compile(r"not run \(same stand-in as (.+)\)")


@dataclass(frozen=True)
class Finished:
    """A finished table's JSON file.

    Args:
        table: ``gcg/t3``.
        variant: what the file's name has beyond the table's, such as ``@my_site+dataset.limit=6``.
        data: the file's content.
    """

    table: str
    variant: str
    data: dict[str, Any]

    def cell(self, row: str, column: str, metric: str) -> dict[str, Any] | None:
        """Return a cell, None where there is none; of a row that is another row's run, that row's cell."""
        place = (row, column, metric)
        cell = next((c for c in self.data["cells"] if (c["row"], c["column"], c["metric"]) == place), None)
        same = SAME.fullmatch(cell["status"]) if cell else None
        return self.cell(same[1], column, metric) if same and same[1] != row else cell

    def columns(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """Return (id, label, the paper's columns it stands for) of each; where the file's name has an ``@``, it is the
        label (two files' columns never have one label), else the overrides of the name follow the data set's.
        """
        listed = self.data.get("columns") or [
            {"id": column, "label": column} for column in dict.fromkeys(cell["column"] for cell in self.data["cells"])
        ]
        own = self.variant.startswith("@")
        names = [self.variant if own else f"{c['label']}{self.variant}" for c in listed]
        return [(c["id"], name, tuple(c.get("paper") or ())) for name, c in zip(names, listed)]

    def measured(self, column: str) -> set[tuple[Any, ...]]:
        """Return what is known of a column: row, metric, run, value and n of each cell that holds a number."""
        keys = ("row", "metric", "run", "value", "n")
        cells = (cell for cell in self.data["cells"] if cell["column"] == column and cell["value"] is not None)
        return {tuple(cell.get(key) for key in keys) for cell in cells}


def finished(root: Path, scale: str, table: str) -> list[Finished]:
    """Return the finished files of a table at one scale, the plain one first.

    Raises:
        InputError: a file that is damaged.
    """
    folder, _, stem = table.rpartition("/")
    found = []
    for path in (root / "results" / scale / folder).glob("*.json"):
        variant = path.name.removesuffix(".json").removeprefix(stem)
        if not path.name.startswith(stem) or variant[:1] not in ("", "@", "+"):
            continue
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            whole = data["table"] == table and {"cells", "footnotes"} <= set(data)
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path} is damaged: delete it and make the table again") from error
        if whole:
            found.append(Finished(table, variant, data))
    return sorted(found, key=lambda file: file.variant)


def scales_with(root: Path, tables: Iterable[str], scales: Iterable[str]) -> list[str]:
    """Return the scales at which a folder of results of these tables' papers is there."""
    folders = {table.rpartition("/")[0] for table in tables}
    return [scale for scale in scales if any((root / "results" / scale / folder).is_dir() for folder in folders)]
