"""Struct-EM: the pages and tables of a ranking against those that a question asks for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcontext.component import instantiate
from graphcontext.config import compose
from graphcontext.data.records import Corpus, Passage, Question, Ranking, Scored
from graphcontext.errors import InputError
from graphcontext.evaluate.struct_em import StructEM

KINDS = {"1": "page", "2": "page", "t": "table", "u": "table", "a": None, "b": None}
CORPUS = Corpus("c", tuple(Passage(i, "", "", i, kind=kind) for i, kind in KINDS.items()))


def score(ranked: str, gold: str, status: str = "ok") -> dict:
    """Score one ranking; each letter is a passage: 1 2 pages, t u tables, a b texts."""
    passages = tuple(Scored(p, -float(i)) for i, p in enumerate(ranked))
    question = Question("q", "What is on page 1?", "c", supports=tuple(gold))
    [row] = StructEM().score([question], [], [Ranking("q", passages, status=status)], [], {"c": CORPUS})
    return row


@pytest.mark.parametrize(
    ("ranked", "gold", "value"),
    [
        ("1ab", "1", 1.0),  # the page, then its texts
        ("1tab", "1", 1.0),  # its table after it
        ("a1", "1", 1.0),  # texts before it do not count
        ("t1", "1", 0.0),  # another node first
        ("21", "12", 1.0),  # as a set
        ("1t2", "12", 0.0),
        ("1", "12", 0.0),  # one is missing
        ("t", "tab", 1.0),  # texts among the supports are not asked for here
        ("", "1", 0.0),
    ],
)
def test_the_first_nodes_are_those_asked_for(ranked, gold, value):
    assert score(ranked, gold) == {"struct_em": value, "struct_em_asked": value}


def test_a_question_on_content_is_not_judged_in_the_second_column():
    assert score("1a", "a") == {"struct_em": 0.0, "struct_em_asked": None}
    assert score("1a", "") == {"struct_em": 0.0, "struct_em_asked": None}


@given(st.lists(st.sampled_from(list(KINDS)), unique=True), st.sets(st.sampled_from("12tu"), min_size=1))
def test_equals_a_search_for_the_shortest_beginning(ranked, gold):
    # right where some beginning of the ranking holds the asked nodes and no other node
    beginnings = [{i for i in ranked[:n] if KINDS[i]} for n in range(len(ranked) + 1)]
    assert score("".join(ranked), "".join(sorted(gold)))["struct_em"] == float(gold in beginnings)


def test_rankings_of_other_questions_are_refused_and_the_option_builds():
    with pytest.raises(InputError, match="struct_em: 1 rankings that are not of these 1 questions"):
        StructEM().score([Question("q", "?", "c")], [], [Ranking("other", ())], [], {"c": CORPUS})
    metric = instantiate(compose(["metric=[struct_em]", "generator=none"]).config["metric"], "metric")["struct_em"]
    assert isinstance(metric, StructEM)
    assert not metric.needs_answers and metric.needs_supports and metric.needs_corpora
