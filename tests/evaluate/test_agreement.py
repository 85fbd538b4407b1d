"""Kappa by hand, and equal to scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from graphcontext.errors import InputError
from graphcontext.evaluate.agreement import agreement, cohen_kappa, fleiss_kappa

LEVELS = ("1", "2", "3", "4", "5")


def test_cohens_kappa_of_two_raters() -> None:
    # 4 of 6 equal; a says x 3 times, b 3 times: chance .5·.5 + .5·.5 = .5; (4/6 − .5) / (1 − .5) = 1/3
    assert cohen_kappa(list("xxxyyy"), list("xxyyyx"), ("x", "y")) == pytest.approx(1 / 3)
    assert cohen_kappa(list("xy"), list("xy"), ("x", "y")) == 1.0
    assert cohen_kappa(list("xy"), list("yx"), ("x", "y")) == -1.0


def test_near_misses_weigh_less_where_labels_are_ordered() -> None:
    a, b = ["1", "2", "3", "3"], ["1", "2", "3", "2"]
    # one disagreement, by one level. Shares a: ¼ ¼ ½, b: ¼ ½ ¼; chance of |i−j|: 1 with 1/8 + 1/16 + 1/16 + 1/4 = 1/2,
    # 2 with 1/16 + 1/8 = 3/16. none: 1 − (1/4) / (11/16), linear: 1 − (1/4) / (1/2 + 3/8),
    # quadratic: 1 − (1/4) / (1/2 + 3/4)
    labels = ("1", "2", "3")
    assert cohen_kappa(a, b, labels) == pytest.approx(1 - 4 / 11)
    assert cohen_kappa(a, b, labels, "linear") == pytest.approx(1 - 2 / 7)
    assert cohen_kappa(a, b, labels, "quadratic") == pytest.approx(1 - 1 / 5)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(LEVELS), st.sampled_from(LEVELS)), min_size=2, max_size=40))
def test_cohens_kappa_is_scikit_learns(pairs: list[tuple[str, str]]) -> None:
    a, b = [p[0] for p in pairs], [p[1] for p in pairs]
    for weights in ("none", "linear", "quadratic"):
        ours = cohen_kappa(a, b, LEVELS, weights)
        if ours is None:
            assert len(set(a) | set(b)) == 1
        else:
            theirs = cohen_kappa_score(a, b, labels=LEVELS, weights=None if weights == "none" else weights)
            assert ours == pytest.approx(theirs)


def test_fleiss_kappa_of_a_published_example() -> None:
    # Fleiss 1971 as given in textbooks: 14 raters, 10 items, 5 labels: P̄ = .378, P̄e = .213, κ = .210
    counts = [
        [0, 0, 0, 0, 14],
        [0, 2, 6, 4, 2],
        [0, 0, 3, 5, 6],
        [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0],
        [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0],
        [0, 2, 2, 3, 7],
    ]
    assert fleiss_kappa(np.array(counts)) == pytest.approx(0.210, abs=0.0005)


def test_fleiss_kappa_by_hand() -> None:
    # three raters, two items: xxx and xyy. P = 1 and (1 + 4 − 3) / 6 = 1/3, mean 2/3; p = 4/6, 2/6: 5/9
    assert fleiss_kappa(np.array([[3, 0], [1, 2]])) == pytest.approx((2 / 3 - 5 / 9) / (4 / 9))


def test_where_kappa_is_not_defined_it_is_none() -> None:
    assert cohen_kappa([], [], LEVELS) is None
    assert cohen_kappa(["4", "4"], ["4", "4"], LEVELS) is None
    assert fleiss_kappa(np.zeros((0, 3))) is None
    assert fleiss_kappa(np.array([[3, 0], [3, 0]])) is None


def test_wrong_input_is_named() -> None:
    for attempt, message in (
        (lambda: cohen_kappa(["1"], [], LEVELS), "same items: got 1 and 0"),
        (lambda: cohen_kappa(["6"], ["1"], LEVELS), "label '6' is unknown"),
        (lambda: cohen_kappa(["1"], ["1"], LEVELS, "square"), "weights 'square' is unknown"),
        (lambda: fleiss_kappa(np.array([[1, 0]])), "at least 2"),
        (lambda: fleiss_kappa(np.array([[2, 0], [3, 0]])), "one number of ratings"),
    ):
        with pytest.raises(InputError, match=message):
            attempt()


def test_two_raters_have_cohens_kappa_over_the_items_that_both_rated() -> None:
    a = {"i": "1", "j": "2", "k": "3", "l": "3", "alone": "5"}
    b = {"i": "1", "j": "2", "k": "3", "l": "2"}
    found = agreement({"b": b, "a": a, "silent": {}}, LEVELS, ordered=True)
    assert (found.name, found.n_raters, found.n_items, found.equal) == ("Cohen's kappa", 2, 4, 0.75)
    assert found.kappa == pytest.approx(1 - 4 / 11) and found.weighted == pytest.approx(0.8)
    assert agreement({"a": a, "b": b}, LEVELS, ordered=False).weighted is None


def test_three_raters_have_fleiss_kappa_over_the_items_that_all_rated() -> None:
    raters = {"a": {"i": "x", "j": "x"}, "b": {"i": "x", "j": "y"}, "c": {"i": "x", "j": "y", "k": "y"}}
    found = agreement(raters, ("x", "y"), ordered=True)
    assert (found.name, found.n_raters, found.n_items, found.equal) == ("Fleiss' kappa", 3, 2, 0.5)
    assert found.kappa == pytest.approx((2 / 3 - 5 / 9) / (4 / 9))
    # a–b and a–c: a is constant, observed ½ and chance ½: 0; b–c: equal on both, 1
    assert found.weighted == pytest.approx(1 / 3)


def test_one_rater_or_no_shared_item_has_none() -> None:
    assert agreement({}, LEVELS, True).n_raters == 0
    one = agreement({"a": {"i": "1"}}, LEVELS, True)
    assert (one.n_raters, one.n_items, one.kappa) == (1, 0, None)
    apart = agreement({"a": {"i": "1"}, "b": {"j": "1"}}, LEVELS, True)
    assert (apart.n_raters, apart.n_items, apart.kappa, apart.weighted, apart.equal) == (2, 0, None, None, None)
