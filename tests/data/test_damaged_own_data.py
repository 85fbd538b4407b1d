"""Damaged CSV and JSONL files end in one clear line or a counted skip, as dumps do (test_damaged_dumps.py)."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from own_data import CSV_COLUMNS, csv_dataset, jsonl_dataset

from graphcontext.data.loaded import Loaded
from graphcontext.errors import InputError

N, PARTS = 200, 5
VALUES = (
    "",
    "abc",
    "1.5",
    "-3",
    "９",
    "x" * 300_000,
    'in "quotes" twice ""',
    "a\nb\r\nc",
    "é\u2028\U0001f600",
    "<p>&nosuch;",
)
JUNK = (None, 7, 1.5, True, [], {}, [None], ["x", 3], "", "\ud800", "x" * 300_000, float("nan"), [[[]]], {"id": 1})
Damage = Callable[[random.Random, bytes], bytes]


# -- damages of bytes ----------------------------------------------------------------------------


def cut(rng: random.Random, raw: bytes) -> bytes:
    return raw[: int(rng.random() * len(raw))]


def flipped(rng: random.Random, raw: bytes) -> bytes:
    at = rng.randrange(len(raw) + 1)
    return raw[:at] + bytes([rng.choice([0, 9, 10, 13, 34, 44, 58, 92, 123, 125, 128, 255])]) + raw[at + 1 :]


def lost(rng: random.Random, raw: bytes) -> bytes:
    at = rng.randrange(len(raw) + 1)
    return raw[:at] + raw[at + rng.randrange(1, 80) :]


def line_twice(rng: random.Random, raw: bytes) -> bytes:
    lines = raw.split(b"\n")
    lines.insert(rng.randrange(len(lines)), rng.choice(lines))
    return b"\n".join(lines)


def garbage(rng: random.Random, raw: bytes) -> bytes:
    lines = raw.split(b"\n")
    what = [b"\0", b"not a row", b"\xff\xfe", b"[]", b"null", b"NaN", b'{"a":', b"[" * 100_000, b"", b"   ", b'"']
    lines.insert(rng.randrange(len(lines)), rng.choice(what))
    return b"\n".join(lines)


def encoded(rng: random.Random, raw: bytes) -> bytes:
    codec = rng.choice(("latin-1", "utf-16", "utf-16-le", "utf-8-sig", "cp037"))
    return raw.decode("utf-8", "replace").encode(codec, "replace")


def crlf(rng: random.Random, raw: bytes) -> bytes:
    return raw.replace(b"\n", b"\r\n")


BYTES: tuple[Damage, ...] = (cut, flipped, lost, line_twice, garbage, encoded, crlf)


def one_line(error: InputError, seed: int) -> None:
    assert "\n" not in str(error) and len(str(error)) < 900, (seed, str(error))
    assert re.search(r"\.csv|\.jsonl?|\.tsv|no question|pool is empty", str(error)), (seed, str(error))


def ends(
    seeds: range, one: Callable[[int, random.Random], tuple[Callable[[], Loaded], Callable[[Loaded], None]]]
) -> None:
    """Load the damaged data of each seed; both ends are to be met."""
    refused = read = 0
    for seed in seeds:
        load, check = one(seed, random.Random(seed))
        print("seed", seed)  # the last line shown of a failed test is the seed at fault
        try:
            loaded = load()
        except InputError as error:
            one_line(error, seed)
            refused += 1
        else:
            check(loaded)
            read += 1
    assert min(refused, read) >= 3, (refused, read)


# -- CSV -----------------------------------------------------------------------------------------


def csv_row(n: int) -> dict[str, str]:
    return {
        "QuestionId": str(10 * n),
        "QuestionTitle": f"Topic {n}, é",
        "QuestionBody": f"<p>How is it done on server {n}?\nI tried all that I know about topic {n} here.</p>",
        "Tags": "<linux><bash>",
        "AnswerId": str(10 * n + 1),
        "AnswerBody": f'<p>Answer {n}: edit the "file", then reload the service and look at its log.</p>',
    }


def csv_case(folder: Path, seed: int, rng: random.Random) -> tuple[Callable[[], Loaded], Callable[[Loaded], None]]:
    rows = [csv_row(n) for n in range(1, 9)]
    touched: set[str] = set()
    columns = list(CSV_COLUMNS)
    n_rows, bytewise = len(rows), False
    for _ in range(rng.choice((1, 1, 2))):
        kind = rng.choice(("value", "value", "column", "order", "double", "bytes", "bytes"))
        bytewise |= kind == "bytes"
        row = rng.choice(rows)
        if kind == "value":
            touched.add(row["QuestionId"])
            row[rng.choice(columns)] = rng.choice(VALUES)
        elif kind == "column" and len(columns) > 5:
            columns.remove(rng.choice(columns))
        elif kind == "order":
            rng.shuffle(columns)
        elif kind == "double":
            rows.append(dict(row))
    n_rows = len(rows)
    stream = io.StringIO()
    header = [rng.choice((str, str.upper, str.lower))(name) for name in columns]
    writer = csv.writer(stream, quoting=csv.QUOTE_ALL, delimiter=rng.choice(",,,;\t"), lineterminator="\n")
    writer.writerows([header, *([row[name] for name in columns] for row in rows)])
    raw = stream.getvalue().encode()
    if bytewise:
        raw = rng.choice(BYTES)(rng, raw)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "a.csv").write_bytes(raw)

    def check(loaded: Loaded) -> None:
        card = loaded.card
        assert card["read"]["questions"] == card["kept"] + sum(
            n for name, n in card["filters"].items() if name != "doubled rows"
        )
        if not bytewise:
            assert (
                card["read"]["answers"] + card["filters"]["doubled rows"] + card["filters"]["no accepted answer"]
                == n_rows
            )
        whole = {row["QuestionId"]: row for row in map(csv_row, range(1, 9))}
        found = {q.id: (q.title, *q.references) for q in loaded.questions}
        for corpus in loaded.corpora.values():
            found |= {p.source.link.rsplit("/", 1)[1]: (p.title, p.answers[0].text) for p in corpus.passages}
        wrong = [i for i in found.keys() & whole.keys() - touched if found[i] != plain(whole[i])]
        assert len(wrong) <= bytewise  # one damage of bytes may hit one row
        if not bytewise:
            assert len(whole.keys() - touched - found.keys()) <= sum(card["filters"].values())

    return csv_dataset(folder, site="s.example.org").load, check


def plain(row: dict[str, str]) -> tuple[str, str]:
    return row["QuestionTitle"], row["AnswerBody"].removeprefix("<p>").removesuffix("</p>")


@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_csv(tmp_path: Path, part: int) -> None:
    ends(range(part, N, PARTS), lambda seed, rng: csv_case(tmp_path / str(seed), seed, rng))


# -- JSONL ---------------------------------------------------------------------------------------


def objects(layout: str) -> dict[str, list[dict[str, Any]]]:
    """The files of a small data set in a layout."""
    title, text = "T {0}", "text number {0} é"
    if layout == "beir":
        corpus = [{"_id": f"d{n}", "title": title.format(n), "text": text.format(n), "metadata": {}} for n in range(9)]
        return {"corpus.jsonl": corpus, "queries.jsonl": [{"_id": f"q{n}", "text": f"what is {n}?"} for n in range(8)]}
    if layout == "flashrag":
        corpus = [{"id": f"d{n}", "contents": f'"{title}"\n{text}'.format(n)} for n in range(9)]
        asked = [{"id": f"q{n}", "question": f"what is {n}?", "golden_answers": [str(n)]} for n in range(8)]
        return {"corpus.jsonl": corpus, "test.jsonl": asked[:4], "train.jsonl": asked[4:]}
    corpus = [{"id": f"d{n}", "title": title.format(n), "text": text.format(n), "answer": "a"} for n in range(9)]
    asked = [{"id": f"q{n}", "question": f"what is {n}?", "answers": [str(n)], "supports": [f"d{n}"]} for n in range(8)]
    return {"corpus.jsonl": corpus, "questions.jsonl": asked}


def qrels(layout: str) -> dict[str, bytes]:
    head = "query-id\tcorpus-id\tscore\n" if layout == "beir" else ""
    lines = head + "".join(f"q{n}\td{n}\t1\n" for n in range(4))
    return {"qrels/test.tsv" if layout == "beir" else "qrels.tsv": lines.encode()}


def jsonl_case(folder: Path, seed: int, rng: random.Random) -> tuple[Callable[[], Loaded], Callable[[Loaded], None]]:
    layout = rng.choice(("own", "beir", "flashrag"))
    files = objects(layout)
    touched: set[str] = set()
    target = rng.choice(sorted(files))
    kind = rng.choice(("value", "value", "key", "bytes", "bytes", "qrels", "zip"))
    row = rng.choice(files[target])
    if kind in ("value", "key"):
        touched.add(row.get("id") or row["_id"])
        key = rng.choice(sorted(row))
        value = row.pop(key)
        row[key if kind == "value" else rng.choice((key + "s", key.upper(), "other"))] = (
            rng.choice(JUNK) if kind == "value" else value
        )
        touched |= {str(row.get(k)) for k in ("id", "_id")}
    raw = {name: "".join(json.dumps(o) + "\n" for o in rows).encode() for name, rows in files.items()}
    raw |= qrels(layout)
    if kind == "qrels":
        target = next(name for name in raw if name.endswith(".tsv"))
    if kind in ("bytes", "qrels"):
        raw[target] = rng.choice(BYTES)(rng, raw[target])
    if kind == "zip":
        packed = gzip.compress(raw.pop(target))
        raw[target + ".gz"] = packed if rng.random() < 0.5 else packed[: int(rng.random() * len(packed))]
    for name, content in raw.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)

    def check(loaded: Loaded) -> None:
        card = loaded.card
        (corpus,) = loaded.corpora.values()
        lines = sum(bool(line.strip()) for line in raw.get("corpus.jsonl", b"x\n" * 9).split(b"\n"))
        assert card["read"]["passages"] == len(corpus.passages) == lines
        known = {f"d{n}": (f"T {n}\ntext number {n} é") for n in range(9)}
        wrong = [p.id for p in corpus.passages if p.id not in touched and p.match_text != known.get(p.id)]
        assert len(wrong) <= (kind == "bytes")
        off = [q.id for q in loaded.questions if q.id not in touched and q.text != f"what is {q.id[1:]}?"]
        assert len(off) <= (kind == "bytes")
        missing = {s for q in loaded.questions for s in q.supports} - {p.id for p in corpus.passages}
        assert card["counts"]["gold passages that are not in the corpus"] == len(missing)

    return jsonl_dataset(folder).load, check


@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_jsonl(tmp_path: Path, part: int) -> None:
    ends(range(part, N, PARTS), lambda seed, rng: jsonl_case(tmp_path / str(seed), seed, rng))
