"""What the cells of a table of scores do not compare: means over other questions, metrics that are one value."""

from __future__ import annotations

from graphcontext.table.cells import Cell, TableResult


def cautions(result: TableResult) -> list[str]:
    """Return a sentence on each data set where rows stand side by side that their numbers do not compare."""
    notes = []
    for column in result.columns:
        cells = [c for c in result.cells if c.column == column.id and c.value is not None]
        notes += _other_questions(result, cells, column.label)
        notes += _one_value(result, cells, column.label)
    return notes


def _other_questions(result: TableResult, cells: list[Cell], where: str) -> list[str]:
    """Name the rows of which a metric is a mean over fewer questions than the baseline's, and the baseline's there."""
    labels = {m.id: m.label for m in result.metrics}
    name = next((row.label for row in result.rows if row.id == result.baseline), "")
    base = {c.metric: c for c in cells if c.row == result.baseline}
    found: dict[tuple[int, str], list[str]] = {}  # (n, the baseline's values there) → rows
    for row in dict.fromkeys(c.row for c in cells):
        fewer = [c for c in cells if c.row == row and c.diff is not None and (c.n or 0) < (base[c.metric].n or 0)]
        values = [f"{labels[c.metric]} {c.value - c.diff:.{result.digits}f}" for c in fewer]  # type: ignore[operator]
        if fewer:
            found.setdefault((fewer[0].n or 0, ", ".join(values)), []).append(row)
    return [
        f"{', '.join(rows)} on {where}: {n} questions, not all; {name} on these: {values}"
        for (n, values), rows in found.items()
    ]


def _one_value(result: TableResult, cells: list[Cell], where: str) -> list[str]:
    """Name the metrics in which several rows ran and all have one value."""
    by_metric = {m.label: [c.value for c in cells if c.metric == m.id] for m in result.metrics}
    level = {label: v[0] for label, v in by_metric.items() if len(v) > 2 and len(set(v)) == 1}
    said = ", ".join(f"{label} {value:.{result.digits}f}" for label, value in level.items())
    return [f"{where}: all rows have {said}, which compares nothing"] if level else []
