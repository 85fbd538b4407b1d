"""``metrics.json``: the mean of each metric with its interval, and what failed on the way."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphcontext.data.records import Prediction
from graphcontext.errors import InputError
from graphcontext.evaluate.statistics import bootstrap_mean


def summarise(
    scores_by_metric: Mapping[str, Sequence[float | None]],
    predictions: Sequence[Prediction],
    signatures: Mapping[str, str],
    seed: int,
    columns: Mapping[str, Sequence[float | None]] | None = None,
) -> dict[str, Any]:
    """Return a run's ``metrics.json``: ``n``, ``n_failed``, ``n_empty``, ``n_truncated`` and ``metrics``.

    ``metrics`` maps a name to ``{"value", "ci95": [low, high], "signature"}``. Failed items score 0 and stay
    in the mean: one whose prediction failed in every metric, whatever the metric gave it; one to which a metric
    gave no score (None, NaN) in that metric. Both count as failed. An item is empty where it has no text,
    truncated where generation met its limit.

    A metric's further columns (``em_answered``) are means over the items that have a value there, and say their own
    ``n``; failed items are in the metric's own mean all the same. A column without any value is left out.

    Args:
        scores_by_metric: per metric one score per question, in the questions' order, fractions.
        predictions: one per question; none at all where generation was skipped.
        signatures: per metric its signature.
        seed: of the bootstrap.
        columns: per further column one score per question, None where an item is not of it; signed like a metric.

    Raises:
        InputError: the lengths differ, or a metric has no signature.
    """
    n = len(predictions) or max((len(scores) for scores in scores_by_metric.values()), default=0)
    unanswered = {place for place, p in enumerate(predictions) if p.status == "failed"}
    failed = set(unanswered)
    metrics = {}
    for name, scores in scores_by_metric.items():
        if len(scores) != n:
            raise InputError(f"metric {name} gave {len(scores)} scores for {n} questions; one each is needed")
        if name not in signatures:
            raise InputError(f"metric {name} has no signature")
        missing = {place for place, score in enumerate(scores) if score is None or math.isnan(score)}
        failed |= missing
        zero = missing | unanswered
        kept = [0.0 if place in zero else float(score) for place, score in enumerate(scores)]
        estimate = bootstrap_mean(np.array(kept), seed)
        ci95 = [estimate.low, estimate.high]
        metrics[name] = {"value": estimate.value, "ci95": ci95, "signature": signatures[name]}
    for name, scores in (columns or {}).items():
        given = [score for score in scores if score is not None]
        if given:
            estimate = bootstrap_mean(np.array(given, dtype=float), seed)
            ci95 = [estimate.low, estimate.high]
            about = {"ci95": ci95, "signature": signatures[name], "n": len(given)}
            metrics[name] = {"value": estimate.value, **about}
    blank = [p.status == "empty" or not p.prediction.strip() for p in predictions]
    cuts = [p.finish == "length" for p in predictions]
    return {
        "n": n,
        "n_failed": len(failed),
        "n_empty": sum(b and place not in failed for place, b in enumerate(blank)),
        "n_truncated": sum(cut and place not in failed for place, cut in enumerate(cuts)),
        "metrics": metrics,
    }
