"""Questions that need several documents, each with a context of its own (KGP §4.1): what four formats share."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from graphcontext.data import sides, splits
from graphcontext.data.json_items import Part
from graphcontext.data.loaded import Loaded
from graphcontext.data.location import data_path
from graphcontext.data.multihop_card import BEYOND, SHORT, Sizes, card_of, lacking
from graphcontext.data.padding import Document, Documents, Made, Wanted, parse_unit
from graphcontext.data.records import Corpus, Question
from graphcontext.errors import InputError, did_you_mean
from graphcontext.hashes import hash_file

CORPORA = ("per_question", "global")


@dataclass(frozen=True, slots=True)
class Item:
    """One question as its file has it.

    Args:
        id, text: of the question.
        answers: acceptable answers.
        documents: of its context, in the order of the file.
        gold: (document, sentence) of each supporting fact, in order of reasoning, without repeats.
        kind: the data set's type of the question (``bridge``, ``comparison`` …).
        lost: supporting facts that name nothing in the context.
    """

    id: str
    text: str
    answers: tuple[str, ...]
    documents: tuple[Document, ...]
    gold: tuple[tuple[int, int], ...]
    kind: str
    lost: int = 0


class MultiHop:
    """Read questions with a context each; a subclass knows the format.

    Each question has a corpus of its own: the documents of its context cut into passages. A passage is matched on its
    text and shown as "Title: text"; two documents with one title stay two, told apart by ``Source.document``.

    Args:
        name: the data set's name, its folder below ``GRAPHCONTEXT_DATA``.
        path: the folder, or one of its files; None for the default place.
        license: of the passages.
        corpus: ``per_question``, or ``global`` for one corpus of all passages of the side's questions.
        passage_unit: ``sentence`` (as the data set has them), ``paragraph``, or ``merged:N``: neighbouring sentences
            of a paragraph up to N characters. Gold is the passage that holds a gold sentence.
        n_passages: pads each question's corpus to so many passages with whole documents of other questions of the
            file, the last one cut; documents with the title of an own one and passages with the text of a gold one are
            left out. None does not pad, and neither does ``corpus=global``.
        n_documents: the same by documents, own ones included; fewer than a question's own leave those without gold
            passages out, the last first.
        pad_seed: draws the order of other documents, with the question's id: a longer padding begins as a shorter one.
        limit: number of scored questions, None for all; never touches the padding.
        seed: the only seed that touches which questions are scored.
        split: ``auto`` keeps official sides (the dev file, or without one the test file, is scored whole as test; the
            last tenth of the train file by hashed id is validation); ``last_quarter`` cuts all questions by hashed id.
        side: the scored side: ``train``, ``validation`` or ``test``.
        exclude_duplicates: leave questions that equal a test question out of train and validation, and those that
            equal a validation question out of train; False keeps and counts them.
        plan: assumed sizes for planning before the data is read.

    Raises:
        InputError: a value is not allowed.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset({"path", "plan"})
    selection: ClassVar[frozenset[str]] = frozenset({"limit", "seed"})
    patterns: ClassVar[sides.Patterns] = {}
    suffix: ClassVar[str] = ".json"
    sentences: ClassVar[bool] = True  # whether the format has sentences

    def __init__(
        self,
        name: str,
        path: str | None,
        license: str,
        corpus: str,
        passage_unit: str,
        n_passages: int | None,
        n_documents: int | None,
        pad_seed: int,
        limit: int | None,
        seed: int,
        split: str,
        side: str,
        exclude_duplicates: bool,
        plan: dict[str, Any] | None,
    ) -> None:
        splits.check_split(split, side, sides.RULES)
        splits.check_limit(limit)
        if corpus not in CORPORA:
            raise InputError(f"dataset.corpus={corpus}{did_you_mean(str(corpus), CORPORA)}")
        most = parse_unit(passage_unit)
        if not self.sentences and most is not None:
            raise InputError(f"dataset.passage_unit={passage_unit}: {name} has no sentences; allowed: paragraph")
        for key, value in (("n_passages", n_passages), ("n_documents", n_documents)):
            if value is not None and value < 1:
                raise InputError(f"dataset.{key}={value}; allowed: null or a whole number from 1")
        if n_passages is not None and n_documents is not None:
            both = f"dataset.n_passages={n_passages} and dataset.n_documents={n_documents}"
            raise InputError(f"{both}: a corpus is padded to one of them; set the other to null")
        self.name, self.path, self.license = name, path, license
        self.corpus, self.most, self.passage_unit = corpus, most, passage_unit
        self.n_passages, self.n_documents, self.pad_seed = n_passages, n_documents, pad_seed
        self.limit, self.seed, self.split, self.side = limit, seed, split, side
        self.exclude_duplicates, self.plan = exclude_duplicates, plan

    @classmethod
    def identity(cls, config: dict[str, Any]) -> dict[str, str]:
        """Return the hash of the files that the side is read from, and which sides it is kept apart from.

        Raises:
            MissingDataError: they are not on this machine.
            InputError: the folder holds no such data set, or no file of the side.
        """
        side = config.get("side", "test")
        files = cls.files(data_path(config["name"], config.get("path")), side, config.get("split", "auto"))
        hashes = [(role, hash_file(file)) for role, file in sorted(files.items())]
        return {"content": hashlib.sha256(json.dumps(hashes).encode()).hexdigest(), **splits.apart_from(side)}

    @staticmethod
    def selects_first(config: Mapping[str, Any]) -> bool:
        """Tell whether only the corpora of scored questions are built; one corpus of all needs all."""
        return config["corpus"] == "per_question"

    @classmethod
    def files(cls, path: Path, side: str, split: str) -> dict[str, Path]:
        """Return the files that a side is read from, by role."""
        return sides.needed(sides.find(path, cls.patterns, cls.suffix), side, split, path)

    def select(self, questions: Sequence[Question]) -> tuple[Question, ...]:
        """Return the questions that are scored: ``limit`` of them, drawn by ``seed``, in id order."""
        return splits.select(questions, self.limit, self.seed)

    def read(self, files: Mapping[str, Path]) -> dict[str, list[Item]]:
        """Return the questions of the files of each side."""
        raise NotImplementedError

    def load(self, side: str | None = None) -> Loaded:
        """Read one side of the data set: its scored candidates, their corpora and the card.

        Raises:
            MissingDataError: the files are not on this machine.
            InputError: with file and item, what is wrong in it; no question of this side.
        """
        side = side or self.side
        splits.check_side(side)
        path = data_path(self.name, self.path)
        files = self.files(path, side, self.split)
        by_file = self.read(files)
        made = sides.cut(by_file, self.split, self.exclude_duplicates)
        chosen = sides.scored(made, side, path)
        if self.corpus == "per_question":
            chosen = splits.select(chosen, self.limit, self.seed)
        of_side = "test" if side == "test" else "train"
        padding = by_file[of_side] if self.split == "auto" else [item for items in by_file.values() for item in items]
        wanted = Wanted(self.most, self.license, self.n_passages, self.n_documents, self.pad_seed)
        documents = Documents((document for item in padding for document in item.documents), wanted)
        questions, corpora, sizes = self._corpora(documents, chosen)
        done = "excluded" if self.exclude_duplicates else "kept"
        copies = {f"{name}, {done}": n for name, n in made.copies.items()} if "train" in by_file else {}
        facts = {
            "name": self.name,
            "license": self.license,
            "path": path.name,
            "files": {role: file.name for role, file in files.items()},
            "split": {"side": side, "rule": made.rule, "why": made.why}
            | {name: len(made.by_side[name]) for name in splits.SIDES if name == side or len(by_file) > 1},
            "read": {"questions": sum(map(len, by_file.values())), "documents": documents.n},
            "copies": copies,
            "corpora": {"corpus": self.corpus, "passage_unit": self.passage_unit, "padded to": self._padded_to()},
        }
        counts = lacking(chosen) | (self._short(sizes) if self.corpus == "per_question" else {})
        return Loaded(questions, corpora, facts | card_of(chosen, sizes, corpora, counts))

    def _corpora(
        self, documents: Documents, chosen: Sequence[Item]
    ) -> tuple[tuple[Question, ...], dict[str, Corpus], list[Sizes]]:
        """Return the questions, their corpora, and how large the corpus of each question is."""
        if self.corpus == "global":
            made = documents.pooled(document for item in chosen for document in item.documents)
            whole = made.corpus()
            supports = [documents.pooled_gold(made, item.documents, item.gold) for item in chosen]
            questions = tuple(_question(item, whole.id, gold) for item, gold in zip(chosen, supports, strict=True))
            return questions, {whole.id: whole}, [_sizes(item, made, gold) for item, gold in zip(chosen, supports)]
        asked, corpora, sizes = [], {}, []
        for item in chosen:
            made = documents.of_question(item.id, item.documents, item.gold)
            corpus = made.corpus()
            corpora[corpus.id] = corpus
            asked.append(_question(item, corpus.id, made.gold))
            sizes.append(_sizes(item, made, made.gold))
        return tuple(asked), corpora, sizes

    def _padded_to(self) -> str:
        if self.corpus == "global" or (self.n_passages is None and self.n_documents is None):
            return "not padded"
        n = f"{self.n_passages} passages" if self.n_passages is not None else f"{self.n_documents} documents"
        return f"{n}, pad_seed {self.pad_seed}"

    def _short(self, sizes: Sequence[Sizes]) -> dict[str, int]:
        """Count the questions whose corpus is smaller or larger than it was to be."""
        if self.n_passages is not None:
            key, most, found = "n_passages", self.n_passages, [size.n_passages for size in sizes]
        elif self.n_documents is not None:
            key, most, found = "n_documents", self.n_documents, [size.n_documents for size in sizes]
        else:
            return {}
        short, beyond = f"{SHORT} {key}, as the file holds no more", f"{BEYOND} {key} by their own"
        return {short: sum(n < most for n in found), beyond: sum(n > most for n in found)}


def read_items(path: Path, parts: Iterable[Part], key: str, read: Callable[[Part, str], Item]) -> list[Item]:
    """Read the items of a file.

    Args:
        path: the file, for messages.
        parts: one for each item.
        key: of the id.
        read: takes an item that is named by its id, and the id.

    Raises:
        InputError: with file and item; an id stands twice; there is none.
    """
    found: list[Item] = []
    first: dict[str, str] = {}
    for part in parts:
        name = part.get(key).identifier()
        if first.setdefault(name, part.item) != part.item:
            part.fail(f"has the id {name}, which stands in {first[name]} too")
        named = part.named(f"question {name}")
        item = read(named, name)
        if not item.text:
            named.fail("has an empty question")
        if not any(sentence.strip() for d in item.documents for p in d.paragraphs for sentence in p):
            named.fail("has an empty context: there is nothing to answer it from")
        found.append(item)
    if not found:
        raise InputError(f"{path} holds no question")
    return found


def _question(item: Item, corpus_id: str, supports: Sequence[str]) -> Question:
    return Question(item.id, item.text, corpus_id, item.answers, title=item.text, supports=tuple(supports))


def _sizes(item: Item, made: Made, supports: Sequence[str]) -> Sizes:
    return Sizes(item.kind, made.n_documents, len(made.passages), made.n_words, len(supports))
