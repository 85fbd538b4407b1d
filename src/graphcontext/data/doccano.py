"""Texts for human raters as Doccano reads them, and their labels as Doccano writes them (text classification).

Doccano keeps each further key of an imported line and gives it back beside ``label``: our ``item`` returns so.
Projects whose annotators do not share annotations export a ``.zip`` with one JSONL file per annotator.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from graphcontext.errors import InputError

LARGEST = 64 * 2**20  # bytes of one file of labels
NAMES = ("annotator", "username", "user")  # keys that may name the rater of a line


@dataclass(frozen=True)
class Judgement:
    """One label that one rater gave one item."""

    rater: str
    item: str
    label: str


@dataclass(frozen=True)
class Labels:
    """What a set of exports holds: the judgements, and who labelled nothing."""

    judgements: tuple[Judgement, ...]
    silent: tuple[str, ...]


def lines(texts: Iterable[tuple[str, str]]) -> str:
    """Return (item, text) pairs as JSONL for Doccano's import, without a label."""
    rows = ({"text": text, "label": [], "item": item} for item, text in texts)
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def read(
    paths: Sequence[Path],
    allowed: Mapping[str, Sequence[str]],
    whole: Sequence[Sequence[str]],
    texts: Mapping[str, str] | None = None,
) -> Labels:
    """Read exports, one per rater (the file's name, without a browser's `` (1)``) or with the rater on each line.

    Args:
        paths: ``.jsonl`` files, or ``.zip`` files that hold such.
        allowed: item → the labels that it can have.
        whole: groups of items of which a rater labels all or none; empty takes what there is.
        texts: item → what raters were shown; a line with another text is a fault.

    Raises:
        InputError: all faults, counted, the first few named: a line that does not read, an item that was not
            exported, another text, a label that is not allowed, several labels, an item labelled twice, a part that is
            missing.
    """
    faults: list[str] = []
    given: dict[tuple[str, str], str] = {}
    raters: dict[str, None] = {}
    for name, rater, number, row in _rows(paths, faults):
        who = next((row[key] for key in NAMES if row.get(key) not in (None, "")), rater)
        at = f"{name} line {number}"
        if not _is_name(who):
            faults.append(f"{at}: a rater is named by a text or a number, this one is not")
            continue
        who = str(who)
        raters.setdefault(who)
        item, labels = _item(row), _labels(row)
        if item not in allowed:
            faults.append(f"{at}: item {item!r} was not exported here")
        elif _is_other(row.get("text"), (texts or {}).get(item)):
            faults.append(f"{at}: the text is not the one that was exported as item {item}")
        elif isinstance(labels, str):
            faults.append(f"{at}: {labels}")
        elif len(labels) > 1:
            faults.append(f"{at}: {len(labels)} labels ({', '.join(labels)}): one per rater and item")
        elif labels:
            label = next((one for one in allowed[item] if one.casefold() == labels[0].strip().casefold()), None)
            if label is None:
                faults.append(f"{at}: label {labels[0]!r}; allowed: {', '.join(allowed[item])}")
            elif (who, item) in given:
                faults.append(f"{at}: {who} labelled item {item} twice")
            else:
                given[who, item] = label
    faults += _missing(given, whole)
    if faults:
        raise InputError(f"{len(faults)} fault{'s' * (len(faults) > 1)}, nothing imported: {_some(faults, '; ')}")
    counted = Counter(who for who, _ in given)
    if not given:
        raise InputError(f"no label in {', '.join(path.name for path in paths)}: nothing imported")
    judgements = tuple(Judgement(who, item, label) for (who, item), label in given.items())
    return Labels(judgements, tuple(who for who in raters if not counted[who]))


def _is_name(value: Any) -> bool:
    """Tell whether a value can name a rater: text that can be written, or a whole number."""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return False
    return str(value).isprintable()


def _is_other(text: Any, shown: str | None) -> bool:
    """Tell whether a line's text is another than was shown; blanks may differ, and a line may hold no text."""
    return isinstance(text, str) and shown is not None and text.split() != shown.split()


def _missing(given: Mapping[tuple[str, str], str], whole: Sequence[Sequence[str]]) -> Iterator[str]:
    for who in dict.fromkeys(rater for rater, _ in given):
        for group in whole:
            absent = [item for item in group if (who, item) not in given]
            if 0 < len(absent) < len(group):
                yield f"{who}: {len(absent)} of {len(group)} items have no label ({_some(absent, ', ')})"


def _some(texts: Sequence[str], between: str, most: int = 5) -> str:
    return between.join(texts[:most]) + (f"{between}…" if len(texts) > most else "")


def _rows(paths: Sequence[Path], faults: list[str]) -> Iterator[tuple[str, str, int, dict[str, Any]]]:
    """Yield (file, rater by its name, line number, line)."""
    for path in paths:
        for name, data in _files(path, faults):
            for number, line in enumerate(data.splitlines(), 1):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                except (ValueError, RecursionError):
                    row = None
                if isinstance(row, dict):
                    rater = re.sub(r" \(\d+\)$", "", PurePosixPath(name).name.removesuffix(".jsonl"))
                    yield name, rater, number, row
                else:
                    faults.append(f"{name} line {number}: not a line of JSON with keys (export as JSONL)")


def _files(path: Path, faults: list[str]) -> Iterator[tuple[str, bytes]]:
    """Yield (name, content) of a file, or of each JSONL file in an archive."""
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    if not zipfile.is_zipfile(path):
        if path.stat().st_size > LARGEST:
            raise InputError(f"{path}: {path.stat().st_size / 2**20:.0f} MiB; labels take {LARGEST // 2**20} at most")
        yield path.name, path.read_bytes()
        return
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                if not entry.filename.endswith(".jsonl"):
                    continue
                if entry.file_size > LARGEST:
                    raise InputError(f"{path}: {entry.filename} unpacks to over {LARGEST // 2**20} MiB")
                yield entry.filename, archive.read(entry)
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, OSError) as error:  # damaged, locked, other methods
        faults.append(f"{path.name}: the archive cannot be read: {error}")


def _item(row: Mapping[str, Any]) -> str | None:
    """Return the item that a line is of: beside the label, or among what older versions keep in ``meta``."""
    meta = row.get("meta")
    if isinstance(meta, str):
        try:
            meta = json.loads(meta)
        except ValueError:
            meta = None
    found = row.get("item", meta.get("item") if isinstance(meta, dict) else None)
    return found if isinstance(found, str) else None


def _labels(row: Mapping[str, Any]) -> list[str] | str:
    """Return the labels of a line, or what is wrong with them."""
    if "label" not in row and "labels" not in row:
        return "no key label: export with the names of labels (JSONL, text labels)"
    found = row.get("label", row.get("labels"))
    found = found if isinstance(found, list) else [] if found in (None, "") else [found]
    if any(isinstance(label, bool) or not isinstance(label, (str, int)) for label in found):
        return f"label {found!r}: neither text nor a whole number"
    return [str(label) for label in found]
