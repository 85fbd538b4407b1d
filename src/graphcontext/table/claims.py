"""What a paper states of its rows, as ``conf/claims/<paper>.yaml`` declares it: two cells, a relation, a place."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from graphcontext.conf_tree import conf_dirs, options
from graphcontext.errors import InputError, did_you_mean
from graphcontext.table.spec import Spec, load_spec

KEYS = ("paper", "claims")
CLAIM_KEYS = ("id", "text", "place", "left", "right", "relation", "dataset", "paired")
LEFT_KEYS = ("table", "row", "metric")
RIGHT_KEYS = ("table", "row", "value")
COMPARES: dict[str, Callable[[float, float], bool]] = {
    "greater": operator.gt,
    "greater_or_equal": operator.ge,
    "less": operator.lt,
    "less_or_equal": operator.le,
}
SIGNS = {"greater": ">", "greater_or_equal": "≥", "less": "<", "less_or_equal": "≤"}


@dataclass(frozen=True)
class Side:
    """One side of a claim: rows of a table, each compared, or a number in the table's unit."""

    table: str
    rows: tuple[str, ...] = ()
    value: float | None = None

    def names(self) -> tuple[str, ...]:
        """Return what is compared: the rows, or the number as text."""
        return self.rows if self.value is None else (f"{self.value:g}",)


@dataclass(frozen=True)
class Claim:
    """One ordering that a paper states, in our words.

    Args:
        id: its name.
        text: what is stated.
        place: section or table of the paper.
        left, right: what is compared; every left row with every right one, unless paired.
        relation: ``greater``, ``greater_or_equal``, ``less`` or ``less_or_equal``, of left to right.
        metrics: those that it is stated of; all that both tables have where none is named.
        datasets: dataset options that it is stated of, likewise.
        paired: whether the first left row is compared with the first right one, the second with the second, …
    """

    id: str
    text: str
    place: str
    left: Side
    right: Side
    relation: str
    metrics: tuple[str, ...]
    datasets: tuple[str, ...]
    paired: bool = False

    @property
    def tables(self) -> tuple[str, ...]:
        """Return the tables that it speaks of, left first."""
        return tuple(dict.fromkeys((self.left.table, self.right.table)))

    @property
    def rises(self) -> bool:
        """Whether the left side is stated to be the higher one."""
        return self.relation.startswith("greater")

    def pairs(self) -> list[tuple[str, str]]:
        """Return (left, right) of each comparison."""
        if self.paired:
            return list(zip(self.left.names(), self.right.names(), strict=True))
        return [(a, b) for a in self.left.names() for b in self.right.names()]


@dataclass(frozen=True)
class Claims:
    """All claims of one paper: its key (``gcg``), its citation, and the tables that they speak of."""

    name: str
    paper: str
    claims: tuple[Claim, ...]
    specs: dict[str, Spec]


@dataclass(frozen=True)
class Agreement:
    """Whether two numbers that the paper reports stand as it states."""

    left_row: str
    right_row: str
    dataset: str
    metric: str
    left: float
    right: float
    agrees: bool


def reported(claim: Claim, specs: dict[str, Spec]) -> list[Agreement]:
    """Compare the paper's own numbers; a pair of which one is not reported is left out."""
    found = []
    for a, b in claim.pairs():
        for dataset in claim.datasets:
            for metric in claim.metrics:
                left = _number(specs[claim.left.table], a, dataset, metric)
                right = claim.right.value
                if right is None:
                    right = _number(specs[claim.right.table], b, dataset, metric)
                if left is not None and right is not None:
                    agrees = COMPARES[claim.relation](left, right)
                    found.append(Agreement(a, b, dataset, metric, left, right, agrees))
    return found


def _number(spec: Spec, row: str, dataset: str, metric: str) -> float | None:
    declared = next(r for r in spec.rows if r.name == row)
    return declared.reported.get(dataset, {}).get(metric)


def load_claims(name: str, config_dir: str | None = None) -> Claims:
    """Read ``conf/claims/<name>.yaml``.

    Raises:
        InputError: no such paper, or what is wrong in the file, all faults in one line.
    """
    found, faults = read_claims(name, config_dir)
    if found is None or faults:
        raise InputError("; ".join(faults))
    return found


def read_claims(name: str, config_dir: str | None = None) -> tuple[Claims | None, list[str]]:
    """Read a paper's claims; what is wrong with the file or with single claims is returned, not raised.

    Raises:
        InputError: there is no such paper.
    """
    import yaml

    allowed = options("claims", config_dir)
    if name not in allowed:
        raise InputError(f"claims {name!r}: no such paper{did_you_mean(name, allowed, most=20)}")
    at = f"claims/{name}.yaml"
    path = next(root / at for root in conf_dirs(config_dir) if (root / at).is_file())
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        return None, [f"{at}: {' '.join(str(error).split())}"]
    if not isinstance(raw, dict) or not isinstance(raw.get("claims"), list):
        return None, [f"{at}: it needs the keys paper and claims (a list)"]
    faults = [f"{at}: no such key {k!r}{did_you_mean(k, KEYS)}" for k in raw if k not in KEYS]
    specs: dict[str, Spec] = {}
    claims: list[Claim] = []
    for number, entry in enumerate(raw["claims"], 1):
        known = str(entry.get("id") or f"number {number}") if isinstance(entry, dict) else f"number {number}"
        try:
            claims.append(_claim(entry, specs, config_dir))
        except InputError as error:
            faults.append(f"{at}, claim {known}: {error}")
    ids = [claim.id for claim in claims]
    faults += [f"{at}: two claims are named {i}" for i in dict.fromkeys(ids) if ids.count(i) > 1]
    return Claims(name, str(raw.get("paper") or name), tuple(claims), specs), faults


def _claim(entry: Any, specs: dict[str, Spec], config_dir: str | None) -> Claim:
    given = _keys("", entry, CLAIM_KEYS, ("id", "text", "place", "left", "right", "relation"))
    left_given = _keys("left", given["left"], LEFT_KEYS, ("table", "row"))
    right_given = _keys("right", given["right"], RIGHT_KEYS, ())
    table = str(left_given["table"])
    left = Side(table, _list(left_given["row"]))
    right = _right(right_given, table)
    for side in (left, right):
        if side.table not in specs:
            specs[side.table] = load_spec(side.table, config_dir)
    both = specs[table], specs[right.table]
    metrics = _list(left_given["metric"]) if "metric" in left_given else _shared(*(spec.metrics for spec in both))
    datasets = _list(given["dataset"]) if "dataset" in given else _shared(*(spec.datasets for spec in both))
    words = {key: str(given[key]) for key in ("id", "text", "place", "relation")}
    paired = _paired(given, left, right)
    claim = Claim(**words, left=left, right=right, metrics=metrics, datasets=datasets, paired=paired)
    for what, name, allowed in _named(claim, specs):
        if name not in allowed:
            raise InputError(f"{what} {name!r} is unknown{did_you_mean(name, allowed, most=20)}")
    return claim


def _right(given: dict[str, Any], table: str) -> Side:
    if ("row" in given) == ("value" in given):
        raise InputError("right needs either a row or a value")
    if "row" in given:
        return Side(str(given.get("table", table)), _list(given["row"]))
    value = given["value"]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"right.value={value!r}; allowed: a number in the table's unit")
    return Side(table, value=float(value))


def _paired(given: dict[str, Any], left: Side, right: Side) -> bool:
    paired = given.get("paired", False)
    if not isinstance(paired, bool):
        raise InputError(f"paired={paired!r}; allowed: true, false")
    if paired and (right.value is not None or len(left.rows) != len(right.rows)):
        raise InputError(f"paired: rows left {len(left.rows)}, right {len(right.rows)}; allowed: as many right as left")
    return paired


def _named(claim: Claim, specs: dict[str, Spec]) -> Iterator[tuple[str, str, Any]]:
    """Yield (what, name, allowed names) of all that a claim names."""
    yield "relation", claim.relation, tuple(COMPARES)
    for where, side in (("left", claim.left), ("right", claim.right)):
        spec = specs[side.table]
        yield from ((f"{where}.row", row, [r.name for r in spec.rows]) for row in side.rows)
        yield from ((f"{where}.metric", metric, tuple(spec.metrics)) for metric in claim.metrics)
        yield from (("dataset", dataset, tuple(spec.datasets)) for dataset in claim.datasets)


def _keys(where: str, entry: Any, allowed: tuple[str, ...], needed: tuple[str, ...]) -> dict[str, Any]:
    at = f"{where}: " if where else ""
    if not isinstance(entry, dict):
        raise InputError(f"{at}{entry!r} has no keys{did_you_mean('', allowed)}")
    for key in entry:
        if key not in allowed:
            raise InputError(f"{at}no such key {key!r}{did_you_mean(str(key), allowed)}")
    missing = [key for key in needed if entry.get(key) in (None, "", [])]
    if missing:
        raise InputError(f"{at}it needs {', '.join(missing)}")
    return entry


def _shared(left: dict[str, str], right: dict[str, str]) -> tuple[str, ...]:
    return tuple(name for name in left if name in right)


def _list(value: Any) -> tuple[str, ...]:
    return tuple(str(v) for v in value) if isinstance(value, list) else (str(value),)
