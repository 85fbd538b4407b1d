"""LFRQA: the answers of other questions are the corpus; what shares a document or is nearly the same leaves it."""

from __future__ import annotations

import pytest
from own_data import lfrqa_dataset, write_jsonl

from graphcontext.data.leaks import near_duplicates
from graphcontext.data.lfrqa import LFRQA
from graphcontext.errors import InputError, MissingDataError


def line(n: int, **more: object) -> dict[str, object]:
    values = {"qid": f"technology-forum-test-{n}", "question": f"how to do task {n} on a phone?"}
    values |= {"answer": f"Open menu {n}, choose entry {n}, then confirm.", "gold_doc_ids": [n], "citation_numbers": []}
    return values | more


def lines(n: int) -> list[dict[str, object]]:
    return [line(k) for k in range(n)]


def test_the_last_quarter_by_hashed_id_is_asked_from_the_answers_of_the_others(tmp_path):
    result = lfrqa_dataset(write_jsonl(tmp_path / "a.jsonl", lines(12)), near_duplicate=1).load()
    # the SHA-256 of "side", NUL and the id orders them 5 0 8 11 10 3 7 9 2 4 6 1
    assert [q.id for q in result.questions] == [f"technology-forum-test-{n}" for n in (1, 4, 6)]
    asked = result.questions[0]
    assert (asked.text, asked.references) == (
        "how to do task 1 on a phone?",
        ("Open menu 1, choose entry 1, then confirm.",),
    )
    (corpus,) = result.corpora.values()
    assert len(corpus.passages) == 9
    passage = corpus.passages[0]
    assert passage.match_text == "how to do task 0 on a phone?"
    assert passage.context_text.endswith("\n\nAnswer: Open menu 0, choose entry 0, then confirm.")
    assert passage.source.license == "Apache-2.0"
    assert result.card["split"]["rule"] == "last quarter in hashed id order"
    assert result.card["split"]["why"] == "no dates"
    assert result.card["questions of each kind"] == {"train": {"forum": 9}, "test": {"forum": 3}}


def test_each_side_has_its_share_of_either_kind(tmp_path):
    rows = [line(k, qid=f"technology-{'search' if k < 40 else 'forum'}-test-{k}") for k in range(160)]
    path = write_jsonl(tmp_path / "a.jsonl", rows)
    kinds = lfrqa_dataset(path, near_duplicate=1).load().card["questions of each kind"]
    assert kinds == {"train": {"forum": 91, "search": 29}, "test": {"forum": 29, "search": 11}}
    validation = [q.id for q in lfrqa_dataset(path, near_duplicate=1, side="validation").load().questions]
    assert len(validation) == 12 and sum("search" in name for name in validation) == 2


def test_t42_training_questions_that_share_a_document_with_a_test_question_leave_train(tmp_path):
    rows = lines(12)
    rows[5]["gold_doc_ids"] = [77, 4]  # as test question 4
    path = write_jsonl(tmp_path / "a.jsonl", rows)
    result = lfrqa_dataset(path, near_duplicate=1, side="train").load()
    assert result.card["leak_guard"]["training questions that copy a test question"] == 1
    titles = {p.title for corpus in result.corpora.values() for p in corpus.passages}
    titles |= {question.text for question in result.questions}
    assert len(titles) == 7 and rows[5]["question"] not in titles  # of 8, one is validation


def test_t42_training_questions_that_share_a_document_with_a_validation_question_leave_train(tmp_path):
    rows = lines(12)
    rows[5]["gold_doc_ids"] = [77, 2]  # as question 2, the last of the training side, which is validation
    path = write_jsonl(tmp_path / "a.jsonl", rows)
    result = lfrqa_dataset(path, near_duplicate=1, side="train").load()
    assert result.card["leak_guard"]["training questions that copy a validation question"] == 1
    assert sorted(int(q.id.rsplit("-", 1)[1]) for q in result.questions) == [0, 3, 7, 8, 9, 10, 11]
    keys = {s: LFRQA.identity({"name": "x", "path": str(path), "side": s}) for s in ("train", "validation", "test")}
    assert keys["validation"] == keys["test"] and list(keys["test"]) == ["content"]
    assert keys["train"] == keys["test"] | {"apart_from": "validation and test"}


@pytest.mark.parametrize(
    ("match", "text"),
    [
        ("answer", "Open menu 0, choose entry 0, then confirm."),
        ("question_answer", "how to do task 0 on a phone?\nOpen menu 0, choose entry 0, then confirm."),
    ],
)
def test_what_is_matched_can_be_chosen(tmp_path, match, text):
    path = write_jsonl(tmp_path / "a.jsonl", lines(8))
    (corpus,) = lfrqa_dataset(path, match=match, near_duplicate=1).load().corpora.values()
    assert corpus.passages[0].match_text == text


def test_t42_shared_documents_and_near_duplicates_leave_the_pool_and_are_counted(tmp_path):
    rows = lines(12)
    rows[0]["gold_doc_ids"] = [77, 1]  # as scored question 1; scored are 1, 4 and 6
    rows[5]["gold_doc_ids"] = [77]  # shares one with row 0 only, which is not scored
    rows[2]["question"] = "on a phone how to do task 4"  # the words of question 4
    # 6 of the 7 words of question 6's answer and one more: 6/8 = 0.75; then all 7 and one more: 7/8 = 0.875
    rows[3]["answer"] = "open menu 6 choose entry then now"
    rows[7]["answer"] = "open menu 6 choose entry then confirm now"
    rows[8]["question"] = "How to do TASK 1 on a phone"
    result = lfrqa_dataset(write_jsonl(tmp_path / "a.jsonl", rows), near_duplicate=0.8).load()
    (corpus,) = result.corpora.values()
    pooled = {p.title for p in corpus.passages}
    assert pooled == {rows[n]["question"] for n in (3, 5, 9, 10, 11)}
    assert result.card["leak_guard"] == {
        "own thread": 0,
        "duplicate by text": 1,
        "equal token set": 1,
        "shared gold document": 1,
        "near-duplicate": 1,
    }
    assert result.card["pool"] == 5


def test_near_duplicates_by_hand():
    class Text:
        def __init__(self, name, question, answer=""):
            self.id, self.question, self.answer = name, question, answer

    scored = [Text("s", "a b c d"), Text("e", "")]
    candidates = [
        Text("1", "a b c d e"),
        Text("2", "a b c"),
        Text("3", "A, b! c? d"),
        Text("4", ""),
    ]  # 4/5, 3/4, 1, empty
    assert near_duplicates(scored, candidates, 0.8) == {"1", "3"}
    assert near_duplicates(scored, candidates, 0.75) == {"1", "2", "3"}
    assert near_duplicates([], candidates, 0.5) == near_duplicates(scored, [], 0.5) == set()


FAULTS = {
    "no qid": ({"qid": None}, "line 2: qid is null"),
    "no question": ({"question": " "}, "line 2: question is empty"),
    "answer": ({"answer": ["x"]}, "line 2: answer is a list, expected text"),
    "documents": ({"gold_doc_ids": [None]}, r"line 2: gold_doc_ids\[0\] is null"),
    "twice": ({"qid": "technology-forum-test-0"}, "line 2: qid technology-forum-test-0 stands in line 1 too"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_bad_line_is_named(tmp_path, fault):
    more, message = FAULTS[fault]
    with pytest.raises(InputError, match=message):
        lfrqa_dataset(write_jsonl(tmp_path / "a.jsonl", [line(0), line(1, **more)])).load()


def test_empty_answers_are_left_out_and_counted(tmp_path):
    card = (
        lfrqa_dataset(write_jsonl(tmp_path / "a.jsonl", [*lines(8), line(8, answer=" ")]), near_duplicate=1).load().card
    )
    assert card["filters"] == {"no answer": 1} and card["kept"] == 8


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"match": "titel"}, "dataset.match=titel"),
        ({"near_duplicate": 0.0}, "dataset.near_duplicate=0.0; allowed"),
        ({"near_duplicate": float("nan")}, "dataset.near_duplicate=nan"),
        ({"split": "years"}, r"dataset.split=years \(allowed: auto, last_quarter\)"),
        ({"limit": 0}, "dataset.limit=0"),
    ],
)
def test_a_wrong_value_is_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        lfrqa_dataset(None, **wrong)


def test_absent_data_and_two_files(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHCONTEXT_DATA", str(tmp_path))
    with pytest.raises(MissingDataError, match="lfrqa_technology"):
        LFRQA.identity({"name": "lfrqa", "path": None})
    for name in ("a.jsonl", "b.jsonl"):
        write_jsonl(tmp_path / "lfrqa_technology" / name, lines(8))
    with pytest.raises(InputError, match=r"expected one .jsonl in this folder, found a.jsonl, b.jsonl"):
        lfrqa_dataset(None).load()


@pytest.mark.needs_data
def test_the_real_annotations(data_root, monkeypatch):
    monkeypatch.setenv("GRAPHCONTEXT_DATA", str(data_root))
    card = lfrqa_dataset(None).load().card
    assert (card["read"]["questions"], card["scored_candidates"], card["pool"]) == (1400, 350, 1027)
    assert card["leak_guard"]["shared gold document"] == 22 and card["leak_guard"]["near-duplicate"] == 1
    kinds = {"train": {"forum": 928, "search": 122}, "test": {"forum": 306, "search": 44}}
    assert card["questions of each kind"] == kinds
