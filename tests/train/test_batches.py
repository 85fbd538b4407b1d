"""Which examples make a step, which rank computes them, and how they are padded."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphcontext.train.batches import Collate, Course, Deal, Learnt, RankBatches, held_out_batches, plan_epoch
from graphcontext.train.examples import IGNORED, Example

LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=60)
WORLDS, MICROS, SIZES = st.integers(1, 5), st.integers(1, 5), st.integers(1, 17)


def example(name: str, n: int) -> Example:
    return Example(name, tuple(range(1, n + 1)), (IGNORED, *range(2, n + 1)))


class TestPlan:
    @given(LENGTHS, SIZES, st.integers(0, 9), st.booleans())
    def test_an_epoch_has_every_example_once_in_full_batches_but_one(self, lengths, size, epoch, bucket):
        batches = plan_epoch(lengths, size, 0, epoch, bucket)
        assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
        short = [len(batch) for batch in batches if len(batch) != size]
        assert len(short) <= 1 and all(batches)

    def test_seed_and_epoch_change_the_order_and_nothing_else_does(self):
        lengths = list(range(20))
        plan = plan_epoch(lengths, 2, 0, 0, True)
        assert plan == plan_epoch(lengths, 2, 0, 0, True)
        assert plan != plan_epoch(lengths, 2, 1, 0, True) and plan != plan_epoch(lengths, 2, 0, 1, True)

    def test_no_two_epochs_of_small_data_have_the_same_batches(self):
        first, second = ({frozenset(b) for b in plan_epoch(range(20), 4, 0, epoch, True)} for epoch in (0, 1))
        assert first != second  # sorted as a whole, both would be {0..3}, {4..7} …

    def test_a_bucketed_batch_holds_like_lengths_in_a_random_order_of_batches(self):
        def spread(bucket):
            plan = plan_epoch(range(800), 4, 0, 0, bucket)  # 200 batches: 4 windows of 50
            return plan, sum(max(batch) - min(batch) for batch in plan) / 200

        (plan, near), (_, far) = spread(True), spread(False)
        assert near < 20 < 400 < far  # 3 neighbours among a quarter of the numbers, about 12; against 3/5 of 800
        assert [batch[0] for batch in plan] != sorted((batch[0] for batch in plan), reverse=True)


class TestDeal:
    @given(LENGTHS, SIZES, WORLDS, MICROS)
    def test_t22_each_example_of_a_global_batch_is_learnt_by_one_rank_once(self, lengths, size, world, micro):
        deal = Deal(world, micro)
        for batch in plan_epoch(lengths, size, 0, 0, True):
            dealt = [deal.of(batch, lengths, rank, deal.passes(size)) for rank in range(world)]
            assert Counter(i for parts in dealt for part in parts for i in part if i >= 0) == Counter(batch)

    @given(LENGTHS, SIZES, WORLDS, MICROS)
    def test_all_ranks_make_the_same_passes_of_at_most_a_micro_batch(self, lengths, size, world, micro):
        deal = Deal(world, micro)
        for batch in plan_epoch(lengths, size, 0, 0, True):
            for rank in range(world):
                parts = deal.of(batch, lengths, rank, deal.passes(size))
                assert len(parts) == deal.passes(size)
                assert all(1 <= len(part) <= micro for part in parts)

    def test_by_hand(self):
        # 5 examples, lengths 5 4 3 2 1, two ranks: rows (0,1) (2,3) (4,): rank 0 has 0 2 4, rank 1 has 1 3
        deal, lengths = Deal(2, 2), [5, 4, 3, 2, 1]
        assert deal.passes(5) == 2
        assert deal.of(range(5), lengths, 0, 2) == [[0, 2], [4]]
        assert deal.of(range(5), lengths, 1, 2) == [[1, 3], [-5]]  # the shortest one, not learnt from

    @given(LENGTHS, SIZES, st.integers(1, 30), WORLDS, MICROS)
    def test_neither_world_nor_micro_batch_changes_what_a_step_learns_from(self, lengths, size, total, world, micro):
        size = min(size, len(lengths))
        course = Course(tuple(lengths), size, total, 3, True)
        ranks = [list(RankBatches(course, Deal(world, micro), rank)) for rank in range(world)]
        passes = Deal(world, micro).passes(size)
        assert all(len(parts) == total * passes for parts in ranks)
        for step, batch in enumerate(course.steps()):
            learnt = [i for parts in ranks for part in parts[step * passes : (step + 1) * passes] for i in part]
            assert sorted(i for i in learnt if i >= 0) == sorted(batch)


class TestCourse:
    @given(LENGTHS, SIZES, st.integers(1, 40), st.integers(0, 40))
    def test_it_goes_on_from_any_step_as_if_undisturbed(self, lengths, size, total, start):
        course = Course(tuple(lengths), size, total, 0, True)
        assert list(course.steps())[start:] == list(course.steps(min(start, total)))[: max(0, total - start)]
        assert len(list(course.steps())) == total

    def test_ranks_go_on_from_a_step_too(self):
        course, deal = Course(tuple(range(1, 12)), 4, 7, 0, True), Deal(2, 1)
        whole = list(RankBatches(course, deal, 1))
        assert list(RankBatches(course, deal, 1, start=4)) == whole[4 * deal.passes(4) :]
        assert len(RankBatches(course, deal, 1, start=4)) == 3 * deal.passes(4) == len(whole) - 4 * deal.passes(4)

    def test_a_batch_larger_than_the_data_costs_no_empty_passes(self):
        course = Course((1, 2, 3), 16, 2, 0, True)
        assert RankBatches(course, Deal(1, 1), 0).passes == 3


class TestHeldOut:
    def test_t22_five_examples_over_two_ranks_are_five(self):
        lengths = [4, 2, 9, 7, 1]
        ranks = [held_out_batches(lengths, Deal(2, 2), rank) for rank in range(2)]
        assert sorted(i for batches in ranks for batch in batches for i in batch if i >= 0) == [0, 1, 2, 3, 4]
        assert len(ranks[0]) == len(ranks[1]) == 2

    @given(LENGTHS, WORLDS, MICROS)
    def test_t22_every_example_counts_once_and_no_rank_waits_for_another(self, lengths, world, micro):
        ranks = [held_out_batches(lengths, Deal(world, micro), rank) for rank in range(world)]
        assert sorted(i for r in ranks for batch in r for i in batch if i >= 0) == list(range(len(lengths)))
        assert len({len(r) for r in ranks}) == 1
        assert all(1 <= len(batch) <= micro for r in ranks for batch in r)

    def test_without_examples_there_is_no_batch(self):
        assert held_out_batches([], Deal(2, 2), 0) == []


class TestCollate:
    def test_it_pads_to_the_longest_of_the_batch(self):
        batch = Collate(pad=9)([(example("a", 3), True), (example("b", 2), True)])
        assert batch["input_ids"].tolist() == [[1, 2, 3], [1, 2, 9]]
        assert batch["attention_mask"].tolist() == [[1, 1, 1], [1, 1, 0]]
        assert batch["labels"].tolist() == [[-100, 2, 3], [-100, 2, -100]]
        assert batch["ids"] == ["a", "b"]

    def test_source_and_target_have_widths_of_their_own(self):
        batch = Collate(0)([(Example("a", (1, 2, 3), (4,)), True), (Example("b", (1,), (5, 6)), True)])
        assert batch["input_ids"].shape == (2, 3) and batch["labels"].tolist() == [[4, -100], [5, 6]]

    def test_what_fills_a_rank_is_not_learnt_from(self):
        batch = Collate(0)([Learnt([example("a", 3), example("b", 2)])[-2]])
        assert batch["ids"] == [None] and (batch["labels"] == IGNORED).all()
        assert batch["input_ids"].tolist() == [[1, 2]]

    @pytest.mark.parametrize(("arguments", "width"), [({"to": 7}, 7), ({}, 3)])
    def test_widths(self, arguments, width):
        batch = Collate(0, **arguments)([(example("a", 3), True)])
        assert all(batch[k].shape == (1, width) for k in ("input_ids", "attention_mask", "labels"))
        assert batch["input_ids"].dtype == torch.long
