"""Pairs of passages as KGP shows them."""

from __future__ import annotations

import pytest

from graphcontext.data.records import Corpus, Passage, Question, Ranking, Scored, Step
from graphcontext.enhance.none import NoEnhancement
from graphcontext.enhance.pairs import Pairs
from graphcontext.errors import RunError

TEXTS = {i: f"text {i}" for i in "abcdx"} | {"a2": "text a"}
CORPUS = Corpus("c", tuple(Passage(i, "", i, text) for i, text in TEXTS.items()))
QUESTION = Question("q", "?", "c")


def enhance(*steps, found="abcd", **options):
    ranking = Ranking("q", tuple(Scored(i, 1 / n) for n, i in enumerate(found, 1)), steps=steps or None, **options)
    return Pairs().enhance([QUESTION], [ranking], {"c": CORPUS})[0], ranking


def step(path, *chosen):
    return Step(tuple(path), "evidence", chosen, 5)


def texts(context):
    return [unit.text for unit in context.units]


def test_each_seed_is_shown_with_each_of_its_neighbours():
    context, _ = enhance(step("", "a", "b"), step("a", "c", "d"), step("b", "c"))
    assert texts(context) == ["text a\ntext c", "text a\ntext d", "text b\ntext c"]  # a and c twice
    assert [unit.source for unit in context.units] == ["c", "d", "c"]
    assert len({unit.id for unit in context.units}) == 3


def test_a_seed_that_leads_nowhere_is_shown_alone():
    context, _ = enhance(step("", "a", "b"), step("a"), step("b", "c"))
    assert texts(context) == ["text a", "text b\ntext c"]
    assert (context.units[0].id, context.units[0].source) == ("a", "a")


def test_a_neighbour_with_the_seeds_own_text_is_passed_over():
    assert texts(enhance(step("", "a"), step("a", "a2", "c"))[0]) == ["text a\ntext c"]
    assert texts(enhance(step("", "a"), step("a", "a2"))[0]) == ["text a"]


def test_longer_paths_are_shown_whole_and_once():
    context, _ = enhance(step("", "a", "b"), step("a", "c"), step("ac", "d", "x"))
    assert texts(context) == ["text b", "text a\ntext c\ntext d", "text a\ntext c\ntext x"]  # b was not gone on from


def test_steps_of_one_path_in_several_parts_as_mdr_gives_them():
    context, _ = enhance(step("", "a", "b"), step("a", "c"), step("b", "a"), step("a", "d"))
    assert texts(context) == ["text a\ntext c", "text b\ntext a", "text a\ntext d"]


def test_a_ranking_without_steps_is_shown_as_it_is():
    context, ranking = enhance(reason="stopped")
    assert context == NoEnhancement().enhance([QUESTION], [ranking], {"c": CORPUS})[0]
    assert enhance(step("", "a"), found="", status="failed")[0].status == "failed"
    assert enhance(step(""), found="", status="empty", reason="no word")[0].reason == "no word"


def test_a_passage_that_is_not_in_the_corpus_is_named():
    with pytest.raises(RunError, match="has no passage z"):
        enhance(found="z")
