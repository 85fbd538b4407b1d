"""Small data sets of a user's own: a Data Explorer CSV, JSONL folders, LFRQA annotations."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from dumps import CONF, config

from graphcontext.data.jsonl import JSONL
from graphcontext.data.lfrqa import LFRQA
from graphcontext.data.stackexchange_csv import StackExchangeCSV

CSV_COLUMNS = ("QuestionId", "QuestionTitle", "QuestionBody", "Tags", "AnswerId", "AnswerBody")
HOW = "<p>How is it done on a server? I tried all I know about {0}.</p>"
SO = "<p>Answer {0}: edit the file, then reload the service and look at its log.</p>"


def csv_line(number: int, **more: str) -> dict[str, str]:
    """A question with its accepted answer, whose id is the next number."""
    values = {"QuestionId": str(number), "QuestionTitle": f"topic {number}", "QuestionBody": HOW.format(number)}
    values |= {"Tags": "<linux>", "AnswerId": str(number + 1), "AnswerBody": SO.format(number + 1)}
    return values | more


def write_csv(path: Path, rows: Iterable[dict[str, str]], encoding: str = "utf-8", delimiter: str = ",") -> Path:
    rows = list(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding=encoding, newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), quoting=csv.QUOTE_ALL, delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_jsonl(path: Path, rows: Iterable[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def csv_dataset(path: Path | None, **overrides: object) -> StackExchangeCSV:
    values = config("stackexchange_csv") | {"path": None if path is None else str(path)}
    return StackExchangeCSV(**values | overrides)


def _own(name: str, path: Path | None, overrides: dict[str, object]) -> dict[str, Any]:
    values = yaml.safe_load((CONF / f"{name}.yaml").read_text(encoding="utf-8"))
    values.pop("_target_")
    return values | {"limit": None, "side": "test", "path": None if path is None else str(path)} | overrides


def jsonl_dataset(path: Path | None, **overrides: object) -> JSONL:
    return JSONL(**_own("jsonl", path, overrides))


def lfrqa_dataset(path: Path | None, **overrides: object) -> LFRQA:
    return LFRQA(**_own("lfrqa", path, overrides))
