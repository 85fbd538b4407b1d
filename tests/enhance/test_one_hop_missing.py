"""A one-hop source that is not on this machine: each verb says so, and rows without it go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphcontext.config import Composed, compose
from graphcontext.doctor import examine
from graphcontext.plan import estimate
from graphcontext.prepare import prepare_sources
from graphcontext.table import expand
from graphcontext.table.compute import compute

WORDS = ["one_hop=file", "retriever=tfidf", "generator=none", "tokenizer=words", "metric=[]"]
SAID = "no data: wikidata one-hop triples (one_hop.path=FILE, or one_hop=none)"


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Composed:
    monkeypatch.setenv("GRAPHCONTEXT_DATA", str(tmp_path / "nothing"))
    return compose(WORDS)


def test_doctor_and_prepare_name_it_and_the_ways_out(without: Composed) -> None:
    (line,) = [line for line in examine([("run", without)]) if "one-hop" in line.what]
    assert not line.good and SAID in line.what
    assert any(line.good and "data set cqa_sample" in line.what for line in examine([("run", without)]))
    count, missing = prepare_sources([without.config], lambda said: None)
    assert count == 0 and missing[0].startswith(SAID)
    assert estimate([("run", without)])[0].n_questions == 24  # plan needs it not
    (line,) = [line for line in examine([("run", compose([]))]) if "one-hop" in line.what]
    assert line.good and line.what == "one-hop triples cqa_one_hop"


def test_a_table_on_a_users_own_data_runs_the_rows_that_need_none(without: Composed, tmp_path: Path) -> None:
    words = ["dataset=cqa_sample", "one_hop=file", "generator=none", "tokenizer=words", "metric=[]", "dataset.limit=2"]
    rows = "table.rows=zero_shot_sft,text_context_gen"  # the first takes no context at all
    wish = expand.request("gcg/t3", [*words, "llm.adapter=null", rows], None, tmp_path)
    reasons = {line.cell.row.name: line.reason for line in compute(wish, None, tmp_path, True).lines}
    assert reasons["text_context_gen"] == SAID
    assert reasons["zero_shot_sft"] is None
