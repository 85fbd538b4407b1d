"""From per-item scores to cells: interval, paired test against the baseline, and status."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from graphcontext.errors import InputError
from graphcontext.evaluate.statistics import (
    Difference,
    bootstrap_mean,
    holm,
    paired_difference,
    seed_deviation,
)
from graphcontext.table.cells import Cell, Reported, unit_factor


@dataclass(frozen=True, eq=False)
class RowScores:
    """The per-item scores of one row under one metric, fractions.

    Args:
        ids: the items, in the order of the scores.
        scores: shape (n_items,), or (n_seeds, n_items) for several seeds.
    """

    ids: tuple[str, ...]
    scores: np.ndarray

    def of(self, ids: Iterable[str]) -> np.ndarray:
        """Return the scores of ``ids`` in that order, shape (n_seeds, n_ids)."""
        place = {item: position for position, item in enumerate(self.ids)}
        return np.atleast_2d(self.scores)[:, [place[item] for item in ids]]


@dataclass(frozen=True)
class Tolerance:
    """How near our number must be to the paper's.

    Args:
        close: largest difference that is ``close``, on the 0–1 scale.
        digits: digits that the paper prints after the point, in its unit.
        unit: the paper's unit.
    """

    close: float = 0.02
    digits: int = 3
    unit: str = "fraction"


@dataclass(frozen=True)
class Circumstances:
    """What about a row decides its status before any number does.

    Args:
        not_run: why it wasn't run, such as ``no weights: rebel_large``; None where it was.
        fallback: over half of its items took a fall-back (PageRank without a seed).
        stand_in: its data set, model or extractor is another than the paper row's.
    """

    not_run: str | None = None
    fallback: bool = False
    stand_in: bool = False


@dataclass(frozen=True, eq=False)
class Place:
    """One cell to fill: where it stands, what the paper says, and the scores of its run if there is one.

    ``ranking`` is the key of what is scored where that is the ranking alone: rows that share it are no comparison.
    """

    row: str
    column: str
    metric: str
    reported: Reported = None
    circumstances: Circumstances = Circumstances()
    scores: RowScores | None = None
    run: str | None = None
    ranking: str | None = None


def cell_status(
    value: float | None,
    ci95: tuple[float, float] | None,
    reported: Reported,
    tolerance: Tolerance,
    circumstances: Circumstances,
    n: int | None = None,
) -> str:
    """Return a cell's status, the first of these that applies.

    1. ``not run (reason)``; 2. ``fallback``; 3. ``stand-in``; 4. ``not reported``;
    5. ``ok``: the difference is within half the last printed digit, or the paper's number lies inside our
    interval and that interval's half-width is at most ``tolerance.close``;
    6. ``close``: the difference is at most ``tolerance.close``;
    7. ``underpowered``: the half-width is over ``tolerance.close``, and the interval widened by
    ``tolerance.close`` on both sides holds the paper's number, so that a close value isn't excluded;
    8. ``off``.

    Of several reported numbers (columns that fell together) the least favourable one decides.

    Args:
        value: ours, in the paper's unit; None without a run.
        ci95: our interval, in the paper's unit. Where all items are equal the bootstrap gives it no width: as many as
            3 in n may then be otherwise (rule of three, Hanley and Lippman-Hand 1983), by 1 on the 0–1 scale.
        reported: the paper's.
        n: items; None where nothing is known of how far an interval without width is from the truth.
    """
    if circumstances.not_run is not None:
        return f"not run ({circumstances.not_run})"
    if value is None or ci95 is None:
        raise InputError("a cell without a value needs the reason why it was not run")
    if circumstances.fallback:
        return "fallback"
    if circumstances.stand_in:
        return "stand-in"
    numbers = [n for n in (reported.values() if isinstance(reported, dict) else [reported]) if n is not None]
    if not numbers:
        return "not reported"
    order = ("ok", "close", "underpowered", "off")
    if ci95[0] == ci95[1]:
        spread = 3 / n * unit_factor(tolerance.unit) if n else math.inf
        ci95 = (value - spread, value + spread)
    return max((_nearness(value, ci95, number, tolerance) for number in numbers), key=order.index)


def _nearness(value: float, ci95: tuple[float, float], reported: float, tolerance: Tolerance) -> str:
    close = tolerance.close * unit_factor(tolerance.unit) + 1e-9  # 1e-9: .52 − .50 counts as .02
    distance, half_width = abs(value - reported), (ci95[1] - ci95[0]) / 2
    if distance <= 0.5 * 10.0**-tolerance.digits + 1e-9:
        return "ok"
    if ci95[0] <= reported <= ci95[1] and half_width <= close:
        return "ok"
    if distance <= close:
        return "close"
    if half_width > close and ci95[0] - close <= reported <= ci95[1] + close:
        return "underpowered"
    return "off"


def against_baseline(rows: Mapping[str, RowScores], baseline: str, seed: int) -> dict[str, tuple[Difference, float]]:
    """Test every row against the baseline over the items both have: one family, Holm inside it.

    Args:
        rows: scores per row, the baseline's among them, of one data set and metric.
        baseline: row id; without scores of its own there is nothing to test.
        seed: of the resampling.

    Returns:
        Per row other than the baseline its difference (row − baseline, fractions) and p_holm.
    """
    if baseline not in rows:
        return {}
    base = rows[baseline]
    differences = {}
    for row, scores in rows.items():
        shared = [item for item in base.ids if item in set(scores.ids)]
        if row != baseline and shared:
            differences[row] = paired_difference(scores.of(shared), base.of(shared), seed)
    adjusted = holm([difference.p for difference in differences.values()])
    return {row: (difference, p) for (row, difference), p in zip(differences.items(), adjusted, strict=True)}


def make_cells(places: Iterable[Place], baseline: str | None, tolerance: Tolerance, seed: int) -> tuple[Cell, ...]:
    """Fill a table: each cell's mean, interval, status, and its test within data set × metric.

    Args:
        places: one per cell; those of one data set and metric form a family.
        baseline: row that the others are tested against; None for no tests.
        tolerance: unit, printed digits and what counts as close.
        seed: of all resampling.

    Raises:
        InputError: a place has neither scores nor a reason.
    """
    families: dict[tuple[str, str], list[Place]] = defaultdict(list)
    for place in places:
        families[place.column, place.metric].append(place)
    cells = []
    for (column, metric), members in families.items():
        own = {place.ranking for place in members if place.row == baseline} - {None}
        scored = {
            place.row: place.scores
            for place in members
            if place.scores is not None
            and place.circumstances.not_run is None
            and (place.row == baseline or place.ranking not in own)
        }
        tests = against_baseline(scored, baseline, seed) if baseline is not None else {}
        family = f"{column}/{metric} against {baseline} ({len(tests)})"
        for place in members:
            cells.append(_cell(place, baseline, family, tests.get(place.row), (tolerance, seed)))
    return tuple(cells)


def _cell(
    place: Place,
    baseline: str | None,
    family: str,
    test: tuple[Difference, float] | None,
    settings: tuple[Tolerance, int],
) -> Cell:
    tolerance, seed = settings
    factor = unit_factor(tolerance.unit)
    known: dict = {"row": place.row, "column": place.column, "metric": place.metric}
    known |= {"reported": place.reported, "run": place.run}
    value = ci95 = None
    if place.scores is not None and place.circumstances.not_run is None:
        estimate = bootstrap_mean(place.scores.scores, seed)
        value, ci95 = estimate.value * factor, (estimate.low * factor, estimate.high * factor)
        sd = seed_deviation(place.scores.scores)
        known |= {"n": estimate.n, "seeds": np.atleast_2d(place.scores.scores).shape[0]}
        known |= {"sd": None if sd is None else sd * factor}
    if test is not None:
        difference, p_holm = test
        diff_ci95 = (difference.low * factor, difference.high * factor)
        known |= {"baseline": baseline, "diff": difference.diff * factor, "diff_ci95": diff_ci95}
        known |= {"p": difference.p, "p_holm": p_holm, "family": family}
    status = cell_status(value, ci95, place.reported, tolerance, place.circumstances, known.get("n"))
    return Cell(**known, value=value, ci95=ci95, status=status)
