"""A data set of the user's own in JSONL, and BEIR's and FlashRAG's files as they are."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from graphcontext.data import splits
from graphcontext.data.copies import counted, find_copies
from graphcontext.data.json_lines import Row, rows
from graphcontext.data.jsonl_files import Files, find
from graphcontext.data.loaded import Loaded
from graphcontext.data.location import data_path
from graphcontext.data.plain_text import lengths
from graphcontext.data.questions import Asked, cut, read_questions, scored
from graphcontext.data.records import Answer, Corpus, Passage, Question, Source
from graphcontext.errors import InputError
from graphcontext.hashes import hash_file

RULES = ("auto", "last_quarter")
KEYS = frozenset(("id", "_id", "title", "text", "contents", "answer", "url"))


class JSONL:
    """Read a corpus and questions that lie in JSONL files.

    ``corpus.jsonl`` holds ``id, title, text`` and, for a pool of answered questions, ``answer`` (``url`` becomes the
    link); ``questions.jsonl`` holds ``id, question, answers, supports`` (ids of gold passages) and, where the data
    set has them, ``split`` and ``date``; ``qrels.tsv`` names further gold passages. Only ids, texts and questions are
    needed. BEIR (``_id``, ``queries.jsonl``, ``qrels/``) and FlashRAG (``contents``, ``golden_answers``,
    ``test.jsonl``, ``dev.jsonl``, ``train.jsonl``) are told by their files and keys.

    A passage keeps the user's id; it is matched on "title, newline, text" and shown as that, with the answer where
    it has one. Gold passages that are not in the corpus stay gold, and are counted. Grades of qrels are kept.

    A passage with an ``answer`` whose question (title, text or both) is a scored question, after normalisation, would
    hand that answer out: it leaves the pool, unless it is among that question's gold passages. An answered passage that
    is a question of a side scored later leaves it in any case: of test from the pool of validation, of both from that
    of train, which a model is trained on. Passages without answers are never left out, only counted. The card tells
    what was excluded from what was kept.

    Args:
        name: the data set's name.
        path: the folder, or one of its files; None for ``jsonl`` below ``GRAPHCONTEXT_DATA``.
        corpus_path: the file of passages where it is not ``corpus.jsonl`` in that folder.
        license: of the passages, None where you do not say.
        limit: number of scored questions, None for all; never touches the pool.
        seed: the only seed that touches which questions are scored.
        split: the rule of the cut: ``auto`` keeps official sides (a dev or test file is scored whole), else it is
            ``last_quarter`` in time order, by id without dates.
        side: the scored side: ``train``, ``validation`` or ``test``.
        exclude_duplicates: leave copies out: of test questions from train and validation, of validation questions from
            train, of questions of this side and those scored later from the answered passages; False keeps and
            counts them.
        expected_passages: number of passages that the corpus must hold, before copies leave it; None is not checked.
        plan: assumed sizes for planning before the data is read.

    Raises:
        InputError: a value is not allowed.
    """

    version: ClassVar[int] = 2
    execution: ClassVar[frozenset[str]] = frozenset({"path", "corpus_path", "plan"})
    selection: ClassVar[frozenset[str]] = frozenset({"limit", "seed"})

    def __init__(
        self,
        name: str,
        path: str | None,
        corpus_path: str | None,
        license: str | None,
        limit: int | None,
        seed: int,
        split: str,
        side: str,
        exclude_duplicates: bool,
        expected_passages: int | None,
        plan: dict[str, Any] | None,
    ) -> None:
        splits.check_split(split, side, RULES)
        splits.check_limit(limit)
        if expected_passages is not None and expected_passages < 1:
            raise InputError(f"dataset.expected_passages={expected_passages}; allowed: null or a whole number from 1")
        self.name, self.path, self.corpus_path, self.license = name, path, corpus_path, license
        self.limit, self.seed, self.split, self.side = limit, seed, split, side
        self.exclude_duplicates, self.expected_passages, self.plan = exclude_duplicates, expected_passages, plan

    @classmethod
    def identity(cls, config: dict[str, Any]) -> dict[str, str]:
        """Return the hash of all files, and which sides the pool is kept apart from: the key follows content, not path.

        Raises:
            MissingDataError: they are not on this machine.
            InputError: the folder holds no such data set.
        """
        _, files = _files(config["name"], config.get("path"), config.get("corpus_path"))
        hashes = [(role, hash_file(file)) for role, file in files.all]
        content = hashlib.sha256(json.dumps(hashes).encode()).hexdigest()
        return {"content": content, **splits.apart_from(config.get("side", "test"))}

    def select(self, questions: Sequence[Question]) -> tuple[Question, ...]:
        """Return the questions that are scored: ``limit`` of them, drawn by ``seed``, in id order."""
        return splits.select(questions, self.limit, self.seed)

    def load(self, side: str | None = None) -> Loaded:
        """Read one side of the data set: its scored candidates, the corpus and the card.

        Raises:
            MissingDataError: the files are not on this machine.
            InputError: with file and line, what is wrong in it; no passage, or no question of this side.
        """
        side = side or self.side
        splits.check_side(side)
        path, files = _files(self.name, self.path, self.corpus_path)
        counts: Counter[str] = Counter()
        ignored: Counter[str] = Counter()
        asked = read_questions(files, counts, ignored)
        made = cut(asked, self.split, self.exclude_duplicates, counts)
        chosen = scored(made, side, path)
        passages = read_passages(files.corpus, self.license or "", counts, ignored)
        if self.expected_passages not in (None, len(passages)):
            got = f"{len(passages)} passages, dataset.expected_passages says {self.expected_passages}"
            raise InputError(f"{files.corpus} holds {got}")
        equal = find_copies(passages, made, side)
        excluded = {name for found in equal.values() for name in found.answered} if self.exclude_duplicates else set()
        corpus = Corpus.of([p for p in passages if p.id not in excluded])
        if not corpus.passages and side != "train":  # a model is tuned on pairs alone: what retrieves says it then
            raise InputError(f"{files.corpus}: all {len(passages)} passages answer {_none_left(side)}")
        done = "excluded" if self.exclude_duplicates else "kept"
        copies = {f"{name}, {done}": n for name, n in made.copies.items()} | counted(equal, done)
        expected = {"expected_passages": self.expected_passages} if self.expected_passages else {}
        sizes = {name: len(found) for name, found in made.by_side.items()}
        facts = {
            "name": self.name,
            "layout": files.layout,
            "license": self.license or "not given",
            "path": path.name,
            "split": {"side": side, "rule": made.rule, "why": made.why, **sizes},
            "read": {"passages": len(passages), "questions": len(asked)},
        }
        card = facts | expected | {"copies": copies} | _facts(corpus, chosen, counts, ignored)
        return Loaded(tuple(_question(q, corpus.id) for q in chosen), {corpus.id: corpus}, card)


def read_passages(path: Path, license: str, counts: Counter[str], ignored: Counter[str]) -> list[Passage]:
    """Read the passages of a file, in its order; each keeps its id.

    Raises:
        InputError: with file and line; there is none.
    """
    passages: list[Passage] = []
    lines: dict[str, int] = {}
    for row in rows(path):
        ignored.update(row.unread(KEYS))
        passage = _passage(row, license)
        first = lines.setdefault(passage.id, row.line)
        if first != row.line:
            row.fail(f"passage id {passage.id} stands in line {first} too")
        counts["passages without text"] += not passage.match_text.strip()
        passages.append(passage)
    if not passages:
        raise InputError(f"{path} holds no passage")
    return passages


def _passage(row: Row, license: str) -> Passage:
    title, text = row.optional_text("title").strip(), row.text("text", "contents")
    if "text" not in row.values:
        first, newline, rest = text.partition("\n")
        if newline and not title and len(first) > 1 and first[0] == first[-1] == '"':  # FlashRAG: "title"\ntext
            title, text = first[1:-1].strip(), rest
    answer = row.optional_text("answer").strip()
    shown = f"{title}\n{text}" if title else text
    return Passage(
        id=row.identifier("id", "_id"),
        title=title,
        match_text=shown,
        context_text=f"{shown}\n\nAnswer: {answer}" if answer else shown,
        source=Source(link=row.optional_text("url"), license=license),
        answers=(Answer(answer, accepted=True),) if answer else (),
    )


def _files(name: str, path: str | None, corpus_path: str | None) -> tuple[Path, Files]:
    found = data_path(name, path)
    corpus = None if corpus_path is None else data_path(name, corpus_path, key="dataset.corpus_path")
    return found, find(found, corpus)


def _question(asked: Asked, corpus_id: str) -> Question:
    return Question(
        id=asked.id,
        text=asked.text,
        corpus_id=corpus_id,
        references=asked.answers,
        title=asked.text,
        supports=tuple(asked.supports),
        source=Source(date=asked.date),
        grades=tuple(asked.supports.values()) if max(asked.supports.values(), default=1) > 1 else None,
    )


def _none_left(side: str) -> str:
    """Return whose questions the passages of an empty corpus are, and what mends it."""
    *others, last = side, *splits.later(side)
    if not others:
        return "a scored question; dataset.exclude_duplicates=false keeps them"
    return f"a question of {', '.join(others)} or {last}; add others"


def _facts(corpus: Corpus, chosen: Sequence[Asked], counts: Counter[str], ignored: Counter[str]) -> dict[str, Any]:
    """Return what the card says beyond names, split and copies."""
    known = {passage.id for passage in corpus.passages}
    gold = {support for question in chosen for support in question.supports}
    lacking = {
        "scored questions without answers": sum(not question.answers for question in chosen),
        "scored questions without gold passages": sum(not question.supports for question in chosen),
        "gold passages that are not in the corpus": len(gold - known),
    }
    words = {
        "pool passages": lengths([passage.context_text for passage in corpus.passages]),
        "scored questions": lengths([question.text for question in chosen]),
        "scored answers": lengths([answer for question in chosen for answer in question.answers]),
    }
    return {
        "counts": {**counts, **lacking},
        "ignored_keys": dict(sorted(ignored.items())),
        "kept": len(chosen),
        "pool": len(corpus.passages),
        "scored_candidates": len(chosen),
        "answers_in_pool": sum(len(passage.answers) for passage in corpus.passages),
        "words": words,
    }
