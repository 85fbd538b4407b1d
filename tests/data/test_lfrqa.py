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


def test_the_last_quarter_in_id_order_is_asked_from_the_answers_of_the_others(tmp_path):
    result = lfrqa_dataset(write_jsonl(tmp_path / "a.jsonl", lines(12)), near_duplicate=1).load()
    assert [q.id for q in result.questions] == [f"technology-forum-test-{n}" for n in (9, 10, 11)]  # 10 after 9
    asked = result.questions[0]
    assert (asked.text, asked.references) == (
        "how to do task 9 on a phone?",
        ("Open menu 9, choose entry 9, then confirm.",),
    )
    (corpus,) = result.corpora.values()
    assert len(corpus.passages) == 9
    passage = corpus.passages[0]
    assert passage.match_text == "how to do task 0 on a phone?"
    assert passage.context_text.endswith("\n\nAnswer: Open menu 0, choose entry 0, then confirm.")
    assert passage.source.license == "Apache-2.0"
    assert result.card["split"]["rule"] == "last quarter in id order" and result.card["split"]["why"] == "no dates"


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
    rows[0]["gold_doc_ids"] = [77, 9]  # as scored question 9
    rows[1]["gold_doc_ids"] = [77]  # shares one with row 0 only, which is not scored
    rows[2]["question"] = "on a phone how to do task 10"  # the words of question 10
    # 5 of 6 words of question 11's answer and one more: 5/7 = 0.71; then 6 of 7: 0.857
    rows[3]["answer"] = "open menu 11 choose entry then now"
    rows[4]["answer"] = "open menu 11 choose entry then confirm now"
    rows[5]["question"] = "How to do TASK 9 on a phone"
    result = lfrqa_dataset(write_jsonl(tmp_path / "a.jsonl", rows), near_duplicate=0.8).load()
    (corpus,) = result.corpora.values()
    pooled = {p.title for p in corpus.passages}
    assert pooled == {rows[n]["question"] for n in (1, 3, 6, 7, 8)}
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
    assert (card["read"]["questions"], card["scored_candidates"], card["pool"]) == (1400, 350, 1042)
    assert card["leak_guard"]["shared gold document"] == 8 and card["leak_guard"]["near-duplicate"] == 0
