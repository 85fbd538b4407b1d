"""The mean rank of a table's rows over its data sets and metrics (KGP Table 1, "Rank")."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from graphcontext.table.cells import Cell, Measure, Rank, TableResult
from graphcontext.table.spec import Spec


def ranks(values: Mapping[str, float], higher_is_better: bool = True) -> dict[str, float]:
    """Return each row's rank from 1, the best; equal values share the mean of their ranks.

    >>> ranks({"a": 0.5, "b": 0.7, "c": 0.5, "d": 0.1})
    {'a': 2.5, 'b': 1.0, 'c': 2.5, 'd': 4.0}
    """
    sign = 1 if higher_is_better else -1
    ahead = {row: sum(sign * (other - value) > 0 for other in values.values()) for row, value in values.items()}
    equal = {row: sum(other == value for other in values.values()) for row, value in values.items()}
    return {row: ahead[row] + (equal[row] + 1) / 2 for row in values}


def mean_ranks(
    cells: Iterable[Cell], metrics: Sequence[Measure], rows: Sequence[str]
) -> tuple[dict[str, tuple[float, int]], list[tuple[str, str]]]:
    r"""Return row → (mean rank, number of columns it is a mean over), and the columns that rank nothing.

    With C the columns (data set × metric) in which any of the rows ran and not all have one value, and R the rows that
    ran in all columns:

    .. math:: \text{rank}(r) = \frac{1}{|C|} \sum_{c \in C} \text{rank of } r \text{ among } R \text{ in } c

    A row that did not run somewhere has no rank and is in none: it would be compared on other columns than the rest.

    Args:
        cells: of a table; those of other metrics and rows are not looked at.
        metrics: what is ranked.
        rows: ids of the rows that take part.
    """
    better = {metric.id: metric.higher_is_better for metric in metrics}
    columns: dict[tuple[str, str], dict[str, float]] = {}
    for cell in cells:
        if cell.value is not None and cell.metric in better and cell.row in rows:
            columns.setdefault((cell.column, cell.metric), {})[cell.row] = cell.value
    whole = [row for row in rows if columns and all(row in values for values in columns.values())]
    columns = {column: {row: values[row] for row in whole} for column, values in columns.items()} if whole else {}
    level = [column for column, values in columns.items() if len(set(values.values())) == 1 and len(whole) > 1]
    ranked = [ranks(values, better[c[1]]) for c, values in columns.items() if c not in level]
    return {row: (sum(f[row] for f in ranked) / len(ranked), len(ranked)) for row in whole if ranked}, level


def rank_rows(spec: Spec, result: TableResult) -> tuple[tuple[Rank, ...], list[str]]:
    """Return the ranks of a table that asks for them (``rank:``), and what must be read with them.

    Where the YAML gives the paper's rank of some rows, those take part, else all.
    """
    if not spec.rank:
        return (), []
    reported = {row.name: row.rank for row in spec.rows if row.rank is not None}
    takes_part = [row.name for row in spec.rows if row.name in reported or not reported]
    metrics = [metric for metric in result.metrics if metric.id in spec.rank]
    found, level = mean_ranks(result.cells, metrics, takes_part)
    names = {c.id: c.label for c in result.columns} | {m.id: m.label for m in metrics}
    same = ", ".join(f"{names[metric]} on {names[column]}" for column, metric in level)
    labels = {row.id: row.label for row in result.rows}
    table = tuple(Rank(row, *found.get(row, (None, 0)), reported.get(row)) for row in takes_part)
    if not found and same:
        return table, [f"mean rank: none, since all rows have one value in each column ({same})"]
    if not found:
        return table, ["mean rank: no row ran in every column in which another did, so there is none"]
    n = next(iter(found.values()))[1]
    left = [labels[row] for row in takes_part if row not in found]
    note = (
        f"mean rank: over {n} column{'s' * (n > 1)} (data set × metric; {', '.join(m.label for m in metrics)}), 1 is "
        f"best, equal values share the mean of their ranks; among the {len(found)} rows that ran in all of them"
        + (f", without {', '.join(left)}" if left else "")
        + (f"; left out, since all rows have one value there: {same}" if same else "")
    )
    theirs = f"; the paper's are among {len(reported)} rows" if reported and len(reported) != len(found) else ""
    return table, [note + theirs]
