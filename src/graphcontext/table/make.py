"""``table``: run what a table lacks, test, render, write. Cells come from runs; reported numbers only beside."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from graphcontext.config import Composed
from graphcontext.errors import InputError, MissingDataError
from graphcontext.files import digest, read_lines
from graphcontext.pipeline import Keys, Pipeline, build_parts, keys
from graphcontext.plan import budgeted_limits
from graphcontext.prepare import missing_models
from graphcontext.runs import Run, describe, execute_all, run_path
from graphcontext.store import Store, Workspace
from graphcontext.table import expand
from graphcontext.table.card import make_card
from graphcontext.table.cells import Column, Made, Measure, Row, TableResult
from graphcontext.table.compare import Circumstances, Place, RowScores, Tolerance, make_cells
from graphcontext.table.expand import CellConfig, Request
from graphcontext.table.spec import Row as SpecRow
from graphcontext.table.spec import Spec
from graphcontext.table.substitutions import altered, footnotes, stand_ins

KEPT = ("scale", "dataset", "dataset.path")  # overrides that a table's file is named by otherwise
SEED = 20240112  # of intervals and tests: fixed, so that a table is the same each time it is shown


@dataclass
class _Line:
    """One row on one data set, as it becomes known."""

    cell: CellConfig
    paper: Composed
    declared: Composed
    keys: Keys | None = None
    reason: str | None = None  # why it is not run
    run: Run | None = None
    failed: bool = False
    without_weights: bool = False
    stand_in: dict[str, tuple[str, str]] = field(default_factory=dict)


def make(name: str, overrides: Iterable[str], config_dir: str | None, root: Path, quiet: bool) -> Made:
    """Make the table ``name``.

    Args:
        name: ``gcg/t3``.
        overrides: Hydra overrides for every cell, ``table.rows=``, ``table.baseline=``.
        config_dir: a conf tree of the user's own.
        root: the working folder, which gets ``store/``, ``runs/`` and ``results/``.
        quiet: no progress.

    Raises:
        InputError: an unknown table, row or override, or data that the user named and that is not there.
    """
    wish = expand.request(name, list(overrides), config_dir, root)
    if wish.spec.kind == "card":
        return make_card(wish, config_dir, root)
    columns = expand.columns(wish, config_dir)
    found = expand.cells(wish, config_dir)
    lines = [_Line(cell, _paper(cell, config_dir, root), _declared(cell, wish, config_dir)) for cell in found]
    stem = f"{wish.spec.name}{wish.suffix}{_alterations(lines, wish)}"
    _decide(lines, wish, root)
    _apply_budget(lines, root)
    _drop_equal(lines)
    _compute(lines, root, quiet)
    scale = expand.compose_cached(wish.overrides, (), config_dir, lenient=True, root=root).config["scale"]["name"]
    return _write(wish, columns, lines, scale, root / "results" / scale / stem)


def _alterations(lines: list[_Line], wish: Request) -> str:
    """Return ``+KEY=VALUE…`` for the file's name where overrides alter results: the plain name is as declared."""
    if not any(altered(line.cell.composed, line.declared, scored=True) for line in lines):
        return ""
    others = [o for o in wish.overrides if o.partition("=")[0] not in KEPT]
    words = re.sub(r"[^\w.=+-]+", "-", ",".join(others)).strip("-")
    return "+" + (words if len(words) <= 60 else f"{words[:50]}-{digest(others)[:8]}")


def _declared(cell: CellConfig, wish: Request, config_dir: str | None) -> Composed:
    """Compose the cell as its YAMLs declare it at this scale and on this data set, without further overrides."""
    kept = [o for o in wish.overrides if o.partition("=")[0] in KEPT]
    return expand.compose_cached(kept, _base(cell), config_dir, lenient=True, root=wish.root)


def _paper(cell: CellConfig, config_dir: str | None, root: Path) -> Composed:
    """Compose what the paper's row names: the same cell at the paper's scale, without the user's overrides."""
    return expand.compose_cached(["scale=paper"], _base(cell), config_dir, root=root)


def _base(cell: CellConfig) -> list[str]:
    return [f"experiment={cell.row.experiment}", *cell.row.overrides, *expand.dataset_cell(cell.column)]


def _decide(lines: list[_Line], wish: Request, root: Path) -> None:
    """Find the reason why a row cannot run, before anything is computed."""
    for line in lines:
        config = line.cell.composed.config
        build_parts(config)
        line.stand_in = stand_ins(line.cell.composed, line.paper)
        missing = missing_models(config)
        line.without_weights = bool(missing)
        try:
            pipeline = Pipeline(config, Workspace(Store(root / "store"), quiet=True))
            line.keys = pipeline.keys
            if missing and not _done(line, root):  # what is done is shown without its weights
                line.reason = f"no weights: {', '.join(missing)}"
            elif pipeline.workspace.store.artefact("corpus", line.keys.corpus).finished is None:
                pipeline.data()
        except MissingDataError as error:
            if wish.suffix:  # the user named the data set
                raise
            line.reason = f"no weights: {', '.join(missing)}" if missing else str(error).partition(";")[0]
        if line.reason is None and line.cell.row.name not in wish.selected:
            line.reason = "not selected"


def _apply_budget(lines: list[_Line], root: Path) -> None:
    """Cut LLM rows to one seeded subset per data set where the whole table would exceed ``budget.hours``.

    Rows that were not selected count too: whichever rows are chosen, a row keeps its questions.
    """
    ready = [line for line in lines if line.reason in (None, "not selected") and not line.without_weights]
    limits = budgeted_limits([(line.cell.column.dataset, line.cell.composed.config) for line in ready], root)
    for line, limit in zip(ready, limits):
        if limit is None:
            continue
        if limit == 0:
            line.reason = "budget"
            continue
        line.cell.composed.config["dataset"]["limit"] = limit
        line.keys = keys(line.cell.composed.config)


def _drop_equal(lines: list[_Line]) -> None:
    """Compute rows that resolve to one run once."""
    first: dict[str, str] = {}
    chosen = [line for line in lines if line.reason is None]
    for line in [*chosen, *(line for line in lines if line.reason == "not selected")]:
        if line.keys is None:
            continue
        owner = first.setdefault(line.keys.run, line.cell.row.name)
        if owner != line.cell.row.name:
            line.reason = f"same stand-in as {owner}"


def _compute(lines: list[_Line], root: Path, quiet: bool) -> None:
    """Run what is to be run, stage by stage over all rows; a failed row keeps its reason, the others go on."""
    todo = [line for line in lines if line.reason is None and not _done(line, root)]
    labels = [f"{line.cell.row.name} on {line.cell.column.label}" for line in todo]
    results = execute_all([(label, line.cell.composed.config) for label, line in zip(labels, todo)], root, quiet)
    for line, result in zip(todo, results):
        if isinstance(result, Run):
            line.run, line.failed = result, result.metrics["n_failed"] > 0
        else:
            line.reason, line.failed = f"failed: {result}", True
    for line in lines:  # rows that were not selected show what is done
        if line.reason == "not selected" and _done(line, root):
            line.reason = None


def _done(line: _Line, root: Path) -> bool:
    """Take the finished run from its folder, if it is there and has nothing to retry."""
    if line.keys is None:
        return False
    run = Run(run_path(root, line.keys))
    if not (run.path / "metrics.json").is_file():
        return False
    try:
        metrics = run.metrics
    except InputError:  # damaged: made again from the store
        return False
    if metrics["n_failed"] or metrics["facts"].get("n_retry"):
        return False
    line.run = run
    return True


def _write(wish: Request, columns: list[expand.Column], lines: list[_Line], scale: str, stem: Path) -> Made:
    from graphcontext.table.render import write

    spec = wish.spec
    places = [
        _place(wish, column, row, metric, _line(lines, row, column))
        for column in columns
        for row in spec.rows
        for metric in spec.metrics
    ]
    tolerance = Tolerance(**{**spec.tolerance, "digits": spec.digits, "unit": spec.unit})
    result = TableResult(
        table=spec.name,
        title=spec.title,
        scale=scale,
        command=" ".join(["graphcontext table", spec.name, *_given(wish)]),
        rows=tuple(Row(r.name, r.label, spec.groups.get(r.group, r.group)) for r in spec.rows),
        columns=tuple(Column(c.dataset, c.label, tuple(spec.datasets[d] for d in c.stands_for)) for c in columns),
        metrics=tuple(Measure(m, label) for m, label in spec.metrics.items()),
        cells=make_cells(places, wish.baseline, tolerance, SEED),
        unit=spec.unit,
        digits=spec.digits,
        footnotes=tuple(_footnotes(wish, lines)),
        baseline=wish.baseline,
    )
    path, markdown = write(result, stem)
    return Made(path, markdown, result, sum(line.failed for line in lines), _nothing(wish, lines))


def _nothing(wish: Request, lines: list[_Line]) -> str:
    """Return why none of the chosen rows shows a number, empty where one does."""
    chosen = [line for line in lines if line.cell.row.name in wish.selected]
    if any(line.run is not None and line.reason is None for line in chosen):
        return ""
    names = {row.name: row.not_run for row in wish.spec.rows if row.name in wish.selected and row.not_run}
    return "; ".join(dict.fromkeys([*(line.reason or "" for line in chosen), *names.values()]))


def _given(wish: Request) -> list[str]:
    rows = f"table.rows={wish.rows}" if wish.rows else ""
    baseline = f"table.baseline={wish.baseline}" if wish.baseline != wish.spec.baseline else ""
    return [word for word in (*expand.shown(wish.overrides), rows, baseline) if word]


def _line(lines: list[_Line], row: SpecRow, column: expand.Column) -> _Line | None:
    return next((x for x in lines if x.cell.row == row and x.cell.column == column), None)


def _place(wish: Request, column: expand.Column, row: SpecRow, metric: str, line: _Line | None) -> Place:
    """Bring together what one cell is made from."""
    spec = wish.spec
    reported: Any = {spec.datasets[d]: row.reported.get(d, {}).get(metric) for d in column.stands_for}
    if len(column.stands_for) < 2:
        reported = next(iter(reported.values()), None)
    elif all(v is None for v in reported.values()):
        reported = None
    reason = row.not_run if line is None else line.reason
    if reason is None and line is not None and line.run is not None and metric not in line.run.metrics["metrics"]:
        reason = spec.missing_metrics.get(metric, f"metric {metric} was not computed")
    if reason is not None or line is None or line.run is None:
        return Place(row.name, column.dataset, metric, reported, Circumstances(not_run=reason or "not run yet"))
    scores = line.run.scores()
    ids = tuple(scores)
    values = np.array([scores[i][metric] for i in ids])
    extractor = "extractor" in line.cell.composed.config["enhancer"] and bool(spec.paper_choices.get("extractor"))
    circumstances = Circumstances(
        fallback=_mostly_fallen_back(line.run),
        stand_in=extractor
        or any(d != column.dataset for d in column.stands_for)
        or bool(stand_ins(line.cell.composed, line.paper, metric))
        or altered(line.cell.composed, line.declared, metric),
    )
    return Place(row.name, column.dataset, metric, reported, circumstances, RowScores(ids, values), line.run.path.name)


def _mostly_fallen_back(run: Run) -> bool:
    rows = read_lines(run.path / "rankings.jsonl")
    return sum(row.get("fallback") == "cosine" for row in rows) > len(rows) / 2


def _footnotes(wish: Request, lines: list[_Line]) -> list[str]:
    """Return what must be read with the numbers: substitutions, thresholds, fall-backs, counts, signatures."""
    spec = wish.spec
    ran = [line for line in lines if line.run is not None and line.reason is None]
    notes = _dataset_notes(spec, ran)
    notes += footnotes([(line.cell.row.name, line.stand_in) for line in ran])
    if any("extractor" in line.cell.composed.config["enhancer"] for line in ran) and "extractor" in spec.paper_choices:
        notes.append(f"extractor: the paper's is {spec.paper_choices['extractor']}, ours another")
    others = [o for o in wish.overrides if not o.startswith("scale=")]  # the scale stands above
    if others:
        notes.append(f"overrides: {' '.join(expand.shown(others))}")
    several = len({line.cell.column for line in ran}) > 1
    common: dict[str, list[str]] = {}
    for line in ran:
        done = line.run.metrics  # type: ignore[union-attr]
        words = {"failed": "failed", "empty": "empty", "truncated": "cut at max_new_tokens"}
        counts = [f"{done['n_' + k]} {word}" for k, word in words.items() if done["n_" + k]]
        said = [f"n={done['n']}" + (f" ({', '.join(counts)})" if counts else "")]
        for text in [*said, *describe(done["facts"], done["n"])]:
            name = f"{line.cell.row.name} on {line.cell.column.label}" if several else line.cell.row.name
            common.setdefault(text, []).append(name)
    for text, rows in common.items():
        notes.append(text if len(rows) == len(ran) else f"{text}: {', '.join(rows)}")
    signatures = {m["signature"] for line in ran for k, m in line.run.metrics["metrics"].items() if k in spec.metrics}
    notes += [f"metric: {signature.replace('|', ', ')}" for signature in sorted(signatures)]
    return [*notes, *spec.notes]


def _dataset_notes(spec: Spec, lines: list[_Line]) -> list[str]:
    """Say for which of the paper's data sets another stands in."""
    columns = list(dict.fromkeys(line.cell.column for line in lines))
    found = {c: [spec.datasets[d] for d in c.stands_for if d != c.dataset] for c in columns}
    notes = [f"dataset: {c.dataset} stands in for {', '.join(labels)}" for c, labels in found.items() if labels]
    own = [c.label for c in columns if not c.stands_for]
    return notes + [f"dataset: {label}, chosen by you: no numbers of the paper stand beside it" for label in own]
