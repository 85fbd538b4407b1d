"""Examples of a bi-encoder, by hand: which passages are gold, which may be drawn, and what a draw depends on."""

from __future__ import annotations

import pytest

from graphcontext.data.records import Corpus, Passage, Question
from graphcontext.errors import InputError
from graphcontext.train.bi_encoder import BiEncoder, Others

PLAIN = {"negatives": 1, "scale": 20.0, "question_tokens": 70, "passage_tokens": 300, "joiner": "\n"}


def passage(name, text=None):
    return Passage(name, name, f"text of {name}" if text is None else text, "shown")


TWINS = (passage("again", "text of a"), passage("twin", "text of x"))
CORPUS = Corpus("c", (*map(passage, "abxy"), passage("page", ""), *TWINS))


def asked(hops, *supports):
    question = Question("q", "who?", "c", supports=supports)
    return BiEncoder(hops, **PLAIN).build([question], {"c": CORPUS})


def test_dpr_has_an_example_for_each_gold_passage_of_which_none_is_a_negative():
    first, second = asked(1, "b", "a")
    assert (first.id, second.id) == ("q/1", "q/2")
    assert first.queries == second.queries == ("who?",)
    assert (first.targets, second.targets) == (("text of b",), ("text of a",))
    # neither the other gold passage, nor "again", whose text is that of a gold one; x once, the blank page not at all
    assert list(first.others) == list(second.others) == ["text of x", "text of y"]
    assert first.golds == ("text of b", "text of a")


def test_mdr_pairs_the_question_with_the_first_and_both_with_the_second():
    (example,) = asked(2, "b", "a", "x")
    assert example.id == "q"
    assert example.queries == ("who?", "who?\ntext of b")
    assert example.targets == ("text of b", "text of a")
    assert example.golds == ("text of b", "text of a", "text of x") and list(example.others) == ["text of y"]


def test_too_few_gold_passages_are_a_reason():
    assert [e.reason for e in asked(1)] == ["no gold passage"]
    assert [e.reason for e in asked(2, "a", "again")] == ["fewer than 2 gold passages"]  # one text, twice
    assert [e.reason for e in asked(1, "elsewhere")] == ["no gold passage"]


def test_a_draw_depends_on_seed_step_and_example_alone():
    loss = BiEncoder(1, **PLAIN | {"negatives": 3})
    others = [f"passage {n}" for n in range(50)]
    drawn = loss.draw("q/1", others, seed=0, step=4)
    assert len(set(drawn)) == 3 and drawn == loss.draw("q/1", others, seed=0, step=4)
    assert drawn != loss.draw("q/2", others, seed=0, step=4)
    assert drawn != loss.draw("q/1", others, seed=0, step=5)
    assert drawn != loss.draw("q/1", others, seed=1, step=4)
    assert sorted(loss.draw("q", others[:2], 0, 0)) == others[:2]  # all there are
    view, copy = Others(others, [49, 0, 7]), [*others[1:7], *others[8:49]]  # without a copy, and the same draws
    assert list(view) == copy and (view[-1], view[3:9]) == (copy[-1], copy[3:9])
    assert loss.draw("q/1", view, 0, 4) == loss.draw("q/1", copy, 0, 4)
    with pytest.raises(IndexError):
        view[47]


@pytest.mark.parametrize(
    ("name", "value"), [("hops", 0), ("negatives", -1), ("scale", 0.0), ("question_tokens", 3), ("passage_tokens", 7)]
)
def test_values_that_are_not_allowed(name, value):
    with pytest.raises(InputError, match=rf"bi_encoder\.{name}={value}; allowed: "):
        BiEncoder(**{"hops": 1, **PLAIN, name: value})
