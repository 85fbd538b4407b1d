"""Which questions are scored, and how a data set is cut in time."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcontext.data.records import Question
from graphcontext.data.splits import by_years, hold_out, in_time, last_quarter, select


@dataclass(frozen=True)
class Post:
    id: int
    date: str = ""


def questions(ids):
    return [Question(str(n), "text", "corpus") for n in ids]


def ids(items):
    return [int(item.id) for item in items]


@given(
    st.lists(st.integers(1, 10_000), unique=True, max_size=40),
    st.integers(1, 40),
    st.integers(1, 40),
    st.integers(0, 99),
)
def test_subsets_of_one_seed_are_nested_and_in_id_order(numbers, a, b, seed):
    small, large = sorted((a, b))
    few, many = (select(questions(numbers), limit, seed) for limit in (small, large))
    assert set(few) <= set(many)
    assert ids(many) == sorted(ids(many))
    assert len(few) == min(small, len(numbers))


def test_the_choice_depends_on_neither_order_nor_other_questions():
    drawn = select(questions(range(1, 101)), 20, seed=3)
    assert select(questions(reversed(range(1, 101))), 20, seed=3) == drawn
    without_one_not_drawn = [n for n in range(1, 101) if n != next(iter(set(range(1, 101)) - set(ids(drawn))))]
    assert select(questions(without_one_not_drawn), 20, seed=3) == drawn


def test_no_limit_takes_all_and_another_seed_takes_others():
    assert ids(select(questions([10, 9, 1]), None, seed=0)) == [1, 9, 10]
    assert ids(select(questions([10, 9, 1]), 3, seed=0)) == [1, 9, 10]
    assert select(questions(range(100)), 10, 0) != select(questions(range(100)), 10, 1)


def test_time_order_falls_back_to_ids_where_a_date_is_missing():
    assert ids(in_time([Post(1, "2020-01-02"), Post(2, "2020-01-01")])) == [2, 1]
    assert ids(in_time([Post(2, "2020-01-01"), Post(1, "")])) == [1, 2]


@pytest.mark.parametrize(("n_train", "n_test", "used"), [(20, 20, True), (19, 20, False), (20, 19, False)])
def test_the_papers_years_need_twenty_items_on_both_sides(n_train, n_test, used):
    items = [Post(n, "2020-12-31T23:59:59") for n in range(n_train)]
    items += [Post(100 + n, "2021-01-01") for n in range(n_test)]
    items += [Post(999, "2024-01-01"), Post(998, "2018-12-31")]
    sides = by_years(items, (2019, 2020), (2021, 2023))
    assert (sides is not None) == used
    if sides:
        assert sides.rule == "years 2019–2020 / 2021–2023"
        assert (len(sides.train), len(sides.test)) == (20, 20)  # other years are on neither side


@pytest.mark.parametrize(("n", "n_test"), [(0, 0), (1, 0), (2, 1), (7, 1), (8, 2), (207, 51)])
def test_else_the_last_quarter_in_time_is_the_test_side(n, n_test):
    items = [Post(n - k, f"2016-01-{1 + k % 28:02d}") for k in range(n)]
    sides = last_quarter(items, "why")
    assert (len(sides.train), len(sides.test)) == (n - n_test, n_test)
    if n_test:
        assert max(i.date for i in sides.train) <= min(i.date for i in sides.test)


def test_without_dates_the_rule_says_id_order():
    sides = last_quarter([Post(n) for n in (4, 3, 2, 1)], "why")
    assert ids(sides.test) == [4]
    assert sides.rule == "last quarter in id order"


def test_validation_is_the_last_tenth_of_the_training_side():
    rest, validation = hold_out([Post(n, f"2020-01-{n:02d}") for n in range(1, 21)])
    assert ids(validation) == [19, 20]
    assert len(rest) == 18
    assert hold_out([Post(1)]) == ((Post(1),), ())
