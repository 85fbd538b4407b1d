"""Keys: what the key of each stage covers, and what it leaves out."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from graphcontext.config import compose
from graphcontext.keys import Keys, keys

ECHO = str(Path(__file__).parent / "end_to_end" / "conf")
FAST = ["dataset.limit=10", "retriever=tfidf", "enhancer=none", "tokenizer=words", "metric=[rouge1,rougeL]", "llm=echo"]


def config(*more: str) -> dict[str, Any]:
    return compose([*FAST, *more], config_dir=ECHO).config


def changed(before: Keys, after: Keys) -> list[str]:
    """Return the stages whose keys differ."""
    stages = ("corpus", "questions", "graph", "ranking", "context", "prediction")
    return [s for s in stages if getattr(before, s) != getattr(after, s)]


LATER = ["context", "prediction"]


@pytest.mark.parametrize(
    ("override", "stages"),
    [
        ("retriever.top_k=3", ["ranking", *LATER]),  # T51
        ("retriever=bm25", ["ranking", *LATER]),
        ("packing.max_tokens=99", LATER),
        ("generator.max_new_tokens=7", ["prediction"]),
        ("llm.shout=true", ["prediction"]),  # T12: another model
        ("generator.prompt.system=Be brief.", ["prediction"]),  # T12: another system prompt
        ("generator.prompt.user='{question} {context}'", ["prediction"]),  # T12: another prompt
        ("dataset.limit=9", ["questions", "ranking", *LATER]),
        ("dataset.seed=1", ["questions", "ranking", *LATER]),
        ("dataset.min_answer_words=9", ["corpus", "questions", "ranking", *LATER]),
        ("llm.batch_size=4", []),  # how it is computed, not what
        ("llm.seconds=1", []),
        ("retriever.batch_size=1", []),
        ("encoder.batch_size=7", []),  # no part of this run
        ("seed=5", []),  # nothing here draws
        ("sample_index=1", []),
        ("roles.judge.shout=true", []),
    ],
)
def test_t12_t51_a_key_covers_what_can_change_a_stage_and_nothing_else(override: str, stages: list[str]) -> None:
    before, after = keys(config()), keys(config(override))
    assert changed(before, after) == stages
    assert (before.run == after.run) == (stages == [])


def test_without_a_limit_the_selection_seed_changes_nothing() -> None:
    assert keys(config("dataset.limit=null", "dataset.seed=1")) == keys(config("dataset.limit=null", "dataset.seed=2"))


def test_seeds_enter_the_keys_of_what_draws_and_of_what_follows() -> None:
    hot = ["llm=smollm2", "llm.temperature=0.7"]
    assert changed(keys(config(*hot)), keys(config(*hot, "seed=1"))) == ["prediction"]
    assert changed(keys(config(*hot)), keys(config(*hot, "sample_index=1"))) == ["prediction"]
    assert changed(keys(config("llm=smollm2")), keys(config(*hot))) == ["prediction"]  # T12: temperature
    assert keys(config("llm=smollm2")) == keys(config("llm=smollm2", "seed=1"))


def test_another_metric_leaves_the_others_keys(tmp_path: Path) -> None:
    both, one = keys(config()), keys(config("metric=[rougeL]"))
    assert both.scores["rougeL"] == one.scores["rougeL"] and both.prediction == one.prediction
    assert both.run != one.run


def test_t12_another_corpus_has_other_keys_and_another_place_has_not(tmp_path: Path) -> None:
    from graphcontext.data import stackexchange

    shipped = Path(stackexchange.__file__).parent / "sample" / "cqa_sample"
    copies = [tmp_path / "a" / "dump", tmp_path / "b" / "dump"]
    for copy in copies:
        shutil.copytree(shipped, copy)
    there, elsewhere = [keys(config(f"dataset.path={copy}")) for copy in copies]
    assert there == elsewhere
    posts = copies[1] / "Posts.xml"
    posts.write_bytes(posts.read_bytes().replace(b"the", b"thy", 1))
    other = keys(config(f"dataset.path={copies[1]}"))
    assert changed(there, other) == ["corpus", "questions", "ranking", *LATER]


def test_a_question_of_ones_own_shares_corpus_and_graph() -> None:
    ppr = config("retriever=ppr")
    own, set_ = keys(ppr, "How?"), keys(ppr)
    assert changed(own, set_) == ["questions", "ranking", *LATER]
    assert own.graph is not None and keys(config()).graph is None
    assert keys(ppr, "How?").ranking != keys(ppr, "Why?").ranking
