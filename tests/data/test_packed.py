"""Files packed by gzip that are cut or damaged: each reader ends in one line, and none in a traceback."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from graphcontext.data import json_lines, xml_rows
from graphcontext.data.qrels import read_qrels
from graphcontext.enhance.one_hop_file import COLUMNS, read_tsv
from graphcontext.errors import InputError

READERS: dict[str, tuple[Callable[[Path], Iterable[Any]], str]] = {
    "x.jsonl.gz": (json_lines.rows, '{"id": "q1"}\n'),
    "x.xml.gz": (lambda path: xml_rows.rows(path, "posts"), '<posts><row Id="1"/></posts>'),
    "qrels.tsv.gz": (read_qrels, "q1\tp1\t1\n"),
    "one_hop.tsv.gz": (read_tsv, "\t".join(COLUMNS) + "\nQ1\ta\tP1\tb\tQ2\tc\n"),
}
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda raw: raw[:-9],
    "deflate": lambda raw: raw[:10] + b"\xff" + raw[11:],  # after the header of 10 bytes: a block of no known type
    "checksum": lambda raw: raw[:-8] + bytes(4) + raw[-4:],
    "no gzip": lambda raw: b"no gzip at all",
}


@pytest.mark.parametrize("damage", [None, *DAMAGES])
@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path, name: str, damage: str | None) -> None:
    read, text = READERS[name]
    path = tmp_path / name
    raw = gzip.compress(text.encode(), mtime=0)
    path.write_bytes(DAMAGES[damage](raw) if damage else raw)
    if damage is None:
        assert len(list(read(path))) == 1
        return
    with pytest.raises(InputError, match=name) as caught:
        list(read(path))
    assert "\n" not in str(caught.value)
