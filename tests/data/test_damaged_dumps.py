"""Damaged input ends in one clear line or in a counted skip: no other exception, no result that is silently wrong."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from damage import Broken, base, damaged, write
from dumps import dataset

from graphcontext.data.loaded import Loaded
from graphcontext.errors import InputError

N, PARTS = 500, 10


def texts(loaded: Loaded) -> dict[str, tuple[str, ...]]:
    """Return what a scored or pooled thread holds, by its id."""
    found = {q.id: (q.text, *q.references) for q in loaded.questions}
    for corpus in loaded.corpora.values():
        for p in corpus.passages:
            answer = next(a.text for a in p.answers if a.accepted)
            found[p.source.link.rsplit("/", 1)[1]] = (p.match_text, answer)
    return found


def undamaged(folder: Path, n: int) -> dict[str, tuple[str, ...]]:
    whole = base(n)
    write(whole, folder)
    return texts(dataset(folder, site="s.example.org").load())


def check(loaded: Loaded, dump: Broken, plain: bytes, whole: dict[str, tuple[str, ...]]) -> None:
    """Check that what was read is accounted for, and that untouched threads are as they were."""
    card, found = loaded.card, texts(loaded)
    assert card["read"]["questions"] == card["kept"] + sum(card["filters"].values())
    assert card["pool"] + card["scored_candidates"] + sum(card["leak_guard"].values()) == card["kept"]
    assert len(found) == card["pool"] + card["scored_candidates"]
    posts = sum(card["read"][kind] for kind in ("questions", "answers", "other posts"))
    rows = [plain.count("<row".encode(codec)) for codec in ("utf-8", "utf-16-le", "utf-16-be", "cp037")]
    assert posts == max(rows)
    untouched = whole.keys() - dump.touched
    assert all(found[i] == whole[i] for i in untouched & found.keys())
    taken = sum(card["filters"].values()) + sum(card["leak_guard"].values())
    assert len(untouched - found.keys()) <= taken
    assert found.keys() <= whole.keys() | {row.get("Id", "") for row in dump.rows} | dump.touched or dump.mends
    for text, *answers in found.values():
        assert text.strip() and all(answer.strip() for answer in answers)


@pytest.mark.parametrize("part", range(PARTS))
def test_500_damaged_dumps(tmp_path: Path, part: int) -> None:
    wholes: dict[int, dict[str, tuple[str, ...]]] = {}
    ends: Counter[str] = Counter()
    for seed in range(part, N, PARTS):
        dump = damaged(seed)
        plain = write(dump, tmp_path / str(seed))
        n = len({*dump.thread_of, *dump.touched})
        if n not in wholes:
            wholes[n] = undamaged(tmp_path / f"whole{n}", n)
        where = f"seed {seed}: {', '.join(dump.names)}"
        print(where)  # the last line shown of a failed test is the seed at fault
        try:
            loaded = dataset(tmp_path / str(seed), site="s.example.org").load()
        except InputError as error:
            assert "\n" not in str(error) and len(str(error)) < 900, where
            assert re.search(r"Posts\.xml|PostLinks\.xml|no question to score|pool is empty", str(error)), where
            ends["one line"] += 1
        else:
            check(loaded, dump, plain, wholes[n])
            ends["read"] += 1
    assert min(ends["one line"], ends["read"]) >= 5, ends  # both ends are met in each part
