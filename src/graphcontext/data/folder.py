"""A folder of documents of the user's own: PDFs, Markdown, HTML, text and .docx as one corpus (KGP §2)."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from graphcontext.data import splits
from graphcontext.data.document import Cutting, Document, passages
from graphcontext.data.documents import READERS
from graphcontext.data.folder_files import VERSION, Listing, list_files, read_all
from graphcontext.data.jsonl_files import OWN, WHOLE, Files
from graphcontext.data.loaded import Loaded
from graphcontext.data.location import data_path
from graphcontext.data.outline import Outline
from graphcontext.data.plain_text import lengths
from graphcontext.data.questions import Asked, cut, read_questions, scored
from graphcontext.data.records import Corpus, Passage, Question, Source
from graphcontext.errors import InputError
from graphcontext.hashes import hash_file

if TYPE_CHECKING:
    from graphcontext.store import Workspace

RULES = ("auto", "last_quarter")
SHOWN = 5  # questions that are named
FORMS = "supports are FILE#page=3, FILE#table=2, FILE#text=words of a passage, or ids of passages"
_NODE = re.compile(r"(?P<document>.+)#(?P<kind>page|table|text)=(?P<value>.+)")


class Folder:
    """Read all documents of a folder into one corpus: texts, and of PDFs pages and tables (KGP §2, PDFTriage's PDFs).

    A passage of text is some sentences of one page under one heading, matched on itself and shown as
    "Title > Heading: text"; where files share a title, each one's name follows it. A ``page`` is a node that is never
    matched and shown as its whole text; a ``table`` is its caption and its Markdown. Every passage names its file and
    page. A file that cannot be read (a scan without text, one that is locked, empty, damaged) is named on stderr and
    on the card, and the rest goes on. What was read of a file is kept in the store by its content, so that a stopped
    reading goes on where it stopped.

    A table's Markdown that is longer than ``table_characters`` is cut between rows into several nodes, each with
    caption and header; of those, packing takes what fits the context and counts the others as cut.

    Questions are optional: ``ask`` needs none. They are read as by ``dataset=jsonl``; ``supports`` are ids of passages,
    or nodes: ``report.pdf#page=3``, ``report.pdf#table=2``, ``report.pdf#text=words of a passage``.

    Args:
        name: the data set's name.
        path: the folder, or one file; null for ``name`` as the package ships it or below ``GRAPHCONTEXT_DATA``.
        questions: a file of questions in the folder, null for none.
        exclude: patterns of files to leave out, such as ``drafts/*``.
        license: of the documents, null where you do not say.
        passage_characters: sentences of a paragraph are joined up to this length (KGP: 250).
        table_characters: a longer table is cut between rows.
        limit: number of scored questions, null for all.
        seed: the only seed that touches which questions are scored.
        split: the rule of the cut: ``auto`` keeps the sides that questions name, else it is ``last_quarter``.
        side: the scored side.
        exclude_duplicates: leave copies of test questions out of train and validation.
        workers: processes that read files (execution); null: as many as there are cores.
        plan: assumed sizes for planning before the data is read.

    Raises:
        InputError: a value is not allowed.

    Differs from the paper:
        PDFTriage's PDFs were parsed by Adobe's service; here by rules on ruling lines and aligned text.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset({"path", "workers", "plan"})
    selection: ClassVar[frozenset[str]] = frozenset({"limit", "seed"})

    def __init__(
        self,
        name: str,
        path: str | None,
        questions: str | None,
        exclude: list[str],
        license: str | None,
        passage_characters: int,
        table_characters: int,
        limit: int | None,
        seed: int,
        split: str,
        side: str,
        exclude_duplicates: bool,
        workers: int | None,
        plan: dict[str, Any] | None,
    ) -> None:
        splits.check_split(split, side, RULES)
        splits.check_limit(limit)
        for key, value in (("passage_characters", passage_characters), ("table_characters", table_characters)):
            if value < 20:
                raise InputError(f"dataset.{key}={value}; allowed: a whole number from 20")
        if workers is not None and workers < 1:
            raise InputError(f"dataset.workers={workers}; allowed: null (all cores) or a whole number from 1")
        self.name, self.path, self.questions, self.exclude = name, path, questions, exclude
        self.cutting = Cutting(passage_characters, table_characters, license or "")
        self.limit, self.seed, self.split, self.side = limit, seed, split, side
        self.exclude_duplicates, self.workers, self.plan = exclude_duplicates, workers, plan
        self._workspace: Workspace | None = None

    @classmethod
    def identity(cls, config: dict[str, Any]) -> dict[str, str]:
        """Return the hash of names and contents of all files: the key follows content, not path.

        Raises:
            MissingDataError: the folder is not on this machine.
            InputError: it holds no file that can be read.
        """
        _, listing, asked = _files(config["name"], config.get("path"), config["exclude"], config.get("questions"))
        found = [*listing.files.items(), *([("questions", asked)] if asked else [])]
        hashes = [(name, _hash(file)) for name, file in found] + sorted(listing.faults.items())
        return {"content": hashlib.sha256(json.dumps([VERSION, hashes]).encode()).hexdigest()}

    def bind(self, workspace: Workspace) -> None:
        """Keep what is read of each file in the workspace's store from now on."""
        self._workspace = workspace

    def select(self, questions: Sequence[Question]) -> tuple[Question, ...]:
        """Return the questions that are scored: ``limit`` of them, drawn by ``seed``, in id order.

        Raises:
            InputError: there is none: the folder is one to ask, not to score.
        """
        if not questions:
            mend = "set dataset.questions=questions.jsonl, a file there, or ask your own with: graphcontext ask"
            raise InputError(f"dataset={self.name}: the folder comes without questions to score; {mend}")
        return splits.select(questions, self.limit, self.seed)

    def load(self, side: str | None = None) -> Loaded:
        """Read the documents, and one side of the questions.

        Raises:
            MissingDataError: the folder is not on this machine.
            InputError: no file can be read, or with file and line, what is wrong in the questions.
        """
        side = side or self.side
        splits.check_side(side)
        path, listing, asked = _files(self.name, self.path, self.exclude, self.questions)
        counts: Counter[str] = Counter()
        ignored: Counter[str] = Counter()
        chosen: tuple[Asked, ...] = ()
        split: dict[str, Any] = {}
        if asked is not None:  # before the documents, which take long
            made = cut(read_questions(_own(path, asked), counts, ignored), self.split, self.exclude_duplicates, counts)
            chosen = scored(made, side, asked)
            split = {"side": side, "rule": made.rule, "why": made.why} | {s: len(q) for s, q in made.by_side.items()}
        store = self._workspace.store if self._workspace else None
        documents, faults = read_all(listing, store, self.workers, bool(self._workspace and self._workspace.quiet))
        _tell(path, faults, documents, listing)
        if not documents:
            name, reason = next(iter(faults.items()))
            raise InputError(f"{path}: none of {len(faults)} files can be read; {name} {reason}")
        documents = _titled_apart(documents)
        found = [p for name, document in documents.items() for p in passages(document, name, self.cutting)]
        corpus = Corpus.of(found)
        structure = Outline(corpus)
        made_of = [(question, *_question(question, corpus.id, structure, counts)) for question in chosen]
        questions = tuple(question for _, question, _ in made_of)
        if asked is not None:
            _tell_questions(asked.name, split, side, {a.id: unknown for a, _, unknown in made_of if unknown})
        card = {
            "name": self.name,
            "license": self.cutting.license or "not given",
            "path": path.name,
            **({"split": split} if split else {}),
            "read": _read(documents, found),
            "files_left_out": listing.left_out,
            "files_that_cannot_be_read": faults,
            "notes": {name: "; ".join(d.notes) for name, d in documents.items() if d.notes},
            "counts": {name: n for name, n in counts.items() if n},
            "ignored_keys": dict(sorted(ignored.items())),
            "pool": len(found),
            "kept": len(chosen),
            "scored_candidates": len(chosen),
            "answers_in_pool": 0,
            "words": {
                "pool passages": lengths([p.context_text for p in found if p.kind != "page"]),
                "scored questions": lengths([question.text for question in chosen]),
                "scored answers": lengths([answer for question in chosen for answer in question.answers]),
            },
        }
        return Loaded(questions, {corpus.id: corpus}, card)


def _files(
    name: str, path: str | None, exclude: Sequence[str], questions: str | None
) -> tuple[Path, Listing, Path | None]:
    """Return the folder, its documents and its file of questions.

    Raises:
        InputError: it holds no document, or no such file of questions.
    """
    if name == "folder" and path is None:
        raise InputError("dataset.path is not set: it names your folder of documents (dataset=folder dataset.path=DIR)")
    found = data_path(name, path)
    asked = (found if found.is_dir() else found.parent) / questions if questions else None
    if asked is not None and not asked.is_file():
        raise InputError(f"dataset.questions={questions}: there is no such file in {found}; null for none")
    listing = list_files(found, [*exclude, *([questions] if questions else [])])
    if not listing.files and not listing.faults:
        held = ", ".join(f"{n} {kind}" for kind, n in listing.left_out.items()) or "it is empty"
        raise InputError(f"{found} holds no document ({held}); read are {', '.join(READERS)}")
    return found, listing, asked


def _titled_apart(documents: dict[str, Document]) -> dict[str, Document]:
    """Return documents with their files' names after titles that several have: a title that graphs join is of one."""

    def plain(title: str) -> str:
        return " ".join(title.casefold().split())

    titles = Counter(plain(document.title) for document in documents.values())
    return {
        name: replace(document, title=f"{document.title} ({name})") if titles[plain(document.title)] > 1 else document
        for name, document in documents.items()
    }


def _own(path: Path, asked: Path) -> Files:
    return Files(path, {WHOLE: asked}, OWN)


def _hash(path: Path) -> str:
    try:
        return hash_file(path)
    except OSError as error:
        return f"not read: {error.strerror}"


def _tell(path: Path, faults: dict[str, str], documents: dict[str, Document], listing: Listing) -> None:
    """Say on stderr, one line a file, what is not in the corpus."""
    for name, reason in faults.items():
        print(f"{name} {reason}; left out", file=sys.stderr)
    for name, document in documents.items():
        for note in document.notes:
            print(f"{name}: {note}", file=sys.stderr)
    if n := listing.left_out.get("linked folders"):
        print(f"{path}: linked folders, which are not followed: {n}", file=sys.stderr)
    other = {kind: n for kind, n in listing.left_out.items() if kind.startswith("of another kind")}
    if other:
        said = ", ".join(f"{n} {kind}" for kind, n in other.items())
        print(f"{path}: files left out: {said}; read are {', '.join(READERS)}", file=sys.stderr)


def _read(documents: dict[str, Document], found: Sequence[Passage]) -> dict[str, int]:
    kinds = Counter(passage.kind or "text" for passage in found)
    by_format = Counter(Path(name).suffix.lower() for name in documents)
    return {
        "files": len(documents),
        **{f"files {suffix}": n for suffix, n in sorted(by_format.items())},
        "pages": kinds["page"],
        "tables": kinds["table"],
        "text passages": kinds["text"],
    }


def _tell_questions(file: str, split: dict[str, Any], side: str, unknown: dict[str, list[str]]) -> None:
    """Say on stderr which questions are scored, where not all are, and of which the gold is not in the folder."""
    sizes = [split[name] for name in splits.SIDES]
    if split["rule"].startswith("last quarter") and split[side] < sum(sizes):
        mend = '"split": "test" in a line puts it among those that are scored'
        print(f"{file}: {split[side]} of {sum(sizes)} questions are scored, the last quarter; {mend}", file=sys.stderr)
    for name, written in list(unknown.items())[:SHOWN]:
        print(f"{file}: question {name}: not in the folder: {', '.join(written)}; {FORMS}", file=sys.stderr)
    if len(unknown) > SHOWN:
        print(f"{file}: gold that is not in the folder: {len(unknown)} questions in all", file=sys.stderr)


def _question(asked: Asked, corpus_id: str, structure: Outline, counts: Counter[str]) -> tuple[Question, list[str]]:
    """Return a question with its gold passages by id, and what of these is not there: it stays as written."""
    supports: list[str] = []
    unknown = []
    for written in asked.supports:
        match = _NODE.fullmatch(written)
        ids = structure.find(match["document"], match["kind"], match["value"]) if match else ()
        if not ids and written not in structure.ids:
            counts["gold passages that are not in the corpus"] += 1
            unknown.append(written)
        supports += ids or [written]
    made = Question(asked.id, asked.text, corpus_id, asked.answers, asked.text, tuple(dict.fromkeys(supports)))
    return replace(made, source=Source(date=asked.date)), unknown
