"""Data of a user's own in JSONL, BEIR's and FlashRAG's files as they are: texts, ids, sides, counts, faults."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from own_data import jsonl_dataset, write_jsonl

from graphcontext.data.card import card_markdown
from graphcontext.data.jsonl import JSONL
from graphcontext.data.qrels import read_qrels
from graphcontext.data.records import Question, from_json, to_json
from graphcontext.errors import InputError, MissingDataError


def own(folder: Path, n: int = 8, **more: object) -> Path:
    """Four passages and ``n`` questions in our own layout."""
    write_jsonl(folder / "corpus.jsonl", [{"id": f"d{k}", "title": f"T{k}", "text": f"text {k}"} for k in range(4)])
    asked = [{"id": f"q{k}", "question": f"what is {k}?", "answers": [str(k)], "supports": [f"d{k}"]} for k in range(n)]
    write_jsonl(folder / "questions.jsonl", [row | more for row in asked])
    return folder


def beir(folder: Path, **sides: list[int]) -> Path:
    """Four passages, 30 questions, and a qrels file of each side."""
    passages = [{"_id": f"d{k}", "title": "", "text": f"text {k}", "metadata": {}} for k in range(4)]
    write_jsonl(folder / "corpus.jsonl", passages)
    write_jsonl(folder / "queries.jsonl", [{"_id": str(k), "text": f"what is {k}?", "metadata": {}} for k in range(30)])
    (folder / "qrels").mkdir()
    for side, asked in sides.items():
        lines = "".join(f"{k}\td{k % 4}\t1\n" for k in asked)
        (folder / "qrels" / f"{side}.tsv").write_text(f"query-id\tcorpus-id\tscore\n{lines}")
    return folder


def flashrag(folder: Path, *sides: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    write_jsonl(folder / "corpus.jsonl", [{"id": k, "contents": f'"T{k}"\ntext {k}'} for k in range(4)])
    for side in sides:
        rows = [{"id": f"{side}_{k}", "question": f"{side} {k}?", "golden_answers": [f"a{k}", " "]} for k in range(20)]
        write_jsonl(folder / f"{side}.jsonl", rows)
    return folder


def passages(folder: Path, **overrides: object):
    (corpus,) = jsonl_dataset(folder, **overrides).load().corpora.values()
    return corpus.passages


def asked(folder: Path, side: str = "test", **overrides: object) -> list[str]:
    return [q.id for q in jsonl_dataset(folder, side=side, **overrides).load().questions]


# -- our own layout ------------------------------------------------------------------------------


def test_texts_ids_and_gold_are_the_users_own(tmp_path):
    folder = own(tmp_path)
    rows = [
        {"id": "a", "title": "Green", "text": "a colour", "url": "https://example.org/a"},
        {"id": "b", "text": "What is green?", "answer": "A colour."},
    ]
    write_jsonl(folder / "corpus.jsonl", [*rows, {"id": 3, "title": None, "text": "x"}])
    first, second, third = passages(folder, license="CC0")
    assert (first.id, first.title, first.match_text, first.context_text) == ("a", "Green", *["Green\na colour"] * 2)
    assert (first.source.link, first.source.license, first.answers) == ("https://example.org/a", "CC0", ())
    assert (second.id, second.match_text) == ("b", "What is green?")
    assert second.context_text == "What is green?\n\nAnswer: A colour."
    assert [(a.text, a.accepted) for a in second.answers] == [("A colour.", True)]
    assert (third.id, third.title) == ("3", "")
    question = jsonl_dataset(folder).load().questions[0]
    assert (question.id, question.text, question.references, question.supports) == ("q6", "what is 6?", ("6",), ("d6",))


def test_t03_two_passages_of_one_title_are_two(tmp_path):
    folder = own(tmp_path)
    rows = [{"id": "1", "title": "Green", "text": "a colour"}, {"id": "2", "title": "Green", "text": "an album"}]
    write_jsonl(folder / "corpus.jsonl", rows)
    assert [(p.id, p.match_text) for p in passages(folder)] == [("1", "Green\na colour"), ("2", "Green\nan album")]


def test_t04_the_number_of_passages_can_be_checked(tmp_path):
    folder = own(tmp_path)
    assert jsonl_dataset(folder, expected_passages=4).load().card["expected_passages"] == 4
    with pytest.raises(InputError, match=r"corpus.jsonl holds 4 passages, dataset.expected_passages says 12"):
        jsonl_dataset(folder, expected_passages=12).load()
    with pytest.raises(InputError, match=r"dataset.expected_passages=0; allowed"):
        jsonl_dataset(folder, expected_passages=0)


def test_without_sides_the_last_quarter_is_the_test_side_by_id_or_in_time(tmp_path):
    folder = own(tmp_path, 40)
    assert asked(folder) == [f"q{k}" for k in range(30, 40)]  # q30 after q9: shorter ids first
    assert asked(folder, "validation") == ["q27", "q28", "q29"]  # the last tenth of 30
    assert asked(folder, "train") == [f"q{k}" for k in range(27)]
    card = jsonl_dataset(folder).load().card
    assert (card["split"]["rule"], card["layout"]) == ("last quarter in id order", "graphcontext")
    rows = [{"id": k, "question": f"what is {k}?", "date": f"2020-01-{20 - k:02d}"} for k in range(8)]
    write_jsonl(folder / "questions.jsonl", rows)
    assert asked(folder) == ["0", "1"]


def test_a_split_key_in_the_questions_is_kept(tmp_path):
    folder = own(tmp_path, 8, split="test")
    assert len(asked(folder)) == 8
    rows = [{"id": k, "question": f"what is {k}?", "split": "dev" if k < 2 else "test"} for k in range(5)]
    write_jsonl(folder / "questions.jsonl", rows)
    assert asked(folder) == ["2", "3", "4"] and asked(folder, "validation") == ["0", "1"]
    with pytest.raises(InputError, match=r"split=train has no question \(official: train 0, validation 2, test 3\)"):
        asked(folder, "train")


def test_one_question_is_asked(tmp_path):
    assert asked(own(tmp_path, 1)) == ["q0"]


def test_t42_copies_of_test_questions_leave_a_training_side_of_our_own_cut(tmp_path):
    folder = own(tmp_path)
    rows = [{"id": k, "question": f"what is {k}?"} for k in range(8)]
    rows[0]["question"] = "What is 7"  # test: 6 and 7
    write_jsonl(folder / "questions.jsonl", rows)
    card = jsonl_dataset(folder, side="train").load().card
    assert card["copies"]["questions of other sides equal to a test question, excluded"] == 1
    assert asked(folder, "train") == ["1", "2", "3", "4"]  # 5 is validation


def test_t42_copies_leave_official_sides_too_and_can_be_kept(tmp_path):
    folder = own(tmp_path)
    sides = {"train": ["A?", "b", "c", "d"], "dev": ["a", "C!"], "test": ["a"]}
    rows = [{"id": f"{s}{k}", "question": q, "split": s} for s, asked_ in sides.items() for k, q in enumerate(asked_)]
    write_jsonl(folder / "questions.jsonl", rows)
    assert asked(folder, "train") == ["train1", "train3"] and asked(folder, "validation") == ["dev1"]
    card = jsonl_dataset(folder).load().card
    assert {name: n for name, n in card["copies"].items() if n} == {
        "questions of other sides equal to a test question, excluded": 2,
        "training questions equal to a validation question, excluded": 1,
    }
    assert (card["split"]["train"], card["split"]["validation"], card["split"]["test"]) == (2, 1, 1)
    kept = {"exclude_duplicates": False}
    assert len(asked(folder, "train", **kept)) == 4 and len(asked(folder, "validation", **kept)) == 2
    copies = jsonl_dataset(folder, **kept).load().card["copies"]
    assert copies["questions of other sides equal to a test question, kept"] == 2
    assert copies["training questions equal to a validation question, kept"] == 2  # with those of the test side


def test_t42_copies_of_validation_leave_a_training_side_of_our_own_cut(tmp_path):
    folder = own(tmp_path)
    rows = [{"id": k, "question": f"what is {k}?"} for k in range(8)]
    rows[0]["question"] = "What is 5"  # validation
    write_jsonl(folder / "questions.jsonl", rows)
    assert asked(folder, "validation") == ["5"] and asked(folder, "train") == ["1", "2", "3", "4"]


def test_questions_of_signs_alone_are_no_copies(tmp_path):
    folder = own(tmp_path)
    rows = [{"id": k, "question": sign, "split": "test" if k else "train"} for k, sign in enumerate(("∀?", "∃?", "x"))]
    write_jsonl(folder / "questions.jsonl", [*rows, {"id": 3, "question": "y", "split": "dev"}])
    assert asked(folder, "train") == ["0"]


@pytest.mark.parametrize("rule", ["auto", "last_quarter"])
def test_t42_answered_passages_that_are_a_scored_question_leave_the_pool(tmp_path, rule):
    folder = own(tmp_path, 8, split="test")  # scored by last_quarter: 6 and 7, whose gold passages are d6 and d7
    if rule == "last_quarter":
        own(tmp_path)
    answered = [
        {"id": "x", "text": "What is 7", "answer": "7"},
        {"id": "y", "title": "What is 6?", "text": "more of it", "answer": "6"},
        {"id": "z", "title": "What is", "text": "7?", "answer": "7"},
        {"id": "d6", "text": "what is 6?", "answer": "6"},  # gold
        {"id": "v", "text": "what is not 6?", "answer": "5"},
    ]
    write_jsonl(folder / "corpus.jsonl", [*answered, {"id": "w", "text": "what is 7?"}])
    assert [p.id for p in passages(folder, split=rule)] == ["d6", "v", "w"]
    card = jsonl_dataset(folder, split=rule, expected_passages=6).load().card
    assert card["copies"]["answered passages equal to a scored question, excluded"] == 3
    assert card["copies"]["passages without answer equal to a scored question, kept"] == 1
    assert (card["read"]["passages"], card["pool"], card["answers_in_pool"]) == (6, 3, 2)
    assert len(passages(folder, split=rule, exclude_duplicates=False)) == 6
    write_jsonl(folder / "corpus.jsonl", answered[:3])
    with pytest.raises(InputError, match=r"all 3 passages answer a scored question; dataset.exclude_duplicates=false"):
        passages(folder, split=rule)


def three_sides(folder: Path) -> Path:
    """A training, a validation and a test question, and passages that are each of them with its answer."""
    sides = {"a": "train", "b": "dev", "c": "test"}
    asked_ = [{"id": q, "question": f"what is {q}?", "supports": [f"gold_{q}"], "split": s} for q, s in sides.items()]
    write_jsonl(folder / "questions.jsonl", asked_)
    answered = [{"id": f"{kind}_{q}", "text": f"What is {q}", "answer": q} for q in sides for kind in ("gold", "copy")]
    rows = [*answered, {"id": "titled", "title": "What is c?", "text": "more", "answer": "c"}]
    rows += [{"id": f"bare_{q}", "text": f"what is {q}"} for q in sides]
    write_jsonl(folder / "corpus.jsonl", [*rows, {"id": "free", "text": "what is d?", "answer": "d"}])
    return folder


def test_t42_answered_passages_that_are_a_question_of_a_later_side_leave_the_pool_gold_too(tmp_path):
    folder = three_sides(tmp_path)
    bare = ["bare_a", "bare_b", "bare_c"]
    assert [p.id for p in passages(folder)] == ["gold_a", "copy_a", "gold_b", "copy_b", "gold_c", *bare, "free"]
    held = ["gold_a", "copy_a", "gold_b", *bare, "free"]  # the gold of its own questions alone stays
    assert [p.id for p in passages(folder, side="validation")] == held
    assert [p.id for p in passages(folder, side="train")] == ["gold_a", *bare, "free"]


def test_t42_the_card_counts_passages_that_are_a_question_of_a_later_side(tmp_path):
    folder = three_sides(tmp_path)

    def copies(side: str, **more: object) -> dict[str, int]:
        found = jsonl_dataset(folder, side=side, **more).load().card["copies"]
        return {name: n for name, n in found.items() if n}

    scored = "answered passages equal to a scored question"
    bare = "passages without answer equal to a scored question, kept"
    later = "equal to a validation or test question"
    assert copies("test") == {f"{scored}, excluded": 2, bare: 1}
    validation = {"answered passages equal to a test question, excluded": 3}
    validation |= {"passages without answer equal to a test question, kept": 1}
    assert copies("validation") == {f"{scored}, excluded": 1, bare: 1} | validation
    train = {f"answered passages {later}, excluded": 5, f"passages without answer {later}, kept": 2}
    assert copies("train") == {f"{scored}, excluded": 1, bare: 1} | train
    kept = {f"{scored}, kept": 1, bare: 1, f"answered passages {later}, kept": 5}
    assert copies("train", exclude_duplicates=False) == kept | {f"passages without answer {later}, kept": 2}
    assert len(passages(folder, side="train", exclude_duplicates=False)) == 11


def test_a_pool_of_questions_of_the_sides_alone_leaves_pairs_to_train_on_and_nothing_to_retrieve(tmp_path):
    folder = three_sides(tmp_path)
    rows = [{"id": q, "text": f"what is {q}?", "answer": q} for q in "abc"]
    write_jsonl(folder / "corpus.jsonl", rows)
    assert passages(folder, side="train") == ()
    assert [p.id for p in passages(folder)] == ["a", "b"]


def test_the_key_of_a_side_says_which_sides_its_pool_is_kept_apart_from(tmp_path):
    folder = three_sides(tmp_path)
    keys = {s: JSONL.identity({"name": "x", "path": str(folder), "side": s}) for s in ("train", "validation", "test")}
    assert keys["test"] == JSONL.identity({"name": "x", "path": str(folder)}) and list(keys["test"]) == ["content"]
    assert keys["validation"] == keys["test"] | {"apart_from": "test"}
    assert keys["train"] == keys["test"] | {"apart_from": "validation and test"}


def test_passages_that_are_the_question_itself_are_counted(tmp_path):
    folder = own(tmp_path)
    rows = [{"id": "x", "title": "T", "text": "What is 7"}, {"id": "y", "text": "what is 6?"}, {"id": "z", "text": "z"}]
    write_jsonl(folder / "corpus.jsonl", rows)
    assert jsonl_dataset(folder).load().card["copies"]["passages without answer equal to a scored question, kept"] == 2


def test_questions_without_answers_are_for_retrieval_alone(tmp_path):
    folder = own(tmp_path)
    write_jsonl(folder / "questions.jsonl", [{"id": "q", "question": "what?"}, {"id": "r", "question": "who?"}])
    result = jsonl_dataset(folder).load()
    assert result.questions[0].references == () and result.questions[0].supports == ()
    assert result.card["counts"]["scored questions without answers"] == 1
    assert result.card["counts"]["scored questions without gold passages"] == 1


def test_gold_passages_that_are_not_there_stay_gold_and_are_counted(tmp_path):
    result = jsonl_dataset(own(tmp_path)).load()  # q6 and q7 name d6 and d7, the corpus ends at d3
    assert [q.supports for q in result.questions] == [("d6",), ("d7",)]
    assert result.card["counts"]["gold passages that are not in the corpus"] == 2


def test_qrels_add_gold_passages(tmp_path):
    folder = own(tmp_path)
    (folder / "qrels.tsv").write_text("q7\td0\t1\nq7\td1\t0\nq7\td7\t2\nnobody\td1\t1\n")
    result = jsonl_dataset(folder).load()
    assert [q.supports for q in result.questions] == [("d6",), ("d7", "d0")]
    assert [q.grades for q in result.questions] == [None, (2, 1)]  # a record without grades keeps its bytes
    assert "grades" not in to_json(result.questions[0])
    assert [from_json(Question, to_json(question)) for question in result.questions] == list(result.questions)
    assert result.card["counts"]["judged questions that are not there"] == 1


def test_the_card_is_markdown_and_json(tmp_path):
    card = jsonl_dataset(own(tmp_path)).load().card
    json.dumps(card)
    text = card_markdown(card)
    assert "| layout | graphcontext |" in text and "| split: rule | last quarter in id order |" in text
    assert card["answers_in_pool"] == 0 and (card["kept"], card["pool"], card["scored_candidates"]) == (2, 4, 2)


def test_keys_that_nothing_reads_are_counted(tmp_path):
    assert jsonl_dataset(own(tmp_path, note="x", level=3)).load().card["ignored_keys"] == {"level": 8, "note": 8}


# -- BEIR and FlashRAG ---------------------------------------------------------------------------


def test_beir_is_read_as_it_is_and_its_sides_are_kept(tmp_path):
    folder = beir(tmp_path, test=[1, 10, 2], dev=[4, 5], train=list(range(11, 26)))
    result = jsonl_dataset(folder).load()
    assert [q.id for q in result.questions] == ["1", "2", "10"]
    assert (result.questions[0].text, result.questions[0].supports, result.questions[0].references) == (
        *("what is 1?", ("d1",)),
        (),
    )
    assert result.card["layout"] == "BEIR" and result.card["ignored_keys"] == {"metadata": 34}
    assert result.card["split"] == {
        **{"side": "test", "rule": "official", "why": "the data set names its sides"},
        **{"train": 15, "validation": 2, "test": 3},
    }
    assert result.card["counts"]["questions of no side"] == 10
    assert asked(folder, "validation") == ["4", "5"] and len(asked(folder, "train")) == 15
    assert [p.id for p in passages(folder)] == ["d0", "d1", "d2", "d3"]


def test_a_side_whose_questions_are_all_copies_says_so(tmp_path):
    folder = own(tmp_path, 0)
    rows = [{"id": str(n), "question": f"what is {n % 5}?", "split": "train" if n < 5 else "test"} for n in range(10)]
    write_jsonl(folder / "questions.jsonl", rows)
    said = r"split=train has no question .*; 5 that are questions of other sides equal to a test question were left out"
    with pytest.raises(InputError, match=said):
        asked(folder, "train")


def test_without_dev_validation_is_the_last_tenth_of_train(tmp_path):
    folder = beir(tmp_path, test=[1], train=list(range(2, 22)))
    assert asked(folder, "validation") == ["20", "21"] and len(asked(folder, "train")) == 18
    assert jsonl_dataset(folder).load().card["split"]["why"].endswith("validation is the last tenth of train")


def test_beir_with_a_test_side_alone_says_how_to_get_a_validation_side(tmp_path):
    folder = beir(tmp_path, test=list(range(30)))
    with pytest.raises(InputError, match=r"split=validation has no question .* dataset.split=last_quarter"):
        asked(folder, "validation")
    assert asked(folder, "validation", split="last_quarter") == ["21", "22"]  # the last tenth of the first 23


def test_a_question_judged_on_two_sides_is_of_the_test_side(tmp_path):
    folder = beir(tmp_path, test=[1, 2], train=[2, 3, 4, 5])
    assert asked(folder) == ["1", "2"] and asked(folder, "train") == ["3", "4"]
    assert jsonl_dataset(folder).load().card["counts"]["questions judged on two sides"] == 1


def test_flashrag_is_read_as_it_is(tmp_path):
    folder = flashrag(tmp_path, "test", "dev", "train")
    result = jsonl_dataset(folder).load()
    assert len(result.questions) == 20 and result.card["layout"] == "FlashRAG"
    assert result.questions[0].id == "test_0" and result.questions[0].references == ("a0",)
    assert result.card["counts"]["blank answers"] == 60
    (corpus,) = result.corpora.values()
    assert (corpus.passages[1].id, corpus.passages[1].title, corpus.passages[1].match_text) == ("1", "T1", "T1\ntext 1")
    assert asked(folder, "validation")[0] == "dev_0" and len(asked(folder, "train")) == 20


def test_where_there_is_no_test_file_dev_is_scored_whole(tmp_path):
    folder = flashrag(tmp_path, "dev", "train")
    assert asked(folder) == [f"dev_{k}" for k in range(20)]
    assert asked(folder, "validation") == ["train_18", "train_19"] and len(asked(folder, "train")) == 18
    assert "dev is scored as test" in jsonl_dataset(folder).load().card["split"]["why"]


def test_contents_without_a_quoted_title_have_none(tmp_path):
    folder = flashrag(tmp_path, "test")
    rows = [
        {"id": "a", "contents": "one line"},
        {"id": "b", "contents": "No title\nmore"},
        {"id": "c", "contents": '""\nx'},
    ]
    write_jsonl(folder / "corpus.jsonl", rows)
    assert [(p.title, p.match_text) for p in passages(folder)] == [("", "one line"), ("", "No title\nmore"), ("", "x")]


def test_the_corpus_may_lie_elsewhere(tmp_path):
    folder = flashrag(tmp_path / "nq", "test")
    (folder / "corpus.jsonl").rename(tmp_path / "wiki.jsonl")
    with pytest.raises(InputError, match=r"holds no corpus.jsonl: found test.jsonl; .* dataset.corpus_path"):
        asked(folder)
    assert len(asked(folder, corpus_path=str(tmp_path / "wiki.jsonl"))) == 20
    with pytest.raises(MissingDataError, match=r"dataset.corpus_path"):
        asked(folder, corpus_path=str(tmp_path / "nowhere.jsonl"))
    with pytest.raises(InputError, match=r"is a folder; name the file of passages"):
        asked(folder, corpus_path=str(tmp_path))


# -- files ---------------------------------------------------------------------------------------


def test_one_of_its_files_names_the_data_set_and_packed_files_are_read(tmp_path):
    folder = own(tmp_path / "x")
    whole = jsonl_dataset(folder).load()
    for name in ("corpus.jsonl", "questions.jsonl"):
        assert jsonl_dataset(folder / name).load().questions == whole.questions
    (folder / "corpus.jsonl.gz").write_bytes(gzip.compress((folder / "corpus.jsonl").read_bytes()))
    (folder / "corpus.jsonl").unlink()
    assert jsonl_dataset(folder).load().corpora == whole.corpora
    (folder / "notes.txt").touch()
    with pytest.raises(InputError, match=r"notes.txt: no file of the data set; expected corpus.jsonl with"):
        jsonl_dataset(folder / "notes.txt").load()


def test_two_layouts_in_one_folder_need_a_word(tmp_path):
    folder = own(beir(tmp_path / "x", test=[1]))
    with pytest.raises(InputError, match=r"holds questions.jsonl and queries.jsonl: two layouts"):
        jsonl_dataset(folder).load()
    write_jsonl(folder / "queries.jsonl", [{"_id": "1", "text": "what is 1?"}])
    assert jsonl_dataset(folder / "queries.jsonl").load().card["layout"] == "BEIR"


def test_a_folder_without_such_files_says_what_is_expected(tmp_path):
    with pytest.raises(
        InputError, match=r"holds no data set in JSONL: found nothing; expected corpus.jsonl with quest"
    ):
        jsonl_dataset(tmp_path).load()


def test_the_key_follows_all_files(tmp_path):
    def key(folder: Path) -> dict[str, str]:
        return JSONL.identity({"name": "jsonl", "path": str(folder)})

    one, two = own(tmp_path / "x"), own(tmp_path / "y")
    assert key(one) == key(two) == key(two / "corpus.jsonl")
    (two / "qrels.tsv").write_text("q7\td0\t1\n")
    changed = key(two)
    assert changed != key(one)
    own(two, 9)
    assert key(two) not in (changed, key(one))


def test_absent_data_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHCONTEXT_DATA", str(tmp_path))
    with pytest.raises(MissingDataError, match=r"no data: jsonl; .* dataset.path"):
        jsonl_dataset(None).load()


# -- bad lines -----------------------------------------------------------------------------------

LINES = {
    "no JSON": ("{'id': 1}", r"line 5 is no JSON: Expecting property name"),
    "cut": ('{"id": "x", "text": "half', r"line 5 is no JSON: Unterminated string"),
    "no object": ("[1]", r"line 5 holds a list; expected one JSON object a line"),
    "NaN": ('{"id": "x", "text": "t", "score": NaN}', r"line 5 is no JSON: NaN is no number"),
    "infinity": ('{"id": "x", "text": "t", "score": -Infinity}', r"line 5 is no JSON: -Infinity is no number"),
    "no id": ('{"text": "t"}', r"line 5: no key id or _id; its keys: text"),
    "no text": ('{"id": "x", "title": "t"}', r"line 5: no key text or contents; its keys: id, title"),
    "a mistyped key": ('{"id": "x", "text": "t", "titel": "t"}', r"line 5: key titel; did you mean title\?"),
    "an id that is none": ('{"id": 1.5, "text": "t"}', r"line 5: id is a number, expected text or a whole number"),
    "true as an id": ('{"id": true, "text": "t"}', r"line 5: id is true or false"),
    "an empty id": ('{"id": " ", "text": "t"}', r"line 5: id is ' ', expected 1 to 500 characters"),
    "an id of two lines": ('{"id": "a\\nb", "text": "t"}', r"line 5: id is 'a\\nb', expected .* without line breaks"),
    "text of another type": ('{"id": "x", "text": 7}', r"line 5: text is a number, expected text"),
    "half a character": ('{"id": "x", "text": "\\ud83d"}', r"line 5 holds half of a surrogate pair"),
    "a doubled id": ('{"id": "d1", "text": "t"}', r"line 5: passage id d1 stands in line 2 too"),
    "too deep": ("[" * 100_000, r"line 5 is no JSON: nested too deep"),
}


@pytest.mark.parametrize("fault", LINES)
def test_a_bad_line_of_the_corpus_is_named(tmp_path, fault):
    folder = own(tmp_path)
    with (folder / "corpus.jsonl").open("a") as stream:
        stream.write(LINES[fault][0])
    with pytest.raises(InputError, match=rf"corpus.jsonl: {LINES[fault][1]}") as caught:
        jsonl_dataset(folder).load()
    assert "\n" not in str(caught.value)


QUESTIONS = {
    "answers as text": ({"answers": "x"}, r"line 1: answers is text, expected a list"),
    "an answer of another type": ({"answers": ["x", 3]}, r"line 1: answers\[1\] is a number, expected text"),
    "a support of another type": ({"supports": [None]}, r"line 1: supports\[0\] is null"),
    "no question": ({"question": " "}, r"line 1: the question is empty"),
    "a side": ({"split": "tset"}, r"line 1: split is tset; did you mean test\?"),
    "a date": ({"date": "1 May"}, r"line 1 has date='1 May'"),
    "a doubled id": ({"id": "q"}, r"line 2: question id q stands in line 1 too"),
    "a mistyped key": ({"suports": []}, r"line 1: key suports; did you mean supports\?"),
}


@pytest.mark.parametrize("fault", QUESTIONS)
def test_a_bad_question_is_named(tmp_path, fault):
    more, message = QUESTIONS[fault]
    folder = own(tmp_path)
    rows = [{"id": f"q{k}", "question": "what?"} | more for k in range(2)]
    write_jsonl(folder / "questions.jsonl", rows)
    with pytest.raises(InputError, match=rf"questions.jsonl: {message}"):
        jsonl_dataset(folder).load()


def test_bytes_of_another_encoding_are_named_and_a_byte_order_mark_is_not(tmp_path):
    folder = own(tmp_path)
    raw = (folder / "corpus.jsonl").read_bytes()
    (folder / "corpus.jsonl").write_bytes(b"\xef\xbb\xbf" + raw + b"\n\n")
    assert len(passages(folder)) == 4
    (folder / "corpus.jsonl").write_bytes(raw + '{"id": "é", "text": "t"}'.encode("latin-1"))
    with pytest.raises(InputError, match=r"corpus.jsonl: line 5 is no UTF-8 text"):
        passages(folder)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("query-id\tcorpus-id\tscore\nq\ta b\t1\n", {"q": {"a b": 1}}),
        ("corpus-id\tscore\tquery-id\na\t1\tq\n", {"q": {"a": 1}}),
        ("q 0 a 2\nq 0 b -1\nr 0 c 0\n", {"q": {"a": 2}, "r": {}}),
        ("q\ta\t1\nq\ta\t1.0\n\n", {"q": {"a": 1}}),
        ("", {}),
    ],
)
def test_qrels_of_beir_and_trec(tmp_path, text, found):
    (tmp_path / "q.tsv").write_text(text)
    assert read_qrels(tmp_path / "q.tsv") == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q\ta\n", "line 1 has 2 columns; expected question"),
        ("what\tis\tthis\n", "line 1: 'what is this' is no header and no judgement"),
        ("q\ta\t1\nq\ta\n", "line 2 has 2 columns, the lines before it 3"),
        ("q\ta\t1\nq\tb\tx\n", "line 2: the score is 'x', expected a whole number"),
        ("q\ta\t1\nq\tb\tnan\n", "line 2: the score is 'nan', expected a whole number"),
        ("q\ta\t1\nq\tb\t0.5\n", "line 2: the score is '0.5', expected a whole number"),
        ("q\ta\t1\nq\tb\tinf\n", "line 2: the score is 'inf', expected a whole number"),
        ("q\ta\t1\nq\ta\t0\n", "line 2: passage a of question q has another score in a line before"),
        ("q\ta\t1\n\tb\t1\n", "line 2: an id is empty"),
    ],
)
def test_a_bad_line_of_qrels_is_named(tmp_path, text, message):
    (tmp_path / "q.tsv").write_text(text)
    with pytest.raises(InputError, match=message):
        read_qrels(tmp_path / "q.tsv")


# -- real data -----------------------------------------------------------------------------------


@pytest.mark.needs_data
def test_real_passages_in_beirs_layout(tmp_path, data_root):
    """MuSiQue's 100 questions with their 20 paragraphs each, pooled: titles repeat, ids do not."""
    corpus, queries, judged = [], [], []
    for line in (data_root / "musique" / "musique_ans_dev_100.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        queries.append({"_id": row["id"], "text": row["question"], "answers": [row["answer"]]})
        for part in row["paragraphs"]:
            name = f"{row['id']}-{part['idx']}"
            corpus.append({"_id": name, "title": part["title"], "text": part["paragraph_text"]})
            judged += [f"{row['id']}\t{name}\t1"] if part["is_supporting"] else []
    write_jsonl(tmp_path / "corpus.jsonl", corpus)
    write_jsonl(tmp_path / "queries.jsonl", queries)
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "dev.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *judged]))
    result = jsonl_dataset(tmp_path).load()
    assert (result.card["pool"], result.card["scored_candidates"]) == (2000, 100)
    assert sum(len(q.supports) for q in result.questions) == len(judged)
    assert result.card["counts"]["gold passages that are not in the corpus"] == 0
    assert all(q.references for q in result.questions)
