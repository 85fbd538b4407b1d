"""LFRQA (RAG-QA Arena): forum questions with long human answers, as a pool of answered questions.

The data set has document ids but no documents: its corpus is the answers of other questions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from graphcontext.data import leaks, splits
from graphcontext.data.filters import Filtered, Item
from graphcontext.data.json_lines import Row, entry_id, rows
from graphcontext.data.loaded import Loaded
from graphcontext.data.location import data_path
from graphcontext.data.pool import MATCHES, Kept, load_side
from graphcontext.data.records import Answer, Question
from graphcontext.errors import InputError, did_you_mean
from graphcontext.hashes import hash_file

FOLDER = "lfrqa_technology"
RULES = ("auto", "last_quarter")


class LFRQA:
    """Read an annotation file of LFRQA, cut it, and keep what answers a scored question out of the pool.

    There are no dates, and ids of one length are mostly of one kind (forum or search): the cut goes by a hash of the
    id, so that each side has its share of both. The card counts them.

    A pooled question is left out where it shares a gold document with a scored one, or is nearly the same: its
    question or its answer has at least ``near_duplicate`` of the words in common (Jaccard index of the word sets).

    Args:
        name: the data set's name.
        path: the annotation file, or a folder with one ``.jsonl``; None for ``lfrqa_technology`` below
            ``GRAPHCONTEXT_DATA``.
        license: for the card.
        limit: number of scored questions, None for all; never touches the pool.
        seed: the only seed that touches which questions are scored.
        split: the rule of the cut: ``last_quarter`` in the order of hashed ids, which ``auto`` takes.
        side: the scored side: ``train``, ``validation`` or ``test``.
        match: what of a pooled question is retrieved on: ``question``, ``answer`` or ``question_answer``.
        near_duplicate: Jaccard index in (0, 1] from which a question or an answer is a copy.
        plan: assumed sizes for planning before the data is here.

    Raises:
        InputError: a value is not allowed.
    """

    version: ClassVar[int] = 2
    execution: ClassVar[frozenset[str]] = frozenset({"path", "plan"})
    selection: ClassVar[frozenset[str]] = frozenset({"limit", "seed"})

    def __init__(
        self,
        name: str,
        path: str | None,
        license: str,
        limit: int | None,
        seed: int,
        split: str,
        side: str,
        match: str,
        near_duplicate: float,
        plan: dict[str, Any] | None,
    ) -> None:
        splits.check_split(split, side, RULES)
        splits.check_limit(limit)
        if match not in MATCHES:
            raise InputError(f"dataset.match={match}{did_you_mean(match, MATCHES)}")
        if not 0 < near_duplicate <= 1:
            raise InputError(f"dataset.near_duplicate={near_duplicate}; allowed: above 0, at most 1")
        self.name, self.path, self.license = name, path, license
        self.limit, self.seed, self.split, self.side = limit, seed, split, side
        self.match, self.near_duplicate, self.plan = match, near_duplicate, plan

    @classmethod
    def identity(cls, config: dict[str, Any]) -> dict[str, str]:
        """Return the hash of the file, and which sides ``train`` is kept apart from.

        Raises:
            MissingDataError: the file is not on this machine.
        """
        # validation is apart from test since version 2, train from validation since later
        apart = splits.apart_from("train") if config.get("side") == "train" else {}
        return {"content": hash_file(_file(data_path(config["name"], config.get("path"), (FOLDER,)))), **apart}

    def select(self, questions: Sequence[Question]) -> tuple[Question, ...]:
        """Return the questions that are scored: ``limit`` of them, drawn by ``seed``, in id order."""
        return splits.select(questions, self.limit, self.seed)

    def load(self, side: str | None = None) -> Loaded:
        """Read one side of the data set: its scored candidates, the pool (two for ``train``) and the card.

        Raises:
            MissingDataError: the file is not on this machine.
            InputError: a damaged line; no scored question or an empty pool (with all counts).
        """
        side = side or self.side
        splits.check_side(side)
        path = _file(data_path(self.name, self.path, (FOLDER,)))
        items, documents = _read(path, self.license)
        counts = Counter({"questions": len(items), "answers": len(items)})
        prints = [leaks.fingerprint(item.id, item.question) for item in items]
        kept: list[Item] = [item for item in items if item.answer]
        filtered = Filtered(tuple(kept), Counter({"no answer": len(items) - len(kept)}), prints)
        why = "no dates" if self.split == "auto" else f"dataset.split={self.split}"
        sides = splits.last_quarter(kept, why, splits.by_hash)

        def guard(scored: Sequence[Item], candidates: Sequence[Item]) -> tuple[Sequence[Item], Counter[str]]:
            safe, taken = leaks.guard(scored, candidates, (), prints)
            taken.pop("duplicate by link")  # the data set has no links
            asked = {document for item in scored for document in documents[item.id]}
            apart = [item for item in safe if asked.isdisjoint(documents[item.id])]
            near = leaks.near_duplicates(scored, apart, self.near_duplicate)
            taken.update({"shared gold document": len(safe) - len(apart), "near-duplicate": len(near)})
            return [item for item in apart if item.id not in near], taken

        kinds = {"train": _kinds(sides.train), "test": _kinds(sides.test)}
        facts = {"name": self.name, "license": self.license, "questions of each kind": kinds}
        return load_side(Kept(path, facts, counts, filtered, sides, guard, self.match), side)


def _file(path: Path) -> Path:
    """Return the annotation file at ``path``, a folder or the file itself."""
    if path.is_file():
        return path
    found = sorted(file for file in path.iterdir() if file.name.endswith((".jsonl", ".jsonl.gz")))
    if len(found) != 1:
        listed = ", ".join(file.name for file in found[:8]) or "none"
        raise InputError(f"{path}: expected one .jsonl in this folder, found {listed}; name the file by dataset.path")
    return found[0]


def _read(path: Path, license: str) -> tuple[list[Item], dict[int | str, frozenset[str]]]:
    """Return the items in file order, and the gold documents of each."""
    items: list[Item] = []
    documents: dict[int | str, frozenset[str]] = {}
    lines: dict[str, int] = {}
    for row in rows(path):
        item = _item(row, license)
        first = lines.setdefault(str(item.id), row.line)
        if first != row.line:
            row.fail(f"qid {item.id} stands in line {first} too")
        documents[item.id] = frozenset(row.list_of("gold_doc_ids", entry_id))
        items.append(item)
    return items, documents


def _kinds(items: Sequence[Item]) -> dict[str, int]:
    """Count forum and search questions, by their ids (``technology-forum-test-12``)."""
    found = (re.search(r"-(forum|search)-", str(item.id)) for item in items)
    return dict(sorted(Counter(kind[1] if kind else "other" for kind in found).items()))


def _item(row: Row, license: str) -> Item:
    question, answer = row.text("question").strip(), row.text("answer").strip()
    if not question:
        row.fail("question is empty")
    return Item(
        id=row.identifier("qid"),
        title=question,
        question=question,
        answer=answer,
        answers=(Answer(answer, accepted=True),),
        date="",
        tags=(),
        author="",
        license=license,
    )
