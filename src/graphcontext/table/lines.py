"""The rows of a table on its data sets: what is not run and why, what is computed, what is done already."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from graphcontext.config import Composed
from graphcontext.errors import InputError, MissingDataError, MissingSourceError
from graphcontext.files import digest
from graphcontext.pipeline import Keys, Pipeline, build_parts, keys
from graphcontext.plan import budgeted_limits
from graphcontext.prepare import check_servers, missing_models, untrained
from graphcontext.runs import Run, execute_all, run_path
from graphcontext.stage import weights_digest
from graphcontext.store import Store, Workspace
from graphcontext.table import expand
from graphcontext.table.expand import CellConfig, Request
from graphcontext.table.spec import Row
from graphcontext.table.substitutions import altered, stand_ins
from graphcontext.train.launch import launch
from graphcontext.train.trained import STAGE

KEPT = ("scale", "dataset", "dataset.path")  # overrides that a table's file is named by otherwise


@dataclass
class Line:
    """One row on one data set, as it becomes known.

    Args:
        cell: its config.
        paper: what the paper's row names.
        declared: the row as its YAMLs declare it, without the user's overrides.
        keys: cache keys; None where its data is not here.
        reason: why it is not run.
        run: the finished run.
        failed: its run failed in whole or in part.
        without_weights: a model of it is not on this machine.
        stand_in: group → (the paper's option, ours).
    """

    cell: CellConfig
    paper: Composed
    declared: Composed
    keys: Keys | None = None
    reason: str | None = None
    run: Run | None = None
    failed: bool = False
    without_weights: bool = False
    stand_in: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def ran(self) -> bool:
        """Whether it shows a number."""
        return self.run is not None and self.reason is None


@dataclass(frozen=True)
class Lines:
    """All rows of a table as it was asked for, computed.

    Args:
        wish: the table and the user's overrides.
        columns: data sets.
        lines: every row that has an experiment, on every column.
        scale: ``sample``, ``small`` or ``paper``.
        stem: path of the table's files without ending.
        root: the working folder.
    """

    wish: Request
    columns: list[expand.Column]
    lines: list[Line]
    scale: str
    stem: Path
    root: Path

    def of(self, row: Row | str, column: expand.Column) -> Line | None:
        """Return a row's line on one data set; None for a row without experiment."""
        name = row if isinstance(row, str) else row.name
        return next((x for x in self.lines if x.cell.row.name == name and x.cell.column == column), None)

    @property
    def ran(self) -> list[Line]:
        """Return the lines that show a number."""
        return [line for line in self.lines if line.ran]

    @property
    def n_failed(self) -> int:
        return sum(line.failed for line in self.lines)

    @property
    def command(self) -> str:
        """Return the command that makes this table."""
        wish = self.wish
        rows = f"table.rows={wish.rows}" if wish.rows else ""
        baseline = f"table.baseline={wish.baseline or 'null'}" if wish.baseline != wish.spec.baseline else ""
        words = ["graphcontext table", wish.spec.name, *expand.shown(wish.overrides), rows, baseline]
        return " ".join(word for word in words if word)

    @property
    def nothing(self) -> str:
        """Return why none of the chosen rows shows a number, empty where one does."""
        wish = self.wish
        chosen = [line for line in self.lines if line.cell.row.name in wish.selected]
        if any(line.ran for line in chosen):
            return ""
        names = {row.name: row.not_run for row in wish.spec.rows if row.name in wish.selected and row.not_run}
        return "; ".join(dict.fromkeys([*(line.reason or "" for line in chosen), *names.values()]))


def compute(wish: Request, config_dir: str | None, root: Path, quiet: bool) -> Lines:
    """Run what the table lacks.

    Args:
        wish: the table as asked for.
        config_dir: a conf tree of the user's own.
        root: the working folder, which gets ``store/`` and ``runs/``.
        quiet: no progress.

    Raises:
        InputError: a faulty row or override, or data that the user named and that is not there.
    """
    found = declare(wish, config_dir, root)
    _decide(found.lines, wish, config_dir, root)
    _apply_budget(found.lines, root)
    _drop_equal(found.lines)
    _train(found.lines, root, quiet)
    _compute(found.lines, root, quiet)
    return found


def declare(wish: Request, config_dir: str | None, root: Path) -> Lines:
    """Compose a table's rows and name its files; nothing is looked for or run."""
    columns = expand.columns(wish, config_dir)
    found = expand.cells(wish, config_dir)
    lines = [Line(cell, _paper(cell, config_dir, root), _declared(cell, wish, config_dir)) for cell in found]
    stem = f"{wish.spec.name}{wish.suffix}{_alterations(lines, wish)}"
    scale = expand.compose_cached(wish.overrides, (), config_dir, lenient=True, root=root).config["scale"]["name"]
    return Lines(wish, columns, lines, scale, root / "results" / scale / stem, root)


def _alterations(lines: list[Line], wish: Request) -> str:
    """Return ``+KEY=VALUE…`` for the file's name where overrides alter the table: the plain name is as declared."""
    others = any(altered(line.cell.composed, line.declared, scored=True) for line in lines)
    return name_of(wish) if others or wish.baseline != wish.spec.baseline else ""


def name_of(wish: Request) -> str:
    """Return the overrides of a table as the end of a file's name."""
    others = [o for o in wish.overrides if o.partition("=")[0] not in KEPT]
    others += [f"table.baseline={wish.baseline or 'null'}"] if wish.baseline != wish.spec.baseline else []
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


def _decide(lines: list[Line], wish: Request, config_dir: str | None, root: Path) -> None:
    """Find the reason why a row cannot run, before anything is computed."""
    for line in lines:
        config = line.cell.composed.config
        try:
            build_parts(config)
        except InputError as error:
            if line.cell.row.name in wish.selected and not _is_odd(line, wish, config_dir):
                raise
            line.reason = str(error)
            continue
        for metric in wish.spec.metrics or [None]:
            line.stand_in |= stand_ins(line.cell.composed, line.paper, metric)
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
            if wish.suffix and not isinstance(error, MissingSourceError):  # the user named the data set
                raise
            line.reason = f"no weights: {', '.join(missing)}" if missing else str(error).partition(";")[0]
        if line.reason is None and line.cell.row.name not in wish.selected:
            line.reason = "not selected"
        if line.reason is None and not _done(line, root):
            check_servers(config)


def _is_odd(line: Line, wish: Request, config_dir: str | None) -> bool:
    """Tell whether a row's own overrides (``llm.adapter=…``) are why it cannot follow the user's, which are right."""
    cell = line.cell
    plain = [f"experiment={cell.row.experiment}", *expand.dataset_cell(cell.column)]
    try:
        build_parts(expand.compose_cached(wish.overrides, plain, config_dir, lenient=True, root=wish.root).config)
    except InputError:
        return False
    return True


def _apply_budget(lines: list[Line], root: Path) -> None:
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


def _drop_equal(lines: list[Line]) -> None:
    """Compute rows that resolve to one run once."""
    first: dict[str, str] = {}
    chosen = [line for line in lines if line.reason is None]
    for line in [*chosen, *(line for line in lines if line.reason == "not selected")]:
        if line.keys is None:
            continue
        owner = first.setdefault(line.keys.run, line.cell.row.name)
        if owner != line.cell.row.name:
            line.reason = f"same stand-in as {owner}"


def _train(lines: list[Line], root: Path, quiet: bool) -> None:
    """Train each adapter that a row needs and that is not there yet, once; a row whose training fails says so."""
    failed: dict[str, str | None] = {}
    for line in lines:
        if line.reason is not None or _done(line, root):
            continue
        for adapter in untrained(line.cell.composed.config, root):
            if adapter.key not in failed:
                failed[adapter.key] = launch(adapter, root, quiet)
            why = failed[adapter.key]
            if why is not None:
                line.reason, line.failed = f"failed: training {adapter.experiment}: {why}", True


def _compute(lines: list[Line], root: Path, quiet: bool) -> None:
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


def _tuned_since(run: Run, root: Path) -> bool:
    """Tell whether an adapter that a run took has been trained again and has other weights now."""
    for name, known in run.manifest["stages"].items():
        artefact = Store(root / "store").artefact(STAGE, known["key"])
        if name.startswith("adapter:") and artefact.finished and weights_digest(artefact) != known["content"]:
            return True
    return False


def _done(line: Line, root: Path) -> bool:
    """Take the finished run from its folder, if it is there and has nothing to retry."""
    if line.keys is None:
        return False
    run = Run(run_path(root, line.keys))
    if not run.is_whole():  # not there yet, or damaged: made again from the store
        return False
    metrics = run.metrics
    if metrics["n_failed"] or metrics["facts"].get("n_retry") or _tuned_since(run, root):
        return False
    line.run = run
    return True
