"""The leak guard (T42): copies of scored questions never reach the pool."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcontext.data.leaks import Groups, fingerprint, guard, link_duplicates, normalise


@dataclass(frozen=True)
class Post:
    id: int
    date: str = ""


def pool_of(scored, candidates, pairs=(), texts=None):
    prints = [fingerprint(number, text) for number, text in (texts or {}).items()]
    pool, taken = guard([Post(n) for n in scored], [Post(n) for n in candidates], pairs, prints)
    return [item.id for item in pool], {layer: n for layer, n in taken.items() if n}


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("How do I  mount /dev/sdb1?\n", "how do i mount dev sdb1"),
        ("C++ vs. C#", "c++ vs c#"),
        ("ＦＵＬＬ width", "full width"),
        ("?!", ""),
    ],
)
def test_normalised_text(text, plain):
    assert normalise(text) == plain


@pytest.mark.parametrize(
    ("pairs", "dropped"),
    [
        ([(2, 1)], {2}),
        ([(3, 2), (2, 1)], {2, 3}),  # a chain keeps its end
        ([(1, 2), (2, 1)], {2}),  # a circle keeps its lowest id
        ([(5, 4), (4, 5), (5, 3)], {4, 5}),  # 3 is the original of the circle
        ([(7, 7)], set()),
        ([(9, 1), (9, 2)], {9}),  # two originals
        ([], set()),
    ],
)
def test_duplicates_by_link_keep_the_original(pairs, dropped):
    assert link_duplicates(pairs) == dropped


def test_t42_own_thread_and_linked_duplicates_in_either_direction_leave_the_pool():
    assert pool_of([10], [1, 2, 10]) == ([1, 2], {"own thread": 1})
    assert pool_of([10], [1, 2], [(10, 1)]) == ([2], {"duplicate by link": 1})
    assert pool_of([10], [1, 2], [(1, 10)]) == ([2], {"duplicate by link": 1})


def test_t42_links_are_followed_through_posts_that_are_in_neither_side():
    # 10 → 99 ← 1: 99 was filtered, 1 is still a copy of the scored question
    assert pool_of([10], [1, 2], [(10, 99), (1, 99)]) == ([2], {"duplicate by link": 1})


def test_t42_the_same_question_with_another_id_leaves_the_pool():
    texts = {10: "Mount a disk?\nHow?", 1: "mount a disk  how", 2: "Other", 3: "How? Mount a disk, a disk!"}
    assert pool_of([10], [1, 2, 3], (), texts) == ([2], {"duplicate by text": 1, "equal token set": 1})


def test_t42_layers_are_joined():
    # 10 is linked to 20 (filtered), 20 has the text of 1
    texts = {10: "ten", 20: "same text", 1: "Same text", 2: "two"}
    assert pool_of([10], [1, 2], [(20, 10)], texts) == ([2], {"duplicate by text": 1})


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=20))
def test_groups_are_the_connected_components(pairs):
    groups = Groups()
    reach = {n: {n} for n in range(10)}
    for a, b in pairs:
        groups.join(a, b)
        joined = reach[a] | reach[b]
        for n in joined:
            reach[n] = joined
    for n in range(10):
        assert groups.of(n) == min(reach[n])
