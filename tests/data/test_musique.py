"""MuSiQue's JSONL: gold paragraphs in the order of the decomposition, all acceptable answers."""

from __future__ import annotations

import pytest
from multihop_files import musique, musique_item, write_musique
from own_data import write_jsonl
from test_hotpotqa import sf_em

from graphcontext.errors import InputError


def load(tmp_path, *items, **overrides):
    return musique(write_jsonl(tmp_path / "dev.jsonl", list(items)), **overrides).load()


def test_supports_follow_the_decomposition_and_every_alias_is_acceptable(tmp_path):
    loaded = musique(write_musique(tmp_path)).load()
    question = loaded.questions[0]
    assert question.references == ("Sea 1", "the Sea 1")
    passages = loaded.corpora[question.corpus_id].passages
    assert [p.match_text for p in passages] == [
        "River 1 flows into Sea 1.",
        "Hill 1 is high.",
        "Town 1 lies on River 1.",
    ]
    assert question.supports == (passages[2].id, passages[0].id)  # the file has them the other way round
    assert [p.source.document for p in passages] == ["River 1", "Town 1", "Town 1 (2)"]
    assert loaded.card["types"]["2hop"]["supports"] == 2


def test_supports_that_no_hop_names_follow_and_lost_ones_are_counted(tmp_path):
    hops = [{"id": 1, "question": "", "answer": "", "paragraph_support_idx": n} for n in (2, None, 9)]
    loaded = load(tmp_path, musique_item(1, question_decomposition=hops))
    passages = next(iter(loaded.corpora.values())).passages
    assert loaded.questions[0].supports == (passages[2].id, passages[0].id)
    assert loaded.card["counts"]["supports that are not in the context, left out"] == 1


def test_the_type_is_the_head_of_the_id_else_the_number_of_hops(tmp_path):
    loaded = load(tmp_path, musique_item(1, id="4hop3__1_2_3_4"), musique_item(2, id="x"))
    assert sorted(loaded.card["types"]) == ["2hop", "4hop3"]


def test_there_are_no_sentences_to_cut_into(tmp_path):
    with pytest.raises(InputError, match="passage_unit=merged:250: musique has no sentences; allowed: paragraph"):
        musique(tmp_path, passage_unit="merged:250")


def test_the_answerable_set_is_taken_where_both_are_there(tmp_path):
    write_musique(tmp_path)
    write_jsonl(tmp_path / "musique_full_v1.0_dev.jsonl", [])
    assert musique(tmp_path).load().card["files"] == {"test": "musique_ans_v1.0_dev.jsonl"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"answer_aliases": "a"}, "answer_aliases is text, expected a list"),
        ({"paragraphs": []}, "has an empty context"),
        ({"paragraphs": [{"idx": 0}]}, "paragraphs[0] has no key title; its keys: idx"),
        ({"question_decomposition": [{"paragraph_support_idx": "2"}]}, "is text, expected a whole number"),
    ],
)
def test_a_fault_is_one_line_with_file_and_question(tmp_path, change, said):
    with pytest.raises(InputError) as error:
        load(tmp_path, musique_item(1, **change))
    assert "dev.jsonl: question 2hop__1_1: " in str(error.value)
    assert said in str(error.value)


def test_two_paragraphs_of_one_number_are_refused(tmp_path):
    item = musique_item(1)
    item["paragraphs"][2]["idx"] = 0
    with pytest.raises(InputError, match=r"paragraphs\[2\] has the idx 0 of another paragraph"):
        load(tmp_path, item)


def test_an_id_that_stands_twice_is_told_by_lines(tmp_path):
    with pytest.raises(InputError, match="line 2: has the id 2hop__1_1, which stands in line 1 too"):
        load(tmp_path, musique_item(1), musique_item(1))


@pytest.mark.needs_data
def test_real_files_have_the_known_size_and_share_found(data_root):
    """All 20 paragraphs of a question are among the first 30."""
    loaded = musique(data_root / "musique").load()
    assert loaded.card["per_question"]["passages"] == 20
    assert sf_em(loaded, 30) == 1
    train = musique(data_root / "musique", side="train").load()
    assert len(train.questions) == 90
    assert {"3hop1", "4hop3"} <= set(train.card["types"])


@pytest.mark.slow
@pytest.mark.needs_data
def test_padded_real_files_find_less(data_root):
    """Padded to 700: .620 by another seed, .600 by seed 0."""
    padded = musique(data_root / "musique", n_passages=700).load()
    assert sf_em(padded, 30) == pytest.approx(0.6, abs=5e-4)
