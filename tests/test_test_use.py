"""How many distinct configs were scored on a test set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from graphcontext import test_use
from graphcontext.config import compose
from graphcontext.keys import keys


def record(root: Path, *overrides: str) -> str:
    config: dict[str, Any] = compose(["generator=none", "metric=[mrr]", *overrides]).config
    known = keys(config)
    test_use.record(root, config, known)
    return known.corpus


def test_a_config_counts_once_and_another_one_more(tmp_path: Path) -> None:
    corpus = record(tmp_path, "retriever=tfidf", "enhancer=none")
    record(tmp_path, "retriever=tfidf", "enhancer=none")
    record(tmp_path, "retriever=tfidf", "enhancer=none", "dataset.limit=3")  # fewer questions: the same method
    assert test_use.count(tmp_path, corpus) == 1
    assert record(tmp_path, "retriever=tfidf", "enhancer=none", "retriever.top_k=5") == corpus
    assert test_use.count(tmp_path, corpus) == 2
    assert "test use: 2 distinct configs" in test_use.sentence(tmp_path, [corpus, corpus])


def test_a_run_without_a_metric_is_not_counted(tmp_path: Path) -> None:
    corpus = record(tmp_path, "retriever=tfidf", "enhancer=none", "metric=[]")
    assert test_use.count(tmp_path, corpus) == 0


def test_validation_is_not_counted(tmp_path: Path) -> None:
    corpus = record(tmp_path, "retriever=tfidf", "enhancer=none", "split=validation")
    assert test_use.count(tmp_path, corpus) == 0 and test_use.sentence(tmp_path, [corpus]) == ""
