"""The vocabulary of a table: rows, columns, metrics and cells, as the table's JSON file holds them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from graphcontext.errors import InputError, did_you_mean

UNITS = {"fraction": 1.0, "percent": 100.0, "count": 1.0, "mixed": 1.0}

Reported = float | dict[str, float | None] | None


def unit_factor(unit: str) -> float:
    """Return what a fraction in [0, 1] is multiplied by to stand in the paper's unit.

    Raises:
        InputError: the unit is unknown.
    """
    if unit not in UNITS:
        raise InputError(f"table unit {unit!r} is unknown{did_you_mean(unit, UNITS)}")
    return UNITS[unit]


@dataclass(frozen=True)
class Row:
    """One line of the paper's table; ``group`` is the heading it stands under, such as ``LLM era``."""

    id: str
    label: str
    group: str = ""


@dataclass(frozen=True)
class Column:
    """One concrete data set; ``paper`` names the paper's columns whose numbers stand beside it."""

    id: str
    label: str
    paper: tuple[str, ...] = ()


@dataclass(frozen=True)
class Measure:
    """One metric of the table, such as ``rouge1`` printed as ``ROUGE-1``."""

    id: str
    label: str
    higher_is_better: bool = True


@dataclass(frozen=True)
class Cell:
    """One number of a table, with all that is known about it; ``value`` never comes from ``reported``.

    Args:
        row, column, metric: ids; ``column`` is the concrete data set.
        value: our mean over items, in the paper's unit; None where nothing was run.
        ci95: its 95 % bootstrap interval.
        n: scored items.
        seeds: seeds the row ran under.
        sd: standard deviation over the seeds' means; 0 where they are equal, None for one seed.
        reported: the paper's number, or ``{paper column: number}`` where columns fell together.
        status: ``not run (reason)``, ``fallback``, ``stand-in``, ``not reported``, ``ok``, ``close``,
            ``underpowered`` or ``off``.
        run: where the run lies.
        baseline: the row it is tested against.
        diff, diff_ci95: paired difference to the baseline over shared items, and its interval.
        p, p_holm: of the paired permutation test; adjusted within ``family``.
        family: the tests that were adjusted together.
    """

    row: str
    column: str
    metric: str
    value: float | None = None
    ci95: tuple[float, float] | None = None
    n: int | None = None
    seeds: int | None = None
    sd: float | None = None
    reported: Reported = None
    status: str = ""
    run: str | None = None
    baseline: str | None = None
    diff: float | None = None
    diff_ci95: tuple[float, float] | None = None
    p: float | None = None
    p_holm: float | None = None
    family: str | None = None


@dataclass(frozen=True)
class Rank:
    """A row's mean rank over data sets and metrics, 1 the best.

    Args:
        row: id.
        rank: None where the row did not run in every column in which others did.
        n: data set × metric columns it is a mean over.
        reported: the paper's.
    """

    row: str
    rank: float | None
    n: int
    reported: float | None = None


@dataclass(frozen=True)
class TableResult:
    """A table that is ready to be written.

    Args:
        table: its id, such as ``gcg/t3``.
        title: one line.
        scale: ``sample``, ``small`` or ``paper``.
        command: the command that makes it, printed in the first line of each file.
        rows, columns, metrics: in the order they are printed.
        cells: in any order; a pair that has none is left blank.
        unit: ``fraction``, ``percent``, ``count``, or ``mixed`` (each metric's own); the cells are in it already.
        digits: printed after the decimal point.
        footnotes: substitutions, fall-backs and counts, numbered from 1 when printed.
        baseline: row that the others are tested against.
        ranks: mean rank of each row that takes part, in the order of the rows; empty where the table has none.
    """

    table: str
    title: str
    scale: str
    command: str
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    metrics: tuple[Measure, ...]
    cells: tuple[Cell, ...]
    unit: str = "fraction"
    digits: int = 3
    footnotes: tuple[str, ...] = ()
    baseline: str | None = None
    ranks: tuple[Rank, ...] = ()
    _places: dict[tuple[str, str, str], Cell] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        places = {(cell.row, cell.column, cell.metric): cell for cell in self.cells}
        object.__setattr__(self, "_places", places)

    def cell(self, row: Row, column: Column, metric: Measure) -> Cell | None:
        """Return the cell at that place, None where the table has none."""
        return self._places.get((row.id, column.id, metric.id))

    def block(self, column: Column, metric: Measure) -> list[tuple[Row, Cell]]:
        """Return the rows that have a cell under one data set and metric, in order."""
        found = ((row, self.cell(row, column, metric)) for row in self.rows)
        return [(row, cell) for row, cell in found if cell is not None]


@dataclass(frozen=True)
class Made:
    """A table that was written.

    Args:
        path: the markdown file.
        markdown: its content.
        result: the table, None for a data set card.
        n_failed: cells whose run failed in whole or in part.
        nothing: why no chosen row could be run; empty where one was.
    """

    path: Path
    markdown: str
    result: TableResult | None
    n_failed: int
    nothing: str = ""


def best_rows(cells: Iterable[Cell], higher_is_better: bool = True) -> set[str]:
    """Return the rows to print bold: the best of one data set and metric, only where better than the baseline, p < .05.

    The baseline has no p of its own and is never bold; neither is a best value that may be chance, nor the only one
    where it is worse than what it is tested against (a win rate below 50 %).
    """
    measured = [cell for cell in cells if cell.value is not None]
    if not measured:
        return set()
    best = (max if higher_is_better else min)(cell.value for cell in measured)
    ahead = 1 if higher_is_better else -1
    tested = (c for c in measured if c.p_holm is not None and c.diff is not None)
    return {c.row for c in tested if c.value == best and c.diff * ahead > 0 and c.p_holm < 0.05}
