"""Packing: whole units within the budget, the rest counted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcontext.data.records import Context, Unit
from graphcontext.data.tokenizer import Words
from graphcontext.enhance.packing import Packing
from graphcontext.errors import InputError


def context(*texts: str) -> Context:
    return Context("q", tuple(Unit(str(i), text, "p") for i, text in enumerate(texts)))


def kept(packed: Context) -> list[str]:
    return [unit.text for unit in packed.units]


def test_units_are_kept_in_order_and_a_smaller_one_fills_the_gap():
    packed = Packing(Words(), 5).pack(context("a b c", "d e f g", "h i", "j"))
    assert kept(packed) == ["a b c", "h i"]  # 3, then 4 does not fit, then 2 makes 5
    assert (packed.n_tokens, packed.n_cut) == (5, 2)


def test_without_a_budget_everything_stays():
    packed = Packing(Words(), None).pack(context("a b", "c"))
    assert (kept(packed), packed.n_tokens, packed.n_cut) == (["a b", "c"], 3, 0)


def test_a_blank_line_between_units_costs_what_the_tokenizer_says():
    class Characters:
        def count(self, text: str) -> int:
            return len(text)

    assert Packing(Characters(), 5).pack(context("ab", "c")).n_tokens == 5  # ab, two newlines, c
    assert Packing(Characters(), 4).pack(context("ab", "c")).n_cut == 1


def test_status_and_reason_stay():
    packed = Packing(Words(), 5).pack(Context("q", (), status="failed", reason="why"))
    assert (packed.status, packed.reason, packed.n_tokens) == ("failed", "why", 0)


@given(st.lists(st.integers(1, 9)), st.integers(1, 20))
def test_never_over_the_budget_and_nothing_lost(sizes, budget):
    packed = Packing(Words(), budget).pack(context(*("w " * n for n in sizes)))
    assert packed.n_tokens <= budget
    assert len(packed.units) + packed.n_cut == len(sizes)


def test_a_budget_below_one_is_refused():
    with pytest.raises(InputError, match="max_tokens=0"):
        Packing(Words(), 0)
