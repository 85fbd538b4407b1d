"""Tables of kind ``ratings``: what human raters prefer and how they rate it (gcg/fig3).

The paper's Figure 3: the share of judgements that prefer a row's answer to the baseline's, and ratings from 1 up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from graphcontext.evaluate.statistics import SEED, bootstrap_mean, holm, paired_difference, wilson_interval
from graphcontext.table import expand
from graphcontext.table.cells import Cell, Column, Made, Measure, Row, TableResult
from graphcontext.table.compare import Circumstances, Tolerance, cell_status
from graphcontext.table.compute import compute
from graphcontext.table.expand import Request
from graphcontext.table.lines import Line, Lines
from graphcontext.table.notes import footnotes
from graphcontext.table.rated import EVEN, Panel, panel_of
from graphcontext.table.scores import circumstances, reported_of
from graphcontext.table.spec import Row as SpecRow
from graphcontext.table.study import PAIR, RATING, Study, folder_of, read_study

METRICS = ("win_rate", "rating_mode", "rating")
VIEW = {"n": 50, "seed": 0, "levels": 5, "gold": False}
TOLERANCES = {
    "win_rate": Tolerance(digits=0, unit="percent"),
    "rating_mode": Tolerance(digits=0, unit="count"),
    "rating": Tolerance(digits=1, unit="count"),
}
EXPLAINED = (
    "win rate: share of judgements that prefer the row's answer to {baseline}'s, a tie counts half, each item averaged "
    "over its raters; its interval is Wilson's over items; Δ and p against 50 %, by a sign-flip permutation test over "
    "items, Holm-adjusted within the data set; * p < .05, bold: above 50 % too"
)


def make(wish: Request, config_dir: str | None, root: Path, quiet: bool) -> Made:
    """Compute the rows, read the labels that were imported, write the table; without labels it says so."""
    from graphcontext.table.ratings_plot import to_png
    from graphcontext.table.render import write

    lines = compute(wish, config_dir, root, quiet)
    study = read_study(folder_of(lines))
    panels = panels_of(lines, study)
    result = result_of(lines, study, panels)
    more = {"ratings": [_json(panel) for panel in panels]}
    picture = (lambda: to_png(result, panels)) if panels else None
    path, markdown = write(result, lines.stem, _sections(result, panels), more, picture)
    return Made(path, markdown, result, lines.n_failed, lines.nothing)


def panels_of(lines: Lines, study: Study | None) -> list[Panel]:
    """Return the judgements of each rated row; none where there are none, or its answers are not those shown."""
    found = []
    for column in lines.columns:
        for row in _rated(lines):
            if study is not None and _unrated(lines, study, column, row) is None:
                found.append(panel_of(study, column.dataset, row.name))
    return found


def _rated(lines: Lines) -> list[SpecRow]:
    return [row for row in lines.wish.spec.rows if row.name != lines.wish.baseline]


def _unrated(lines: Lines, study: Study | None, column: expand.Column, row: SpecRow) -> str | None:
    """Return why a row has no ratings, None where it has."""
    pair = [lines.of(name, column) for name in (row.name, lines.wish.baseline or "")]
    for line in pair:
        if line is None:
            return row.not_run or "no row to compare with"
        if line.reason is not None:
            return line.reason if line.cell.row.name == row.name else f"{line.cell.row.name}: {line.reason}"
    if study is None or not any(study.of(column.dataset, kind, row.name) for kind in (PAIR, RATING)):
        words = ["graphcontext ratings export", lines.wish.spec.name, *expand.shown(lines.wish.overrides)]
        return f"no ratings: {' '.join(words)}"
    if not all(study.is_of(column.dataset, line) for line in pair if line is not None):
        return "the ratings are of other answers: move them away and export again"
    return None


def result_of(lines: Lines, study: Study | None, panels: Sequence[Panel]) -> TableResult:
    """Return the table: one cell per rated row, data set and metric."""
    spec = lines.wish.spec
    by_place = {(panel.row, panel.column): panel for panel in panels}
    cells: list[Cell] = []
    for column in lines.columns:
        mine = [
            _cell(lines, study, column, row, metric, by_place.get((row.name, column.dataset)))
            for row in _rated(lines)
            for metric in spec.metrics
        ]
        tested = [cell for cell in mine if cell.p is not None]
        adjusted = holm([cell.p for cell in tested if cell.p is not None])
        family = f"{column.dataset}/win_rate against 50 % ({len(tested)})"
        final = {id(cell): replace(cell, p_holm=p, family=family) for cell, p in zip(tested, adjusted, strict=True)}
        cells += [final.get(id(cell), cell) for cell in mine]
    labels = spec.datasets
    return TableResult(
        table=spec.name,
        title=spec.title,
        scale=lines.scale,
        command=lines.command,
        rows=tuple(Row(r.name, r.label, spec.groups.get(r.group, r.group)) for r in spec.rows),
        columns=tuple(Column(c.dataset, c.label, tuple(labels[d] for d in c.stands_for)) for c in lines.columns),
        metrics=tuple(Measure(m, label) for m, label in spec.metrics.items()),
        cells=tuple(cells),
        unit=spec.unit,
        digits=spec.digits,
        footnotes=(*_notes(lines, study, panels), *footnotes(lines)),
    )


def _cell(
    lines: Lines, study: Study | None, column: expand.Column, row: SpecRow, metric: str, panel: Panel | None
) -> Cell:
    spec = lines.wish.spec
    reported = reported_of(spec, column, row, metric)
    reason = _unrated(lines, study, column, row)
    values = [] if panel is None else list((panel.wins if metric == "win_rate" else panel.ratings).values())
    if reason is None and not values:
        reason = f"no {'pairs' if metric == 'win_rate' else 'ratings'} were labelled"
    if reason is not None or panel is None:
        return Cell(row.name, column.dataset, metric, reported=reported, status=f"not run ({reason})")
    line = lines.of(row, column)
    tolerance = TOLERANCES[metric]
    found: dict[str, Any] = {"reported": reported, "n": len(values), "run": _run(line)}
    if metric == "rating_mode":
        value = float(panel.mode or 0)
        bounds = (value, value)  # of unknown width
    else:
        mean = bootstrap_mean(np.array(values), SEED)
        value, bounds = mean.value, (mean.low, mean.high)
        if metric == "win_rate":
            low, high = wilson_interval(mean.value, len(values))
            value, bounds = 100 * mean.value, (100 * low, 100 * high)
            test = paired_difference(np.array(values), np.full(len(values), EVEN), SEED)
            found |= {"baseline": lines.wish.baseline, "diff": 100 * test.diff, "p": test.p}
            found["diff_ci95"] = (bounds[0] - 50, bounds[1] - 50)
        found["ci95"] = bounds
    about = _circumstances(lines, column, line, metric)
    return Cell(
        row.name,
        column.dataset,
        metric,
        value=value,
        status=cell_status(value, bounds, reported, tolerance, about),
        **found,
    )


def _run(line: Line | None) -> str | None:
    return line.run.path.name if line is not None and line.run is not None else None


def _circumstances(lines: Lines, column: expand.Column, line: Line | None, metric: str) -> Circumstances:
    """Return what holds of the row or, for a comparison, of the row that it is compared with."""
    rows = [line, lines.of(lines.wish.baseline or "", column)] if metric == "win_rate" else [line]
    found = [circumstances(lines.wish.spec, column, one, metric) for one in rows if one is not None]
    return Circumstances(None, any(c.fallback for c in found), any(c.stand_in for c in found))


def _notes(lines: Lines, study: Study | None, panels: Sequence[Panel]) -> list[str]:
    base = next((r.label for r in lines.wish.spec.rows if r.name == lines.wish.baseline), "the baseline")
    notes = [EXPLAINED.format(baseline=base)]
    if study is None or not panels:
        return notes
    shown = "the accepted answer was shown" if study.facts["gold"] else "no reference answer was shown"
    notes.append(f"study: at most {study.facts['n']} items per data set, seed {study.facts['seed']}; {shown}")
    failed = {column: n for column, n in study.facts["left_out"].items() if n}
    notes += [f"{column}: {n} items that failed in a run were not drawn" for column, n in failed.items()]
    return notes


def _sections(result: TableResult, panels: Sequence[Panel]) -> list[str]:
    """Return the ratings per level, and how far the raters agree."""
    from graphcontext.table.render import escape_markdown, markdown_table

    if not panels:
        return []
    labels = {row.id: row.label for row in result.rows} | {column.id: column.label for column in result.columns}
    named = [[escape_markdown(labels[p.column]), escape_markdown(labels[p.row])] for p in panels]
    levels = [str(level) for level in range(1, len(panels[0].levels) + 1)]
    counted = [[*name, *map(str, panel.levels)] for name, panel in zip(named, panels, strict=True)]
    heads = ["data set", "row", "task", "raters", "items all rated", "all agree", "kappa", "weighted", "won/tie/lost"]
    rated = []
    for name, panel in zip(named, panels, strict=True):
        for kind, found in panel.agreements.items():
            sides = "/".join(str(panel.sides[s]) for s in ("won", "tie", "lost")) if kind == PAIR else ""
            kappa = f"{found.name} {_kappa(found.kappa)}" if found.n_raters > 1 else "–"
            row = [*name, f"{kind}s", str(found.n_raters), str(found.n_items), _share(found.equal), kappa]
            rated.append([*row, _kappa(found.weighted), sides])
    return [
        "## Ratings per level\n\n" + markdown_table(["data set", "row", *levels], counted, n_left=2),
        "## Raters\n\n" + markdown_table(heads, rated, n_left=3),
    ]


def _kappa(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


def _json(panel: Panel) -> dict[str, Any]:
    agreements = {kind: vars(found) for kind, found in panel.agreements.items()}
    return {
        "row": panel.row,
        "column": panel.column,
        "sides": panel.sides,
        "levels": list(panel.levels),
        "agreement": agreements,
    }
