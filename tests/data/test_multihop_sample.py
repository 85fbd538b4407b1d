"""The shipped multi-hop sample: what its files hold, and that the script writes them."""

import copy
import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "src/graphcontext/data/sample/multihop_sample"
KEYS = ["_id", "question", "answer", "type", "level", "supporting_facts", "context"]


def _script():
    spec = importlib.util.spec_from_file_location("multihop_sample", ROOT / "scripts/sample_data/multihop.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


script = _script()
DOCUMENTS = script.check_documents(script.read(script.SOURCE, "documents"))
QUESTIONS = script.read(script.SOURCE, "questions")


def _items(side):
    return json.loads((FOLDER / script.FILES[side]).read_text("utf-8"))


DEV, TRAIN = _items("dev"), _items("train")
BRIDGE = [item for item in DEV + TRAIN if item["type"] == "bridge"]


def _supports(item):
    """Return the supporting sentences: of two documents with one title the first is meant."""
    found = []
    for title, n in item["supporting_facts"]:
        sentences = next(sentences for name, sentences in item["context"] if name == title)
        assert 0 <= n < len(sentences)
        found.append(sentences[n])
    return found


def test_the_files_equal_what_the_script_writes():
    for name, text in script.write().items():
        assert (FOLDER / name).read_bytes() == text.encode(), f"run scripts/sample_data/multihop.py: {name} is old"


def test_there_are_enough_questions_and_documents_and_the_readme_counts_them():
    assert len(DEV) >= 80
    assert len(TRAIN) >= 40
    assert len(DOCUMENTS) >= 60
    told = (FOLDER / "README.md").read_text("utf-8")
    for n in (len(DEV), len(TRAIN), len(DOCUMENTS)):
        assert f" {n} " in told


def test_items_have_the_keys_of_hotpotqa_and_ids_and_questions_of_their_own():
    items = DEV + TRAIN
    assert all(list(item) == KEYS for item in items)
    assert len({item["_id"] for item in items}) == len({item["question"] for item in items}) == len(items)
    assert all(len(item["context"]) == script.N_DOCUMENTS for item in items)
    assert {item["level"] for item in items} == set(script.LEVELS)


def test_supports_are_the_sentences_of_the_source_and_hold_the_answer():
    by_text = {entry["question"]: entry for entry in QUESTIONS}
    for item in DEV + TRAIN:
        source = by_text[item["question"]]["supports"]
        found = _supports(item)
        assert found == [DOCUMENTS[name]["sentences"][n] for name, n in source], item["question"]
        if item["type"] == "bridge":
            assert script.contains(found[-1], item["answer"]), item["question"]


def test_the_last_support_of_most_bridge_questions_shares_two_content_words_at_most():
    words = script.content_words
    shared = [len(words(item["question"]) & words(_supports(item)[-1])) for item in BRIDGE]
    assert sum(n <= 2 for n in shared) >= len(shared) / 2


def test_types_are_mixed_and_no_pair_of_documents_is_on_both_sides():
    for items in (DEV, TRAIN):
        share = sum(item["type"] == "bridge" for item in items) / len(items)
        assert 0.6 <= share <= 0.8
    script.check_questions(QUESTIONS, DOCUMENTS)


def _title(entry):
    entry["supports"][0][0] = "Nowhere"


def _sentence(entry):
    entry["supports"][0][1] = 9


def _answer(entry):
    entry["answer"] = "Atlantis"


@pytest.mark.parametrize(
    "kind, change, told",
    [
        ("bridge", _title, "no document is called Nowhere"),
        ("bridge", _sentence, "has no sentence 9"),
        ("bridge", _answer, "the last support does not have the answer Atlantis"),
        ("comparison", _answer, "the answer Atlantis is none of"),
    ],
)
def test_a_question_that_does_not_fit_the_documents_is_named(kind, change, told):
    entry = copy.deepcopy(next(entry for entry in QUESTIONS if entry["type"] == kind))
    change(entry)
    with pytest.raises(SystemExit, match=told) as caught:
        script.check_question(entry, DOCUMENTS)
    assert "\n" not in str(caught.value)


def test_repeated_questions_unused_documents_and_long_sentences_are_named():
    with pytest.raises(SystemExit, match="another question has the same words"):
        script.check_questions([*QUESTIONS, QUESTIONS[0]], DOCUMENTS)
    with pytest.raises(SystemExit, match="no question has it as gold"):
        script.check_questions(QUESTIONS, {**DOCUMENTS, "Spare": DOCUMENTS["Tollmark"]})
    with pytest.raises(SystemExit, match="sentence 0 has 40 words; allowed: 10 to 32"):
        script.check_documents([{"title": "Long", "sentences": ["word " * 40] * 3}])
