"""Damaged multi-hop files end in one clear line or are read without what was damaged (test_damaged_own_data.py)."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from multihop_files import hotpot_item, hotpotqa, iirc, iirc_article, iirc_passage, musique, musique_item
from test_damaged_own_data import BYTES, JUNK, ends

from graphcontext.data.loaded import Loaded

N, PARTS = 240, 5
FORMATS = {
    "hotpotqa": (hotpotqa, "dev.json", lambda n: hotpot_item(n)),
    "musique": (musique, "dev.jsonl", lambda n: musique_item(n)),
    "iirc": (iirc, "dev.json", lambda n: iirc_passage(n)),
}


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return (container, key) of every value inside a value."""
    found: list[tuple[Any, Any]] = []
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        found += [(value, key), *places(inner)]
    return found


def case(folder: Path, seed: int, rng: random.Random) -> tuple[Callable[[], Loaded], Callable[[Loaded], None]]:
    name = rng.choice(sorted(FORMATS))
    reader, file, item = FORMATS[name]
    items = [item(n) for n in range(1, 6)]
    articles: Any = {f"river {n}": iirc_article(n) for n in range(1, 6)}
    kind = rng.choice(("value", "value", "key", "gone", "entry", "twice", "bytes", "bytes", "zip", "article"))
    if kind in ("value", "key", "gone", "entry"):
        at = rng.choice(places(rng.choice(items)))
        damage(rng, kind, *at)
    elif kind == "twice":
        items.append(rng.choice(items))
    elif kind == "article":
        articles[rng.choice(sorted(articles))] = rng.choice(JUNK)
    lines = name == "musique"
    text = "".join(json.dumps(i) + "\n" for i in items) if lines else json.dumps(items)
    raw = {file: text.encode(), "context_articles.json": json.dumps(articles).encode()}
    if kind == "bytes":
        raw[file] = rng.choice(BYTES)(rng, raw[file])
    if kind == "zip":
        packed = gzip.compress(raw.pop(file))
        raw[file + ".gz"] = packed if rng.random() < 0.5 else packed[: int(rng.random() * len(packed))]
    folder.mkdir(parents=True)
    for where, content in raw.items():
        (folder / where).write_bytes(content)

    def check(loaded: Loaded) -> None:
        assert loaded.questions
        for question in loaded.questions:
            ids = [passage.id for passage in loaded.corpora[question.corpus_id].passages]
            assert len(set(ids)) == len(ids) >= 1
            assert set(question.supports) <= set(ids)
            assert all(isinstance(answer, str) and answer.strip() for answer in question.references)
        json.dumps(loaded.card, allow_nan=False)
        if kind in ("value", "key", "gone", "entry", "zip"):  # what was not touched is as it was
            whole = [q for q in loaded.questions if q.text.startswith("Into what sea") and len(q.supports) == 2]
            assert len(whole) >= 4

    return reader(folder, n_passages=rng.choice((None, 20)), passage_unit=unit(rng, name)).load, check


def damage(rng: random.Random, kind: str, container: Any, key: Any) -> None:
    """Do one thing to a value inside an item."""
    if kind == "value":
        container[key] = rng.choice(JUNK)
    elif kind == "entry" and isinstance(container[key], list):
        container[key].append(rng.choice(JUNK))
    elif kind == "key" and isinstance(container, dict):
        container[rng.choice((key + "s", key.upper(), "other"))] = container.pop(key)
    else:
        del container[key]


def unit(rng: random.Random, name: str) -> str:
    return "paragraph" if name == "musique" else rng.choice(("sentence", "paragraph", "merged:30"))


@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_multihop(tmp_path: Path, part: int) -> None:
    ends(range(part, N, PARTS), lambda seed, rng: case(tmp_path / str(seed), seed, rng))
