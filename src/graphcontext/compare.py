"""``compare``: which of two runs is better, by how much, and on which items."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphcontext.errors import InputError
from graphcontext.evaluate.statistics import paired_difference
from graphcontext.run_folder import Run
from graphcontext.show import name

IGNORED = ("roles",)  # what components use of them stands in the components


def compare_runs(first: Run, second: Run, seed: int = 0, most: int = 5) -> str:
    """Compare two runs on the items they share; positive differences favour the second.

    Args:
        first, second: finished runs.
        seed: of the bootstrap and the permutations.
        most: items listed per side.

    Raises:
        InputError: they share no item; one id with two questions (two sites' dumps) is not shared.
    """
    a, b = first.scores(), second.scores()
    asked_a, asked_b = ({q.id: q.text for q in run.questions()} for run in (first, second))
    shared = [i for i in a if i in b and asked_a[i] == asked_b[i]]
    if not shared:
        raise InputError(f"{first.path} and {second.path} share no item: other data, split or limit")
    lines = [f"A  {name(first)}", f"B  {name(second)}", "", "config (A → B)"]
    changed = difference(first.config, second.config)
    lines += [f"  {key}: {left} → {right}" for key, (left, right) in changed.items()] or ["  equal"]
    only = len(a) + len(b) - 2 * len(shared)
    lines += ["", f"{len(shared)} shared items" + (f", {only} in one run only, left out" if only else "")]
    metrics = [m for m in first.metrics["metrics"] if m in second.metrics["metrics"]]
    lines.append(f"  {'metric':16}{'A':>8}{'B':>8}{'B - A':>9}   {'95% interval':18}{'p':>8}  won  lost  tied")
    for metric in metrics:
        both = [i for i in shared if metric in a[i] and metric in b[i]]  # of a further column not every item
        if not both:
            continue
        x = np.array([a[i][metric] for i in both])
        y = np.array([b[i][metric] for i in both])
        found = paired_difference(y, x, seed=seed)
        won, lost = int((y > x).sum()), int((y < x).sum())
        interval = f"[{found.low:+.4f}, {found.high:+.4f}]"
        lines.append(
            f"  {metric:16}{x.mean():8.4f}{y.mean():8.4f}{found.diff:+9.4f}   {interval:18}{found.p:8.4f}"
            f"{won:5}{lost:6}{len(both) - won - lost:6}"
        )
    alone = [f"{m} ({w} only)" for w, x, y in (("A", first, second), ("B", second, first)) for m in _lacks(x, y)]
    if alone:
        lines.append(f"  not in both: {', '.join(alone)}")
    lines.append("  (p: paired permutation test, not corrected for the number of metrics)")
    lines += _items(first, second, shared, metrics, most)
    return "\n".join(lines)


def _lacks(first: Run, second: Run) -> list[str]:
    """Return the metrics of the first run that the second was not scored by."""
    return [m for m in first.metrics["metrics"] if m not in second.metrics["metrics"]]


def _items(first: Run, second: Run, shared: list[str], metrics: list[str], most: int) -> list[str]:
    """List the items that differ most by the first metric."""
    if not metrics:
        return []
    metric = metrics[0]
    a, b = first.scores(), second.scores()
    titles = {q.id: q.title or q.text for q in first.questions()}
    ordered = sorted(shared, key=lambda i: (b[i][metric] - a[i][metric], i))
    lines = []
    for heading, chosen in (("B better", ordered[::-1]), ("A better", ordered)):
        sign = 1 if heading == "B better" else -1
        listed = [i for i in chosen if sign * (b[i][metric] - a[i][metric]) > 0][:most]
        lines += [
            "",
            f"{heading} by {metric}: {len([i for i in shared if sign * (b[i][metric] - a[i][metric]) > 0])} items",
        ]
        lines += [f"  {b[i][metric] - a[i][metric]:+.4f}  {i}  {titles[i][:70]}" for i in listed]
    lines += ["", f"look: graphcontext show {first.path.name} {second.path.name} --item ID"]
    return lines


def difference(first: dict[str, Any], second: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return dotted key → (value in first, value in second) for every leaf that differs."""
    a, b = flatten(first), flatten(second)
    keys = [k for k in [*a, *(k for k in b if k not in a)] if a.get(k, "-") != b.get(k, "-")]
    return {k: (a.get(k, "-"), b.get(k, "-")) for k in keys if k.split(".")[0] not in IGNORED}


def flatten(node: Any, prefix: str = "") -> dict[str, Any]:
    """Return dotted key → leaf of nested dicts; lists are leaves."""
    if not isinstance(node, dict):
        return {prefix: node}
    flat: dict[str, Any] = {}
    for key, value in node.items():
        flat |= flatten(value, f"{prefix}.{key}" if prefix else key)
    return flat
