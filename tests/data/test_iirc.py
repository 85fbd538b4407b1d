"""IIRC's JSON: a passage with the articles it links to, gold by the text of spans, answers by type."""

from __future__ import annotations

import pytest
from multihop_files import iirc, iirc_article, iirc_passage, write_iirc, write_json

from graphcontext.errors import InputError


def load(tmp_path, passage, articles=None, **overrides):
    write_json(tmp_path / "dev.json", [passage])
    write_json(tmp_path / "context_articles.json", articles or {"river 1": iirc_article(1)})
    return iirc(tmp_path, **overrides).load()


def answered(answer):
    passage = iirc_passage(1)
    passage["questions"][0]["answer"] = answer
    return passage


def test_a_question_has_the_passage_and_the_linked_articles(tmp_path):
    loaded = iirc(write_iirc(tmp_path)).load()
    assert [question.id for question in loaded.questions] == ["q_1", "q_2", "q_3", "q_1v", "q_2v", "q_3v"]
    question = loaded.questions[0]
    passages = loaded.corpora[question.corpus_id].passages
    assert [(p.title, p.match_text) for p in passages] == [
        ("Town 1", "Town 1 is old."),
        ("Town 1", "It lies on River 1."),
        ("Town 1", "It has 1000 people."),
        ("River 1", "River 1 is long & wide."),
        ("River 1", "It flows into Sea 1."),
        ("River 1", "Ships use it."),
    ]
    assert question.supports == (passages[1].id, passages[4].id)
    assert loaded.questions[3].supports == (passages[2].id,)
    assert sorted(loaded.card["types"]) == ["span", "value"]


def test_a_line_of_an_article_is_a_paragraph(tmp_path):
    loaded = load(tmp_path, iirc_passage(1), passage_unit="paragraph")
    passages = next(iter(loaded.corpora.values())).passages
    assert [p.match_text for p in passages[1:]] == ["River 1 is long & wide.", "It flows into Sea 1. Ships use it."]


@pytest.mark.parametrize(
    ("answer", "references"),
    [
        ({"type": "span", "answer_spans": [{"text": "A"}, {"text": " B \n b"}, {"text": "A"}]}, ("A", "B b")),
        ({"type": "value", "answer_value": "12", "answer_unit": "years"}, ("12 years", "12")),
        ({"type": "value", "answer_value": 12, "answer_unit": ""}, ("12",)),
        ({"type": "binary", "answer_value": "yes"}, ("yes",)),
        ({"type": "none"}, ("no answer", "noanswer")),
    ],
)
def test_answers_are_what_is_acceptable_of_their_type(tmp_path, answer, references):
    assert load(tmp_path, answered(answer)).questions[0].references == references


def test_another_type_of_answer_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"question q_1: answer\.type is 'date', expected span, value, binary or none"):
        load(tmp_path, answered({"type": "date"}))


def test_a_span_over_two_sentences_makes_both_gold(tmp_path):
    passage = iirc_passage(1)
    passage["questions"][0]["context"] = [{"passage": "main", "text": "old. It lies", "indices": [10, 22]}]
    loaded = load(tmp_path, passage)
    passages = loaded.corpora[loaded.questions[0].corpus_id].passages
    assert loaded.questions[0].supports == (passages[0].id, passages[1].id)


def test_of_two_equal_spans_the_one_near_the_indices_is_meant(tmp_path):
    passage = iirc_passage(1, text="He won. Others lost. He won.")
    passage["questions"][0]["context"] = [{"passage": "main", "text": "He won.", "indices": [21, 28]}]
    loaded = load(tmp_path, passage)
    passages = loaded.corpora[loaded.questions[0].corpus_id].passages
    assert loaded.questions[0].supports == (passages[2].id,)
    assert passages[0].id != passages[2].id  # equal texts of one title are two passages


def test_spans_that_are_not_found_are_counted(tmp_path):
    passage = iirc_passage(1)
    lost = [{"passage": "main", "text": "no such words"}, {"passage": "Nowhere", "text": "Town"}]
    passage["questions"][0]["context"] += lost
    counts = load(tmp_path, passage).card["counts"]
    assert counts["supports that are not in the context, left out"] == 2


def test_an_article_that_no_link_names_belongs_to_the_context_where_gold_lies_in_it(tmp_path):
    loaded = load(tmp_path, iirc_passage(1, links=[]))
    assert loaded.card["counts"]["supports that are not in the context, left out"] == 0
    assert {p.title for c in loaded.corpora.values() for p in c.passages} == {"Town 1", "river 1"}


def test_n_documents_keeps_the_articles_that_hold_gold(tmp_path):
    links = [{"target": name} for name in ("Sea 1", "Sea 2", "River 1")]
    articles = {"river 1": iirc_article(1), "sea 1": "A sea.", "sea 2": "Another sea."}
    loaded = load(tmp_path, iirc_passage(1, links=links), articles, n_documents=2)
    titles = [
        list(dict.fromkeys(p.title for p in loaded.corpora[question.corpus_id].passages))
        for question in loaded.questions
    ]
    assert titles == [["Town 1", "River 1"], ["Town 1", "Sea 1"]]  # the second question has gold in the passage alone


def test_without_the_articles_the_file_to_add_is_named(tmp_path):
    path = write_json(tmp_path / "dev.json", [iirc_passage(1)])
    with pytest.raises(InputError, match=r"holds no context_articles\.json"):
        iirc(path).load()


def test_an_article_that_is_no_text_is_named(tmp_path):
    with pytest.raises(InputError, match=r"context_articles\.json: article 'river 1': is a number, expected text"):
        load(tmp_path, iirc_passage(1), {"river 1": 3})


def test_a_fault_in_a_question_says_in_which(tmp_path):
    passage = iirc_passage(1)
    del passage["questions"][1]["qid"]
    with pytest.raises(InputError, match=r"dev\.json: item 0, questions\[1\]: has no key qid"):
        load(tmp_path, passage)
