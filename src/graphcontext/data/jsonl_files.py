"""Which files hold a data set in JSONL: a user's own layout, BEIR's or FlashRAG's."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from graphcontext.errors import InputError

OWN, BEIR, FLASHRAG = "graphcontext", "BEIR", "FlashRAG"
SIDE_NAMES = {"test": ("test",), "validation": ("dev", "validation", "valid", "val"), "train": ("train",)}
SIDE_OF = {name: side for side, names in SIDE_NAMES.items() for name in names}
WHOLE = ""  # the key of a file that holds the questions of all sides
EXPECTED = (
    "corpus.jsonl with questions.jsonl (and qrels.tsv), BEIR's queries.jsonl and qrels/test.tsv, "
    "or FlashRAG's test.jsonl, dev.jsonl, train.jsonl"
)


@dataclass(frozen=True)
class Files:
    """The files of one data set.

    Args:
        corpus: one passage a line.
        questions: by side, or under ``WHOLE`` one for all.
        layout: whose file names these are.
        qrels: gold passages, by side or under ``WHOLE``.
    """

    corpus: Path
    questions: dict[str, Path]
    layout: str
    qrels: dict[str, Path] = field(default_factory=dict)

    @property
    def all(self) -> list[tuple[str, Path]]:
        """Return (role, file) of each, in a fixed order."""
        named = [("questions", self.questions), ("qrels", self.qrels)]
        return [("corpus", self.corpus), *((f"{k} {s}", v[s]) for k, v in named for s in sorted(v))]


def find(path: Path, corpus: Path | None = None) -> Files:
    """Return the files of the data set at ``path``, in any case of letters, plain or ``.gz``.

    Args:
        path: the folder, or one of its files: a file of questions chooses the layout where there are several.
        corpus: where the passages lie, None for ``corpus.jsonl`` in the folder.

    Raises:
        InputError: no such files, or files of two layouts; the message lists what was found and what is expected.
    """
    folder = path if path.is_dir() else path.parent
    lines = _named(folder, ".jsonl")
    layouts = {
        OWN: {WHOLE: lines["questions"]} if "questions" in lines else {},
        BEIR: {WHOLE: lines["queries"]} if "queries" in lines else {},
        FLASHRAG: _by_side(lines),
    }
    there = {layout: files for layout, files in layouts.items() if files}
    typed = {layout: files for layout, files in there.items() if path in files.values()}
    chosen = typed or there
    listed = ", ".join(sorted(entry.name for entry in folder.iterdir())[:8]) or "nothing"
    if len(chosen) != 1:
        if chosen:
            names = " and ".join(file.name for files in chosen.values() for file in list(files.values())[:1])
            raise InputError(f"{folder} holds {names}: two layouts; name the file of questions by dataset.path")
        raise InputError(f"{folder} holds no data set in JSONL: found {listed}; expected {EXPECTED}")
    ((layout, questions),) = chosen.items()
    passages = corpus or lines.get("corpus")
    if passages is None:
        raise InputError(f"{folder} holds no corpus.jsonl: found {listed}; put it there, or set dataset.corpus_path")
    if not passages.is_file():
        raise InputError(f"dataset.corpus_path={passages} is a folder; name the file of passages")
    if path.is_file() and path not in (passages, *questions.values()) and path.suffix.lower() != ".tsv":
        raise InputError(f"dataset.path={path}: no file of the data set; expected {EXPECTED}")
    return Files(passages, questions, layout, _qrels(folder))


def _qrels(folder: Path) -> dict[str, Path]:
    whole = _named(folder, ".tsv").get("qrels")
    below = folder / "qrels"
    by_side = _by_side(_named(below, ".tsv")) if below.is_dir() else {}
    if whole and by_side:
        raise InputError(f"{folder} holds both qrels.tsv and a folder qrels; remove one of them")
    return {WHOLE: whole} if whole else by_side


def _by_side(files: dict[str, Path]) -> dict[str, Path]:
    """Return the files that are named like a side, by side.

    Raises:
        InputError: two files are of one side.
    """
    found: dict[str, Path] = {}
    for name, file in sorted(files.items()):
        if name in SIDE_OF and found.setdefault(SIDE_OF[name], file) != file:
            raise InputError(f"{file.parent} holds {found[SIDE_OF[name]].name} and {file.name}: both are one side")
    return found


def _named(folder: Path, suffix: str) -> dict[str, Path]:
    """Return the files of a folder that end in ``suffix`` or ``suffix.gz``, by the rest of the name in lower case."""
    found: dict[str, Path] = {}
    for file in sorted(folder.iterdir()):
        name = file.name.lower().removesuffix(".gz")
        if name.endswith(suffix) and file.is_file():
            found.setdefault(name.removesuffix(suffix), file)  # plain sorts before .gz
    return found
