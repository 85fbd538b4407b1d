"""A table as its YAML declares it: rows, columns, metrics, reported numbers."""

from __future__ import annotations

import dataclasses
import importlib
from dataclasses import dataclass, field
from typing import Any

from graphcontext.conf_tree import conf_dirs, options
from graphcontext.errors import InputError, did_you_mean
from graphcontext.evaluate.columns import option_of
from graphcontext.table.cells import UNITS

KINDS = ("untrained", "supervised")
# each kind of table is a module of this package
TABLE_KINDS = (
    *("scores", "sweep", "curves", "histogram", "ratings"),
    *("retrieved", "examples", "context", "prompts", "settings", "card"),
)


@dataclass(frozen=True)
class Row:
    """One row of a table: an experiment and its overrides, or the reason why it cannot run."""

    name: str
    label: str
    group: str = ""
    kind: str = "untrained"
    experiment: str | None = None
    overrides: tuple[str, ...] = ()
    not_run: str | None = None
    reported: dict[str, dict[str, float]] = field(default_factory=dict)
    rank: float | None = None  # the paper's mean rank


@dataclass(frozen=True)
class Spec:
    """A table as its YAML declares it.

    Args:
        name: ``gcg/t3``.
        datasets: dataset option → the paper's column label.
        metrics: metric, or a further column of one (``em_answered``, ``recall@5``) → the paper's label.
        missing_metrics: metric → why no cell of it can run.
        unit: the paper's: ``fraction``, ``percent``, ``count``, or ``mixed`` where each metric has its own.
        digits: printed after the decimal point.
        tolerance: ``close``, on the paper's scale.
        baseline: row that the others are tested against.
        paper_choices: group → what the paper's rows use.
        kind: a module of this package: ``scores``, ``sweep``, ``curves``, ``histogram``, ``examples``, ``retrieved``,
            ``context``, ``prompts``, ``settings``, ``ratings``, or ``card`` for data set statistics.
        view: what that kind shows; its module says which keys.
        whole: metrics of retrieval that are scored on all questions, although answers are given to some of them
            (``dataset.limit``, ``budget.hours``); rows that ask an LLM to retrieve are scored on those.
        rank: metrics of which each row's mean rank is shown.
    """

    name: str
    title: str
    paper: str
    datasets: dict[str, str]
    metrics: dict[str, str] = field(default_factory=dict)
    rows: tuple[Row, ...] = ()
    groups: dict[str, str] = field(default_factory=dict)
    missing_metrics: dict[str, str] = field(default_factory=dict)
    unit: str = "fraction"
    digits: int = 3
    tolerance: dict[str, float] = field(default_factory=dict)
    baseline: str | None = None
    paper_choices: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    kind: str = "scores"
    view: dict[str, Any] = field(default_factory=dict)
    whole: tuple[str, ...] = ()
    rank: tuple[str, ...] = ()

    @property
    def other_metrics(self) -> tuple[str, ...]:
        """Return the metrics that are no option of the group: those that no cell can run, and the kind's own."""
        if self.kind not in TABLE_KINDS:
            return tuple(self.missing_metrics)
        own = getattr(importlib.import_module(f"graphcontext.table.{self.kind}"), "METRICS", ())
        return (*self.missing_metrics, *own)

    def viewed(self) -> dict[str, Any]:
        """Return ``view`` with the defaults of the kind, its module's ``VIEW``; ``...`` marks what must be given.

        Raises:
            InputError: an unknown or a missing key.
        """
        defaults = getattr(importlib.import_module(f"graphcontext.table.{self.kind}"), "VIEW", {})
        for key in self.view:
            if key not in defaults:
                raise InputError(f"table {self.name}: view.{key}: no such key{did_you_mean(key, defaults)}")
        found = {**defaults, **self.view}
        missing = [key for key, value in found.items() if value is ...]
        if missing:
            raise InputError(f"table {self.name}: kind {self.kind} needs view.{missing[0]}")
        return found


def load_spec(name: str, config_dir: str | None = None) -> Spec:
    """Read ``conf/table/<name>.yaml``.

    Raises:
        InputError: no such table, or an unknown or missing key in its YAML.
    """
    import yaml

    allowed = options("table", config_dir)
    if name not in allowed:
        known = name in options("experiment", config_dir)
        hint = f"; did you mean experiment={name}?" if known else did_you_mean(name, allowed, most=70)
        raise InputError(f"table {name!r}: no such table{hint}")
    path = next(r / "table" / f"{name}.yaml" for r in conf_dirs(config_dir) if (r / "table" / f"{name}.yaml").is_file())
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise InputError(f"{path}: {' '.join(str(error).split())}") from error
    if not isinstance(raw, dict):
        raise InputError(f"{path}: a table's YAML holds keys ({', '.join(f.name for f in dataclasses.fields(Spec))})")
    rows = tuple(_build(Row, row, f"{path.name} row") for row in raw.pop("rows", None) or [])
    spec = _build(Spec, {"name": name, **raw, "rows": rows}, path.name)
    _check_spec(spec, path.name, config_dir)
    return spec


def _check_spec(spec: Spec, where: str, config_dir: str | None) -> None:
    """Check the names in a table's YAML against each other and against the config groups."""
    names = [row.name for row in spec.rows]
    metrics = [*options("metric", config_dir), *spec.other_metrics]
    metrics += [m for m in spec.metrics if option_of(m, metrics)]
    allowed: list[tuple[str, str, Any]] = [
        *((f"{where}, row {row.name}: kind", row.kind, KINDS) for row in spec.rows),
        *((f"{where}: dataset", d, options("dataset", config_dir)) for d in spec.datasets),
        *((f"{where}: metric", m, metrics) for m in spec.metrics),
        *((f"{where}: tolerance", key, ("close",)) for key in spec.tolerance),
        *((f"{where}: whole", m, spec.metrics) for m in spec.whole),
        *((f"{where}: rank", m, spec.metrics) for m in spec.rank),
        (f"{where}: unit", spec.unit, UNITS),
        (f"{where}: kind", spec.kind, TABLE_KINDS),
    ]
    if spec.baseline is not None:
        allowed.append((f"{where}: baseline", spec.baseline, names))
    for row in spec.rows:
        at = f"{where}, row {row.name}"
        if row.experiment is not None:
            allowed.append((f"{at}: experiment", row.experiment, options("experiment", config_dir)))
        allowed += [(f"{at}: reported", d, spec.datasets) for d in row.reported]
        allowed += [(f"{at}: reported", m, spec.metrics) for numbers in row.reported.values() for m in numbers]
        if (row.experiment is None) == (row.not_run is None):
            raise InputError(f"{at}: it needs an experiment, or the reason why it is not_run")
    for what, name, names_allowed in allowed:
        if name not in names_allowed:
            raise InputError(f"{what} {name!r} is unknown{did_you_mean(str(name), names_allowed)}")
    spec.viewed()
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise InputError(f"{where}: two rows are named {twice[0]}")


def _build(cls: type, raw: dict[str, Any], where: str) -> Any:
    if not isinstance(raw, dict):
        raise InputError(f"{where}: {raw!r} has no keys")
    known = {f.name: f for f in dataclasses.fields(cls)}
    for key in raw:
        if key not in known:
            raise InputError(f"{where}: no such key {key!r}{did_you_mean(key, known)}")
    try:
        return cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in raw.items()})
    except TypeError as error:
        raise InputError(f"{where}: {error}") from error
