"""metrics.json: failed items score 0 and stay in the mean."""

import math

import pytest

from graphcontext.data.records import Prediction
from graphcontext.errors import InputError
from graphcontext.evaluate.summary import summarise


def answer(text: str = "text", status: str = "ok", finish: str | None = "stop") -> Prediction:
    return Prediction("q", "how?", text, (), status=status, finish=finish)


def test_t21_two_failed_in_judging_and_one_empty_stay_in_the_mean():
    predictions = [answer()] * 9 + [answer("", status="empty")]
    scores = [1.0] * 7 + [None, math.nan] + [0.0]
    summary = summarise({"accuracy": scores}, predictions, {"accuracy": "accuracy|judge"}, seed=0)
    assert (summary["n"], summary["n_failed"], summary["n_empty"]) == (10, 2, 1)
    assert summary["metrics"]["accuracy"]["value"] == pytest.approx(0.7)  # 7 of 10, not 7 of 7
    assert summary["metrics"]["accuracy"]["signature"] == "accuracy|judge"


def test_each_item_is_counted_once_as_failed_empty_or_truncated():
    predictions = [
        answer(),
        answer("", status="failed", finish="length"),
        answer("  "),
        answer("long", finish="length"),
    ]
    summary = summarise({"rouge1": [0.5, 0.0, 0.0, 0.5]}, predictions, {"rouge1": "s"}, seed=0)
    assert {k: v for k, v in summary.items() if k != "metrics"} == {
        "n": 4,
        "n_failed": 1,
        "n_empty": 1,
        "n_truncated": 1,
    }
    low, high = summary["metrics"]["rouge1"]["ci95"]
    assert low <= summary["metrics"]["rouge1"]["value"] == 0.25 <= high


def test_a_failed_item_scores_zero_whatever_a_metric_gave_it():
    predictions = [answer(), answer("", status="failed"), answer("part", status="failed")]
    summary = summarise({"judge": [1.0, 1.0, None]}, predictions, {"judge": "s"}, seed=0)
    assert summary["metrics"]["judge"]["value"] == pytest.approx(1 / 3)
    assert summary["n_failed"] == 2


def test_retrieval_alone_has_no_predictions():
    summary = summarise({"mrr": [1.0, 0.5]}, [], {"mrr": "mrr"}, seed=0)
    assert (summary["n"], summary["n_empty"], summary["metrics"]["mrr"]["value"]) == (2, 0, 0.75)


def test_t49_lengths_must_agree():
    with pytest.raises(InputError, match="metric rouge1 gave 2 scores for 3 questions"):
        summarise({"rouge1": [0.1, 0.2]}, [answer()] * 3, {"rouge1": "s"}, seed=0)
    with pytest.raises(InputError, match="rouge1 has no signature"):
        summarise({"rouge1": [0.1]}, [answer()], {}, seed=0)


def test_a_further_column_is_a_mean_over_the_items_that_have_a_value_there() -> None:
    # em 1, 0, failed, 1: 2/4 with the failed one as 0; the paper's rule drops it: 2/3
    predictions = [answer("1"), answer("2"), answer("3", "failed"), answer("4")]
    signatures = {"em": "em|squad", "em_answered": "em_answered|failed items left out|em|squad", "none": "-"}
    columns = {"em_answered": [1.0, 0.0, None, 1.0], "none": [None] * 4}
    found = summarise({"em": [1.0, 0.0, 0.0, 1.0]}, predictions, signatures, 0, columns)
    assert found["metrics"]["em"]["value"] == 0.5
    assert "n" not in found["metrics"]["em"]
    beside = found["metrics"]["em_answered"]
    assert (beside["value"], beside["n"]) == (pytest.approx(2 / 3), 3)
    assert (found["n"], found["n_failed"]) == (4, 1)
    assert "none" not in found["metrics"]
