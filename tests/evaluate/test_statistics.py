"""Bootstrap, permutation and Holm against hand computation, and their properties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from graphcontext.errors import InputError
from graphcontext.evaluate.statistics import (
    BOOTSTRAP_DRAWS,
    PERMUTATION_DRAWS,
    Estimate,
    bootstrap_mean,
    holm,
    paired_difference,
    permutation_p,
    seed_deviation,
    wilson_interval,
)

fractions = st.floats(0, 1, allow_nan=False, width=32)


def test_exact_p_of_three_equal_differences():
    # Signs +++ and −−− reach |sum| = 3, the six others |sum| = 1: p = 2/8
    assert permutation_p(np.array([1.0, 1.0, 1.0]), seed=0) == 0.25


def test_exact_p_of_unequal_differences():
    # d = (3, 1, −1), |sum| = 3. Of |±3 ±1 ±1|: 5 (2 patterns), 3 (4 patterns), 1 (2 patterns): p = 6/8
    assert permutation_p(np.array([3.0, 1.0, -1.0]), seed=0) == 0.75


def test_items_without_a_difference_say_nothing():
    assert permutation_p(np.array([1.0, 0.0, 1.0, 1.0, 0.0]), seed=0) == 0.25
    assert permutation_p(np.zeros(30), seed=0) == 1.0


def test_rounding_does_not_break_ties():
    # .1 + .2 ≠ .3 in floats, yet |.1+.2−.3| patterns tie by pairs; sum 0.6 only for +++ and −−−
    assert permutation_p(np.array([0.1, 0.2, 0.3]), seed=0) == 0.25
    assert permutation_p(np.array([0.3, -0.1, -0.2]), seed=0) == 1.0


def test_sampled_p_is_never_zero():
    # 40 equal differences: no random pattern reaches the observed sum, so p = 1 / (draws + 1)
    assert permutation_p(np.full(40, 0.5), seed=0) == 1 / (PERMUTATION_DRAWS + 1)


def test_sampled_p_agrees_with_the_exact_one():
    rng = np.random.default_rng(5)
    differences = rng.normal(0.3, 1, 13)
    patterns = (np.arange(2**13)[:, None] >> np.arange(13)) & 1
    exact = np.mean(np.abs((2 * patterns - 1) @ differences) >= abs(differences.sum()) - 1e-12)
    assert permutation_p(differences, seed=1) == pytest.approx(exact, abs=0.02)


def test_holm_by_hand():
    # sorted .01 .02 .03 .04 → ×4 .04, ×3 .06, ×2 .06, ×1 .04 → raised to .06
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=20))
def test_holm_keeps_the_order_and_lies_between_p_and_bonferroni(p):
    adjusted = holm(p)
    for (a, x), (b, y) in zip(sorted(zip(p, adjusted)), sorted(zip(p, adjusted))[1:]):
        assert x <= y or a == b
    assert all(raw <= new <= min(1.0, raw * len(p)) + 1e-12 for raw, new in zip(p, adjusted))


def test_interval_of_two_items_is_known():
    # Resampled means of (0, 1): 0, .5, 1 with 1/4, 1/2, 1/4: the 2.5 % and 97.5 % points are 0 and 1
    assert bootstrap_mean(np.array([0.0, 1.0]), seed=0) == Estimate(0.5, 0.0, 1.0, 2)


def test_one_item_or_equal_items_have_no_width():
    assert bootstrap_mean(np.array([0.3]), seed=0) == Estimate(0.3, 0.3, 0.3, 1)
    estimate = bootstrap_mean(np.full(7, 0.1), seed=0)
    assert estimate.low == estimate.value == estimate.high


@pytest.mark.parametrize(
    ("share", "n", "low", "high"),
    [
        (1.0, 1, 0.2065, 1.0),  # 1 / (1 + 3.8415)
        (0.0, 6, 0.0, 0.3903),  # 3.8415 / (6 + 3.8415)
        (0.5, 100, 0.4038, 0.5962),  # (.5192 ± 1.96 √(.0025 + .0001)) / 1.0384
    ],
)
def test_wilsons_interval_has_a_width_everywhere(share, n, low, high):
    assert wilson_interval(share, n) == pytest.approx((low, high), abs=1e-4)


def test_interval_is_near_the_normal_one_for_many_items():
    scores = np.random.default_rng(0).normal(0.5, 0.1, 400)
    estimate = bootstrap_mean(scores, seed=0)
    half = 1.96 * scores.std(ddof=1) / 20
    assert (estimate.low, estimate.high) == pytest.approx((scores.mean() - half, scores.mean() + half), abs=0.002)


def test_seeds_widen_the_interval_where_they_disagree():
    items = np.linspace(0, 1, 50)
    agree = bootstrap_mean(np.stack([items, items, items]), seed=0)
    differ = bootstrap_mean(np.stack([items - 0.3, items, items + 0.3]), seed=0)
    one = bootstrap_mean(items, seed=0)
    assert (agree.low, agree.high) == pytest.approx((one.low, one.high))
    assert differ.value == pytest.approx(one.value)
    assert differ.high - differ.low > 1.3 * (one.high - one.low)


def test_seed_deviation_by_hand():
    # seed means 0.2, 0.4, 0.6: sample sd 0.2
    assert seed_deviation(np.array([[0.1, 0.3], [0.3, 0.5], [0.5, 0.7]])) == pytest.approx(0.2)
    assert seed_deviation(np.array([0.1, 0.3])) is None
    assert seed_deviation(np.array([[0.1, 0.2, 0.4]] * 3)) == 0.0


def test_difference_by_hand():
    # a − b = (1, 1, 0): mean 2/3; without the zero two equal signs: p = 2/4
    difference = paired_difference(np.array([1.0, 1.0, 0.5]), np.array([0.0, 0.0, 0.5]), seed=0)
    assert difference.diff == pytest.approx(2 / 3)
    assert difference.p == 0.5
    assert (difference.low, difference.high) == (0.0, 1.0)


@settings(deadline=None, max_examples=40)
@given(
    st.integers(1, 30).flatmap(lambda n: st.tuples(*[arrays(float, n, elements=fractions)] * 2)),
    st.integers(0, 9),
)
def test_difference_is_antisymmetric_and_p_symmetric(pair, seed):
    a, b = pair
    forth, back = paired_difference(a, b, seed), paired_difference(b, a, seed)
    assert forth.diff == pytest.approx(-back.diff, abs=1e-12)
    assert (forth.low, forth.high) == pytest.approx((-back.high, -back.low), abs=1e-12)
    assert forth.p == back.p
    assert 0 < forth.p <= 1
    assert forth.low <= forth.diff <= forth.high


@settings(deadline=None, max_examples=40)
@given(st.tuples(st.integers(1, 4), st.integers(1, 30)).flatmap(lambda s: arrays(float, s, elements=fractions)))
def test_interval_contains_the_mean_and_stays_among_the_scores(scores):
    estimate = bootstrap_mean(scores, seed=3)
    assert estimate.low <= estimate.value <= estimate.high
    assert scores.min() - 1e-12 <= estimate.low and estimate.high <= scores.max() + 1e-12
    assert estimate == bootstrap_mean(scores, seed=3)


def test_drawing_in_blocks_gives_the_same_numbers(monkeypatch):
    a, b = np.random.default_rng(0).random((2, 25))
    whole = paired_difference(a, b, seed=0), bootstrap_mean(np.stack([a, b]), seed=0)
    monkeypatch.setattr("graphcontext.evaluate.statistics._BLOCK", 25 * (BOOTSTRAP_DRAWS // 3))
    assert (paired_difference(a, b, seed=0), bootstrap_mean(np.stack([a, b]), seed=0)) == whole


def test_wrong_input_is_named():
    with pytest.raises(InputError, match="at least one item"):
        bootstrap_mean(np.array([]), seed=0)
    with pytest.raises(InputError, match="finite scores; item 1 is not"):
        bootstrap_mean(np.array([0.1, np.nan]), seed=0)
    with pytest.raises(InputError, match="same items: got 2 and 3"):
        paired_difference(np.zeros(2), np.zeros(3), seed=0)
