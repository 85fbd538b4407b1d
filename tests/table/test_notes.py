"""Notes that no small table has: versions of servers."""

from __future__ import annotations

from types import SimpleNamespace

from graphcontext.config import compose
from graphcontext.table.notes import _servers

ZERO_SHOT = ("experiment=gcg/zero_shot", "metric=[rouge1]", "tokenizer=words")


def line(name: str, version: str | None, *overrides: str) -> SimpleNamespace:
    composed = compose([*ZERO_SHOT, *overrides])
    cell = SimpleNamespace(row=SimpleNamespace(name=name), composed=composed)
    manifest = {} if version is None else {"servers": {"vllm": version}}
    return SimpleNamespace(cell=cell, run=SimpleNamespace(manifest=manifest))


def test_versions_of_a_server_stand_under_a_table_where_its_rows_differ() -> None:
    served = ("llm=smollm2", "llm.serve=vllm")
    a, b = line("a", "0.30.0", *served), line("b", "0.30.0", *served)
    alone = line("alone", "0.29.0", "llm=smollm2")  # computed beside a server, not by it
    unknown = line("unknown", None, *served)  # all was answered before
    assert _servers([a, b, alone, unknown]) == []
    other = line("c", "0.31.0", *served)
    assert _servers([a, b, alone, other]) == ["llm.serve=vllm: version 0.30.0 for a, b; version 0.31.0 for c"]
