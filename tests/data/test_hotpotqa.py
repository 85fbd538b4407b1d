"""HotpotQA's and 2Wiki's JSON: gold sentences in order, titles that stand twice, facts that name nothing."""

from __future__ import annotations

import pytest
from multihop_files import hotpot_item, hotpotqa, twowiki, write_hotpot, write_json

from graphcontext.data.records import content_id
from graphcontext.errors import InputError, MissingDataError
from graphcontext.retrieve.tfidf import TFIDF


def load(tmp_path, *items, **overrides):
    return hotpotqa(write_json(tmp_path / "dev.json", list(items)), **overrides).load()


def test_a_question_has_its_context_as_corpus_and_its_gold_sentences_in_order(tmp_path):
    loaded = hotpotqa(write_hotpot(tmp_path)).load()
    question = loaded.questions[0]
    assert (question.id, question.references) == ("q1", ("Sea 1",))
    corpus = loaded.corpora[question.corpus_id]
    assert [passage.match_text for passage in corpus.passages] == [
        *("Town 1 lies on River 1.", "It has 1000 people."),
        *("River 1 is long.", "It flows into Sea 1.", "Ships use it."),
    ]
    passage = corpus.passages[3]
    assert passage.context_text == "River 1: It flows into Sea 1."
    assert (passage.title, passage.source.document, passage.source.license) == ("River 1", "River 1", "CC BY-SA 4.0")
    assert passage.id == content_id("River 1", "It flows into Sea 1.", "0")
    assert question.supports == (corpus.passages[0].id, passage.id)


def test_supports_follow_the_file_without_repeats(tmp_path):
    facts = [["River 1", 1], ["Town 1", 0], ["River 1", 1]]
    loaded = load(tmp_path, hotpot_item(1, supporting_facts=facts))
    passages = next(iter(loaded.corpora.values())).passages
    assert loaded.questions[0].supports == (passages[3].id, passages[0].id)


def test_merged_sentences_are_gold_where_they_hold_a_gold_sentence(tmp_path):
    # "River 1 is long. It flows into Sea 1." has 37 characters, with " Ships use it." 51
    loaded = load(tmp_path, hotpot_item(1), passage_unit="merged:45")
    passages = next(iter(loaded.corpora.values())).passages
    assert [passage.match_text for passage in passages] == [
        "Town 1 lies on River 1. It has 1000 people.",
        "River 1 is long. It flows into Sea 1.",
        "Ships use it.",
    ]
    assert loaded.questions[0].supports == (passages[0].id, passages[1].id)


def test_facts_that_name_nothing_are_left_out_and_counted(tmp_path):
    facts = [["Town 1", 0], ["Town 1", 2], ["Nowhere", 0], ["River 1", -1]]
    lost = hotpot_item(2, supporting_facts=[["Town 2", 9]])
    loaded = load(tmp_path, hotpot_item(1, supporting_facts=facts), lost, hotpot_item(3, supporting_facts=[]))
    assert [len(question.supports) for question in loaded.questions] == [1, 0, 0]
    counts = loaded.card["counts"]
    assert counts["supports that are not in the context, left out"] == 4
    assert counts["scored questions with such supports"] == 2
    assert counts["scored questions without supports"] == 2


def test_a_blank_sentence_is_no_passage_and_keeps_the_numbers_of_the_others(tmp_path):
    context = [["Town 1", ["", "Town 1 is old.", " "]]]
    loaded = load(tmp_path, hotpot_item(1, context=context, supporting_facts=[["Town 1", 1], ["Town 1", 0]]))
    (passage,) = next(iter(loaded.corpora.values())).passages
    assert (passage.match_text, loaded.questions[0].supports) == ("Town 1 is old.", (passage.id,))
    assert loaded.card["counts"]["supports that are not in the context, left out"] == 1


def test_t03_two_documents_of_one_title_are_two_and_both_are_found(tmp_path):
    context = [["Green", ["a colour"]], ["Green", ["an album"]], ["Green", ["a colour"]]]
    item = hotpot_item(1, question="album or colour?", context=context, supporting_facts=[["Green", 0]])
    loaded = load(tmp_path, item)
    passages = next(iter(loaded.corpora.values())).passages
    assert len({passage.id for passage in passages}) == 3
    assert [passage.source.document for passage in passages] == ["Green", "Green (2)", "Green (3)"]
    assert passages[2].id == content_id("Green", "a colour", "1")
    assert loaded.questions[0].supports == (passages[0].id,)
    (ranking,) = TFIDF(top_k=3).retrieve(loaded.questions, loaded.corpora, {})
    assert {hit.id for hit in ranking.passages} == {passage.id for passage in passages}


def test_2wiki_has_further_keys_that_nothing_reads(tmp_path):
    more = {"evidences": [["Town 1", "river", "River 1"]], "evidences_id": [], "entity_ids": "Q1", "answer_id": "Q2"}
    loaded = twowiki(write_json(tmp_path / "dev.json", [hotpot_item(1, type="compositional", **more)])).load()
    assert loaded.questions[0].references == ("Sea 1",)
    assert list(loaded.card["types"]) == ["compositional"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"context": []}, "question q1: has an empty context"),
        ({"context": [["T", []]]}, "question q1: has an empty context"),
        ({"context": [["T"]]}, "question q1: context[0] is a list of 1, expected [title, sentences]"),
        ({"context": {"title": []}}, "question q1: context is an object, expected a list"),
        ({"context": [["T", ["a", 3]]]}, "question q1: context[0][1][1] is a number, expected text"),
        ({"supporting_facts": [["T", "0"]]}, "question q1: supporting_facts[0][1] is text, expected a whole number"),
        ({"question": " "}, "question q1: has an empty question"),
        ({"answer": None}, "question q1: answer is null, expected text"),
        ({"_id": True}, "item 0: _id is true or false, expected text"),
    ],
)
def test_a_fault_is_one_line_with_file_and_question(tmp_path, change, said):
    with pytest.raises(InputError) as error:
        load(tmp_path, hotpot_item(1, **change))
    assert f"dev.json: {said}" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("key", ["_id", "question", "answer", "context", "supporting_facts"])
def test_a_missing_key_is_named_beside_those_there_are(tmp_path, key):
    item = hotpot_item(1)
    del item[key]
    with pytest.raises(InputError, match=f"has no key {key}; its keys: "):
        load(tmp_path, item)


def test_an_id_that_stands_twice_is_refused(tmp_path):
    with pytest.raises(InputError, match="item 2: has the id q1, which stands in item 0 too"):
        load(tmp_path, hotpot_item(1), hotpot_item(2), hotpot_item(1))


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("", "the file ends too early: it is cut"),
        ('[{"_id": "q1", "question": "wh', "is no JSON"),
        ('[{"_id": "q1"}', "the file ends too early: it is cut"),
        ("{}", "holds an object, expected a list of items"),
        ("[]", "holds no question"),
        ('["a"]', "item 0: is text, expected an object"),
        ("[NaN]", "NaN is no number of JSON"),
    ],
)
def test_a_file_that_is_no_list_of_items_is_told(tmp_path, raw, said):
    (tmp_path / "dev.json").write_text(raw)
    with pytest.raises(InputError) as error:
        hotpotqa(tmp_path).load()
    assert said in str(error.value)
    assert "dev.json" in str(error.value)


def test_without_data_the_places_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHCONTEXT_DATA", str(tmp_path))
    with pytest.raises(MissingDataError, match="no data: hotpotqa"):
        hotpotqa(None).load()


@pytest.mark.needs_data
@pytest.mark.parametrize(
    ("reader", "folder", "n", "passages", "share", "first"),
    [(hotpotqa, "hotpotqa", 200, 40.7, 0.885, 30), (twowiki, "2wikimultihopqa", 114, 32.3, 0.877, 30)],
)
def test_real_files_have_the_known_size_and_share_found(data_root, reader, folder, n, passages, share, first):
    """TF-IDF's SF-EM@30, where passages that share no word with the question fill up the ranks."""
    loaded = reader(data_root / folder).load()
    assert len(loaded.questions) == len(loaded.corpora) == n
    assert loaded.card["per_question"]["passages"] == pytest.approx(passages, abs=0.05)
    assert sf_em(loaded, first) == pytest.approx(share, abs=5e-4)


@pytest.mark.slow
@pytest.mark.needs_data
def test_padded_real_files_find_less(data_root):
    """Padded to 700: .755 and .316 by another seed, .745 and .325 by seed 0."""
    for reader, folder, share in ((hotpotqa, "hotpotqa", 0.745), (twowiki, "2wikimultihopqa", 0.325)):
        loaded = reader(data_root / folder, n_passages=700).load()
        assert {len(corpus.passages) for corpus in loaded.corpora.values()} == {700}
        assert sf_em(loaded, 30) == pytest.approx(share, abs=5e-4)


def sf_em(loaded, first):
    rankings = TFIDF(top_k=first).retrieve(loaded.questions, loaded.corpora, {})
    found = 0
    for question, ranking in zip(loaded.questions, rankings, strict=True):
        ids = dict.fromkeys(hit.id for hit in ranking.passages)
        ids |= dict.fromkeys(passage.id for passage in loaded.corpora[question.corpus_id].passages)
        found += set(question.supports) <= set(list(ids)[:first])
    return found / len(rankings)
