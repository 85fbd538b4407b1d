"""What a table lacks is run: which rows cannot be and why, what is trained first, what is done already."""

from __future__ import annotations

from pathlib import Path

from graphcontext.errors import InputError, MissingDataError, MissingSourceError
from graphcontext.keys import keys
from graphcontext.pipeline import Pipeline, build_parts
from graphcontext.plan import budgeted_limits
from graphcontext.prepare import check_servers, missing_models, untrained
from graphcontext.run_folder import Run, run_path
from graphcontext.runs import execute_all
from graphcontext.stage import weights_digest
from graphcontext.store import Store, Workspace
from graphcontext.table import expand
from graphcontext.table.expand import Request
from graphcontext.table.lines import Line, Lines, declare
from graphcontext.table.substitutions import stand_ins
from graphcontext.train.launch import launch
from graphcontext.train.trained import STAGE


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
        if line.keys is None or line.is_whole:  # what two rows retrieve may be one: it is shown for both
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
    once = list({line.keys.run: line for line in reversed(todo)}.values())[::-1]  # rows may retrieve alike
    labels = [f"{line.name} on {line.cell.column.label}" for line in once]
    results = execute_all([(label, line.cell.composed.config) for label, line in zip(labels, once)], root, quiet)
    by_key = {line.keys.run: result for line, result in zip(once, results)}
    for line in todo:
        result = by_key[line.keys.run]
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
