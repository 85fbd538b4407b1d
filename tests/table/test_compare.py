"""Status in the contract's order, families against the baseline, Holm inside a family."""

import numpy as np
import pytest

from graphcontext.errors import InputError
from graphcontext.table.compare import (
    Circumstances,
    Place,
    RowScores,
    Tolerance,
    against_baseline,
    cell_status,
    make_cells,
)

USUAL, PAPER = Circumstances(), Tolerance()


def status(value, ci95, reported, tolerance=PAPER, circumstances=USUAL):
    return cell_status(value, ci95, reported, tolerance, circumstances)


@pytest.mark.parametrize(
    ("circumstances", "expected"),
    [
        (Circumstances(not_run="budget", fallback=True, stand_in=True), "not run (budget)"),
        (Circumstances(fallback=True, stand_in=True), "fallback"),
        (Circumstances(stand_in=True), "stand-in"),
        (USUAL, "not reported"),
    ],
)
def test_the_first_that_applies(circumstances, expected):
    assert status(0.2, (0.1, 0.3), None, circumstances=circumstances) == expected


@pytest.mark.parametrize(
    ("value", "ci95", "reported", "expected"),
    [
        (0.2364, (0.10, 0.40), 0.236, "ok"),  # rounds to the printed number, however wide the interval
        (0.230, (0.215, 0.245), 0.244, "ok"),  # inside, half-width .015
        (0.230, (0.210, 0.250), 0.250, "ok"),  # half-width exactly .02
        (0.230, (0.200, 0.260), 0.250, "close"),  # inside, but half-width .03; difference .02
        (0.230, (0.225, 0.235), 0.250, "close"),
        (0.230, (0.150, 0.310), 0.290, "underpowered"),  # inside a wide interval, difference .06
        (0.230, (0.180, 0.280), 0.295, "underpowered"),  # .015 outside: a difference of .02 isn't excluded
        (0.230, (0.180, 0.280), 0.310, "off"),  # .03 outside
        (0.230, (0.220, 0.240), 0.251, "off"),  # narrow, difference .021
    ],
)
def test_nearness_to_the_reported_number(value, ci95, reported, expected):
    assert status(value, ci95, reported) == expected


@pytest.mark.parametrize(
    ("n", "reported", "expected"),
    [
        (None, 58, "underpowered"),
        (1, 58, "underpowered"),
        (7, 58, "underpowered"),  # 3/7 of the items may lose: from 57 up
        (8, 58, "off"),  # 3/8: from 62 up; with the 2 that are close, from 60
        (200, 58, "off"),
        (1, 100.4, "ok"),
        (1, 98, "close"),
    ],
)
def test_an_interval_without_width_is_as_wide_as_three_in_n(n, reported, expected):
    percent = Tolerance(digits=0, unit="percent")
    assert cell_status(100.0, (100.0, 100.0), reported, percent, USUAL, n) == expected


def test_tolerance_is_on_the_unit_scale_and_digits_in_the_papers_unit():
    percent = Tolerance(close=0.02, digits=1, unit="percent")
    assert status(23.04, (10.0, 40.0), 23.0, percent) == "ok"
    assert status(23.0, (22.9, 23.1), 25.0, percent) == "close"
    assert status(23.0, (22.9, 23.1), 25.1, percent) == "off"


def test_the_least_favourable_of_several_reported_numbers_decides():
    assert status(0.23, (0.22, 0.24), {"AskUbuntu": 0.23, "Unix": 0.3, "ServerFault": None}) == "off"
    assert status(0.23, (0.22, 0.24), {"AskUbuntu": None}) == "not reported"


def test_a_missing_value_needs_its_reason():
    with pytest.raises(InputError, match="needs the reason"):
        status(None, None, 0.2)


def scores(*values: float, ids: str = "abc") -> RowScores:
    return RowScores(tuple(ids[: len(values)]), np.array(values))


def test_rows_are_tested_over_the_items_they_share():
    # base a b c = 0 0 0; the row has c b d in another order: differences .4 on b and .2 on c → mean .3
    tests = against_baseline({"base": scores(0, 0, 0), "row": scores(0.2, 0.4, 0.9, ids="cbd")}, "base", seed=0)
    difference, p_holm = tests["row"]
    assert difference.diff == pytest.approx(0.3)
    assert (difference.p, p_holm) == (0.5, 0.5)  # two equal signs: 2 of 4 patterns


def test_holm_runs_inside_one_family():
    # three items, all better: p = 2/8 = .25 each; two tests: .5 each
    rows = {"base": scores(0, 0, 0), "a": scores(0.1, 0.1, 0.1), "b": scores(0.3, 0.2, 0.1)}
    assert {row: p for row, (_, p) in against_baseline(rows, "base", seed=0).items()} == {"a": 0.5, "b": 0.5}


def test_a_row_that_retrieves_as_the_baseline_is_no_comparison():
    def place(row, values, ranking):
        scores = RowScores(("a", "b", "c", "d"), np.array(values, float))
        return Place(row, "d", "sf_em", None, USUAL, scores, row, ranking)

    base, other = place("base", [1, 0, 0, 1], "k1"), place("other", [1, 1, 1, 1], "k2")
    same = place("same", [1, 0, 0, 1], "k1")
    cells = {c.row: c for c in make_cells([base, same, other], "base", PAPER, 0)}
    alone = {c.row: c for c in make_cells([base, other], "base", PAPER, 0)}
    assert (cells["same"].value, cells["same"].diff, cells["same"].p_holm) == (0.5, None, None)
    assert cells["other"].p_holm == alone["other"].p_holm
    equal = place("equal", [1, 0, 0, 1], None)  # of which nothing is known but its scores
    assert {c.row: c.p_holm for c in make_cells([base, equal, other], "base", PAPER, 0)}["equal"] == 1


def test_without_the_baseline_or_shared_items_there_is_no_test():
    assert against_baseline({"a": scores(0.1)}, "base", seed=0) == {}
    assert against_baseline({"base": scores(0.1), "a": scores(0.1, ids="z")}, "base", seed=0) == {}


def test_cells_in_percent_with_families_by_data_set_and_metric():
    places = [
        Place("base", "data", "rouge1", 20.0, scores=scores(0.1, 0.2, 0.3), run="runs/base"),
        Place("row", "data", "rouge1", 30.0, scores=scores(0.2, 0.3, 0.4), run="runs/row"),
        Place("row", "data", "rougeL", 30.0, scores=scores(0.2, 0.3, 0.4)),
        Place("sft", "data", "rouge1", 31.0, Circumstances(not_run="no adapter: gcg/sft")),
    ]
    base, row, sft, alone = make_cells(places, "base", Tolerance(digits=1, unit="percent"), seed=0)
    assert (base.value, base.status, base.p, base.family) == (pytest.approx(20.0), "ok", None, None)
    assert (row.value, row.n, row.seeds, row.sd) == (pytest.approx(30.0), 3, 1, None)
    assert (row.diff, row.p, row.p_holm) == (pytest.approx(10.0), 0.25, 0.25)
    assert row.diff_ci95 == pytest.approx((10.0, 10.0))
    assert (row.baseline, row.family) == ("base", "data/rouge1 against base (1)")
    assert (sft.value, sft.status, sft.reported) == (None, "not run (no adapter: gcg/sft)", 31.0)
    assert alone.metric == "rougeL" and alone.p is None and alone.family is None


def test_equal_seeds_have_no_deviation():
    twice = RowScores(("a", "b"), np.array([[0.1, 0.3], [0.1, 0.3]]))
    [cell] = make_cells([Place("row", "data", "rouge1", scores=twice)], None, Tolerance(), seed=0)
    assert (cell.value, cell.seeds, cell.sd, cell.status) == (pytest.approx(0.2), 2, 0.0, "not reported")
