"""From a table's YAML and the user's overrides to the configs of its cells, composed once and cached."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from graphcontext import __version__, config
from graphcontext import overrides as overriding
from graphcontext.conf_tree import chosen_groups, conf_dirs
from graphcontext.config import Composed, compose
from graphcontext.errors import InputError, RunError, did_you_mean
from graphcontext.files import digest, write_atomic
from graphcontext.hashes import hash_file
from graphcontext.table.spec import KINDS, Row, Spec, load_spec
from graphcontext.train import trained

DATA_ALONE = ("retriever=none", "enhancer=none", "generator=none", "tokenizer=words", "metric=[]")  # of a card


@dataclass(frozen=True)
class Column:
    """One dataset column group: the option that is read, and the paper's columns it stands for."""

    dataset: str
    label: str
    stands_for: tuple[str, ...]  # dataset options of the paper; empty where the user chose another data set


@dataclass(frozen=True)
class CellConfig:
    """The composed config of one row on one dataset."""

    row: Row
    column: Column
    composed: Composed


@dataclass(frozen=True)
class Request:
    """A table as the user asked for it; ``root`` is the working folder, which holds ``store/``."""

    spec: Spec
    overrides: tuple[str, ...]
    selected: tuple[str, ...]
    baseline: str | None
    suffix: str
    root: Path = Path(".")
    rows: str | None = None  # table.rows as typed


def request(
    name: str, overrides: list[str] | tuple[str, ...], config_dir: str | None = None, root: Path | str = "."
) -> Request:
    """Split ``table.*`` keys from the overrides and check them.

    Raises:
        InputError: an unknown row, an override that names the axis of the rows without ``table.rows``, or a
            ``dataset.path`` without the data set that it is of.
    """
    spec = load_spec(name, config_dir)
    settings: dict[str, str] = {}
    rest: list[str] = []
    for text in overrides:
        key, _, value = text.partition("=")
        if key in ("table.rows", "table.baseline"):
            settings[key] = value
        elif key.startswith("table."):
            raise InputError(f"{text}: no such key{did_you_mean(key, ['table.rows', 'table.baseline'])}")
        else:
            rest.append(text)
    names = [row.name for row in spec.rows]
    selected = _select(spec, settings.get("table.rows"), names)
    baseline = settings.get("table.baseline", spec.baseline)
    if baseline not in (None, "null", *names):
        raise InputError(f"table.baseline={baseline}: no such row{did_you_mean(str(baseline), names, most=20)}")
    _check_axes(spec, rest, "table.rows" in settings, config_dir)
    _check_words(spec, rest, config_dir)
    suffix = _suffix(spec, rest)
    baseline = None if baseline == "null" else baseline
    return Request(spec, tuple(rest), selected, baseline, suffix, Path(root), settings.get("table.rows"))


def _select(spec: Spec, value: str | None, names: list[str]) -> tuple[str, ...]:
    if value is None:
        return tuple(names)
    selected: list[str] = []
    for part in value.strip("[] ").split(","):
        part = part.strip()
        if part in KINDS:
            selected += [row.name for row in spec.rows if row.kind == part]
        elif part in names:
            selected.append(part)
        else:
            raise InputError(f"table.rows={part}: no such row{did_you_mean(part, [*KINDS, *names], most=30)}")
    return tuple(selected)


def _check_axes(spec: Spec, overrides: list[str], rows_chosen: bool, config_dir: str | None) -> None:
    """Refuse an override of a group in which the rows differ: it would make them one row under many names."""
    chosen = [chosen_groups(row.experiment, config_dir) for row in spec.rows if row.experiment]
    groups = {group for row in chosen for group in row} - {"dataset"}  # that is the axis of the columns
    axes = {"experiment"} | {group for group in groups if len({row.get(group) for row in chosen}) > 1}
    axes |= {o.partition("=")[0] for row in spec.rows for o in row.overrides}
    for text in overrides:
        key = text.partition("=")[0]
        if key == "experiment" or (key in axes and not rows_chosen):
            names = ",".join(row.name for row in spec.rows[:2])
            raise InputError(
                f"{text}: the rows of {spec.name} differ in {key}; choose the rows it applies to, "
                f"e.g. table.rows={names}"
            )


def _check_words(spec: Spec, overrides: list[str], config_dir: str | None) -> None:
    """Refuse at once, before all rows are composed, a key whose last word stands in no YAML at all."""
    texts = [p.read_text(errors="replace") for root in conf_dirs(config_dir) for p in sorted(root.rglob("*.yaml"))]
    known = {word for text in texts for word in re.findall(r"([\w@]+):", text)}
    unknown = [t for t in overrides if re.split(r"[.@]", t.partition("=")[0])[-1] not in known]
    if unknown:
        row = next((row for row in spec.rows if row.experiment), None)
        compose(unknown, [f"experiment={row.experiment}"] if row else [], config_dir)


def _suffix(spec: Spec, overrides: list[str]) -> str:
    """Return ``@<dataset>[-<last path part>]`` where the user chose the data set."""
    given = _given(overrides)
    path = given.get("dataset.path", "").strip("'\"")
    own = path not in ("", "null")
    if "dataset" not in given:
        if own:
            named = f"dataset=NAME dataset.path={path}"
            raise InputError(f"dataset.path={path}: {spec.name} has several data sets; say which one it is of: {named}")
        return ""
    return f"@{given['dataset']}" + (f"-{Path(path).name}" if own else "")


def _given(overrides: list[str] | tuple[str, ...]) -> dict[str, str]:
    return {key: value for key, _, value in (text.partition("=") for text in overrides)}


def shown(overrides: Iterable[str]) -> list[str]:
    """Return overrides as they are printed: of a path only its last part, which is what names the file."""
    pairs = [o.partition("=") for o in overrides]
    quotes = "'" + '"'
    return [f"{k}={Path(v.strip(quotes)).name if k.endswith('path') else v}" for k, _, v in pairs]


def columns(wish: Request, config_dir: str | None = None) -> list[Column]:
    """Return the dataset columns: paper's data sets that the scale maps to one stand-in fall together."""
    given = _given(wish.overrides)
    if "dataset" in given:
        typed = given["dataset"]
        return [Column(typed, wish.suffix[1:], (typed,) if typed in wish.spec.datasets else ())]
    found: dict[str, list[str]] = {}
    for dataset in wish.spec.datasets:
        used = compose_cached(wish.overrides, (f"dataset={dataset}",), config_dir, lenient=True, root=wish.root)
        found.setdefault(str(used.choices["dataset"]), []).append(dataset)
    labels = wish.spec.datasets
    return [Column(d, labels.get(d, d), tuple(of)) for d, of in found.items()]


def dataset_cell(column: Column) -> list[str]:
    """Return the dataset override of a column: the paper's name, which the scale may replace."""
    return [f"dataset={column.stands_for[0]}"] if column.stands_for else []


def cells(wish: Request, config_dir: str | None = None) -> list[CellConfig]:
    """Compose the config of each row that has an experiment, on each column.

    Raises:
        InputError: a key that no chosen row has, or an override in the table's YAML that its row lacks.
    """
    found = []
    typed = {key.partition("@")[0] for key in _given(wish.overrides)}
    for column in columns(wish, config_dir):
        for row in wish.spec.rows:
            if row.experiment is None:
                continue
            base = _base(row, column)
            composed = compose_cached(wish.overrides, base, config_dir, lenient=True, root=wish.root)
            for text in row.overrides:
                key = text.partition("=")[0]
                if key in composed.skipped and key.partition(".")[0] not in typed:
                    compose_cached((), base, config_dir, root=wish.root)
            found.append(CellConfig(row, column, composed))
    chosen = [cell for cell in found if cell.row.name in wish.selected]
    everywhere = set.intersection(*(set(cell.composed.skipped) for cell in chosen)) if chosen else set()
    lost = [text for text in wish.overrides if text.partition("=")[0] in everywhere]
    if lost:  # no chosen row has such a key: say so as a run would
        compose_cached(lost, _base(chosen[0].row, chosen[0].column), config_dir, root=wish.root)
    return found


def _base(row: Row, column: Column) -> list[str]:
    return [f"experiment={row.experiment}", *row.overrides, *dataset_cell(column)]


def configs(names: list[str], overrides: list[str], config_dir: str | None = None) -> list[tuple[str, Composed]]:
    """Return (label, config) of every run that the words name: a table's cells, none of ``settings``, or one run."""
    if not names:
        return [("run", compose_cached(overrides, (), config_dir))]
    if len(names) > 1:
        raise InputError(f"one PAPER/ID, got {names}")
    wish = request(names[0], overrides, config_dir)
    if wish.spec.kind == "card":  # needs data alone
        found = columns(wish, config_dir)
        return [(c.label, compose_cached(wish.overrides, [*DATA_ALONE, *dataset_cell(c)], config_dir)) for c in found]
    chosen = [c for c in cells(wish, config_dir) if c.row.name in wish.selected and wish.spec.kind != "settings"]
    return [(f"{c.row.name} on {c.column.label}", c.composed) for c in chosen]


def compose_cached(
    overrides: list[str] | tuple[str, ...],
    cell: list[str] | tuple[str, ...] = (),
    config_dir: str | None = None,
    lenient: bool = False,
    root: Path | str = ".",
    primary: str = "config",
) -> Composed:
    """Compose, or read what was composed before from the same conf/ files and overrides.

    Args:
        overrides: the user's.
        cell: the table cell's.
        config_dir: a conf tree of the user's own.
        lenient: see :func:`graphcontext.config.compose`.
        root: the working folder, which holds ``store/``.
        primary: ``config``, a run; ``train``, a training.
    """
    tree, names = _tree(tuple(_conf_files(config_dir)))
    names = names.union(*(_variables(text) for text in overrides))
    code = [[m.__name__, hash_file(Path(str(m.__file__)))] for m in (config, overriding, trained)]
    environment = {name: os.environ.get(name) for name in sorted(names)}
    key = digest([__version__, tree, code, environment, list(overrides), list(cell), lenient, primary])
    path = Path(root) / "store" / "composed" / f"{key}.json"
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):  # not there, or damaged
        known = json.loads(path.read_bytes())
        if known["sha256"] == digest(known["composed"]):
            return Composed(**known["composed"])
    composed = compose(overrides, cell, config_dir, lenient, primary)
    with contextlib.suppress(RunError):  # a folder that cannot be written to keeps no cache
        content = dataclasses.asdict(composed)
        write_atomic(path, json.dumps({"composed": content, "sha256": digest(content)}))
    return composed


@dataclass(frozen=True)
class _ConfFile:
    """A YAML file with what changes when it does."""

    name: str
    path: Path
    inode: int
    size: int
    changed: int


def _conf_files(config_dir: str | None) -> Iterable[_ConfFile]:
    for root in conf_dirs(config_dir):
        for path in sorted(root.rglob("*.yaml")):
            stat = path.stat()
            yield _ConfFile(str(path.relative_to(root)), path, stat.st_ino, stat.st_size, stat.st_mtime_ns)


@functools.lru_cache(maxsize=8)
def _tree(files: tuple[_ConfFile, ...]) -> tuple[str, frozenset[str]]:
    """Return the hash of config files, and the environment variables that they interpolate; HOME for ~ in a path."""
    names = frozenset({"HOME"}).union(*(_variables(f.path.read_text(encoding="utf-8")) for f in files))
    return digest([[f.name, hash_file(f.path)] for f in files]), names


def _variables(text: str) -> set[str]:
    return set(re.findall(r"oc\.env:\s*(\w+)", text))
