"""Tables of kind ``scores``: rows × data sets × metrics, tested against a baseline, the paper's number beside ours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from graphcontext.evaluate.statistics import SEED
from graphcontext.run_folder import Run
from graphcontext.table import expand
from graphcontext.table.cautions import cautions
from graphcontext.table.cells import Column, Made, Measure, Row, TableResult
from graphcontext.table.compare import Circumstances, Place, RowScores, Tolerance, make_cells
from graphcontext.table.compute import compute
from graphcontext.table.expand import Request
from graphcontext.table.lines import Line, Lines
from graphcontext.table.mean_rank import rank_rows
from graphcontext.table.notes import footnotes
from graphcontext.table.spec import Row as SpecRow
from graphcontext.table.spec import Spec
from graphcontext.table.substitutions import altered, relevant, stand_ins


def make(wish: Request, config_dir: str | None, root: Path, quiet: bool) -> Made:
    """Compute the rows, test them against the baseline, write the table in all its forms."""
    from graphcontext.table.render import write

    lines = compute(wish, config_dir, root, quiet)
    result = result_of(lines)
    path, markdown = write(result, lines.stem)
    return Made(path, markdown, result, lines.n_failed, lines.nothing)


def result_of(lines: Lines) -> TableResult:
    """Return the table of computed rows: each cell with interval, test and status."""
    spec, wish = lines.wish.spec, lines.wish
    places = [
        place(spec, column, row, metric, lines.of(row, column, metric))
        for column in lines.columns
        for row in spec.rows
        for metric in spec.metrics
    ]
    tolerance = Tolerance(**{**spec.tolerance, "digits": spec.digits, "unit": spec.unit})
    labels = spec.datasets
    result = TableResult(
        table=spec.name,
        title=spec.title,
        scale=lines.scale,
        command=lines.command,
        rows=tuple(Row(r.name, r.label, spec.groups.get(r.group, r.group)) for r in spec.rows),
        columns=tuple(Column(c.dataset, c.label, tuple(labels[d] for d in c.stands_for)) for c in lines.columns),
        metrics=tuple(Measure(m, label) for m, label in spec.metrics.items()),
        cells=make_cells(places, wish.baseline, tolerance, SEED),
        unit=spec.unit,
        digits=spec.digits,
        footnotes=tuple(footnotes(lines)),
        baseline=wish.baseline,
    )
    ranks, said = rank_rows(spec, result)
    return replace(result, ranks=ranks, footnotes=(*result.footnotes, *cautions(result), *said))


def place(spec: Spec, column: expand.Column, row: SpecRow, metric: str, line: Line | None) -> Place:
    """Bring together what one cell is made from."""
    reported = reported_of(spec, column, row, metric)
    reason = row.not_run if line is None else line.reason
    if reason is None and line is not None and line.run is not None and metric not in line.run.metrics["metrics"]:
        reason = spec.missing_metrics.get(metric, f"metric {metric} was not computed")
    if reason is not None or line is None or line.run is None:
        return Place(row.name, column.dataset, metric, reported, Circumstances(not_run=reason or "not run yet"))
    scores = line.run.scores()
    ids = tuple(item for item, row in scores.items() if metric in row)  # of a further column not every item
    values = np.array([scores[i][metric] for i in ids])
    found = circumstances(spec, column, line, metric)
    ranking = line.keys.ranking if line.is_whole and line.keys is not None else None
    return Place(row.name, column.dataset, metric, reported, found, RowScores(ids, values), line.run.path.name, ranking)


def reported_of(spec: Spec, column: expand.Column, row: SpecRow, metric: str) -> Any:
    """Return the paper's number of a cell, several by the paper's column, or None."""
    reported = {spec.datasets[d]: row.reported.get(d, {}).get(metric) for d in column.stands_for}
    if len(column.stands_for) < 2:
        return next(iter(reported.values()), None)
    return None if all(v is None for v in reported.values()) else reported


def circumstances(spec: Spec, column: expand.Column, line: Line, metric: str) -> Circumstances:
    """Return what about a finished row decides its status before any number does."""
    config = line.cell.composed.config
    return Circumstances(
        fallback=line.run is not None and _mostly_fallen_back(line.run),
        stand_in=any(relevant(config, group, metric) for group in spec.paper_choices)
        or any(d != column.dataset for d in column.stands_for)
        or bool(stand_ins(line.cell.composed, line.paper, metric))
        or altered(line.cell.composed, line.declared, metric),
    )


def _mostly_fallen_back(run: Run) -> bool:
    rows = run.lines("rankings.jsonl")
    return sum(row.get("fallback") == "cosine" for row in rows) > len(rows) / 2
