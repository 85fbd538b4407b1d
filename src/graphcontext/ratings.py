"""``ratings``: answers out to human raters, blinded, and their labels back into a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphcontext.component import check_type
from graphcontext.data import doccano
from graphcontext.errors import InputError, did_you_mean
from graphcontext.table import expand
from graphcontext.table.compute import compute
from graphcontext.table.lines import declare
from graphcontext.table.study import Study, export, folder_of, keep, read_study

EXPORT_KEYS = {"n": "int", "seed": "int", "gold": "bool"}
IMPORT_KEYS = {"partial": "bool", "replace": "bool", "identical": "bool"}


def export_ratings(
    name: str, overrides: Sequence[str], config_dir: str | None, root: Path, quiet: bool
) -> tuple[Study, list[Path]]:
    """Run what the table lacks and write its answers for raters; returns the study and the raters' files.

    Args:
        name: a table of kind ``ratings``, such as ``gcg/fig3``.
        overrides: as of ``table``; ``ratings.n=``, ``ratings.seed=`` and ``ratings.gold=`` of the study.
        config_dir: a conf tree of the user's own.
        root: the working folder.
        quiet: no progress.

    Raises:
        InputError: another kind of table, a wrong key, or another study was exported there.
        RunError: no answers to rate.
    """
    settings, rest = _settings(overrides, EXPORT_KEYS)
    wish = _request(name, rest, config_dir, root)
    view = {**wish.spec.viewed(), **settings}
    for key, kind in {**EXPORT_KEYS, "levels": "int"}.items():
        check_type(f"ratings.{key}", view[key], kind)
    for key, least in (("n", 1), ("levels", 2)):
        if view[key] < least:
            raise InputError(f"ratings.{key}={view[key]}; allowed: a whole number from {least}")
    return export(compute(wish, config_dir, root, quiet), view)


def import_ratings(
    name: str, files: Sequence[str], overrides: Sequence[str], config_dir: str | None, root: Path
) -> tuple[Study, list[str]]:
    """Check and store what raters said; returns the study and what to tell the user. Nothing is stored on a fault.

    Args:
        name: the table that was exported.
        files: Doccano's exports, JSONL or the ``.zip`` of them.
        overrides: those of the export; ``ratings.partial=true`` takes raters who left items without a label,
            ``ratings.replace=true`` drops what was imported before, ``ratings.identical=true`` takes raters who gave
            the same labels throughout.
        config_dir: a conf tree of the user's own.
        root: the working folder.

    Raises:
        InputError: nothing was exported, no files, or faults in them.
    """
    settings, rest = _settings(overrides, IMPORT_KEYS)
    settings = {**dict.fromkeys(IMPORT_KEYS, False), **settings}
    for key, kind in IMPORT_KEYS.items():
        check_type(f"ratings.{key}", settings[key], kind)
    folder = folder_of(declare(_request(name, rest, config_dir, root), config_dir, root))
    study = read_study(folder)
    if study is None:
        command = " ".join(["graphcontext ratings export", name, *expand.shown(rest)])
        raise InputError(f"{folder}: nothing was exported there; first: {command}")
    if not files:
        raise InputError("ratings import needs FILE …: what Doccano exported")
    allowed = {item.item: study.labels[item.kind] for item in study.items}
    whole = [] if settings["partial"] else study.groups()
    try:
        found = doccano.read([Path(f).expanduser() for f in files], allowed, whole, study.texts())
    except InputError as error:
        hint = "; ratings.partial=true takes raters who left items out" if " have no label" in str(error) else ""
        raise InputError(f"{error}{hint}") from error
    replaced = keep(study, found, settings["replace"], settings["identical"])
    counted = Counter(judgement.rater for judgement in found.judgements)
    said = [f"{rater}: {n} labels" for rater, n in sorted(counted.items())]
    said += [f"{rater}: no labels, left out" for rater in found.silent]
    said += [f"{replaced} labels took the place of earlier ones"] if replaced else []
    return study, said


def _request(name: str, overrides: list[str], config_dir: str | None, root: Path) -> expand.Request:
    wish = expand.request(name, overrides, config_dir, root)
    if wish.spec.kind != "ratings":
        raise InputError(f"{name} is a table of kind {wish.spec.kind}; ratings are of tables of kind ratings")
    return wish


def _settings(overrides: Sequence[str], allowed: dict[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Split ``ratings.*`` keys from the overrides."""
    import yaml

    settings: dict[str, Any] = {}
    rest = []
    for text in overrides:
        key, _, value = text.partition("=")
        if not key.startswith("ratings."):
            rest.append(text)
            continue
        name = key.removeprefix("ratings.")
        if name not in allowed:
            raise InputError(f"{text}: no such key{did_you_mean(key, [f'ratings.{k}' for k in allowed])}")
        try:
            settings[name] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise InputError(f"{text} does not parse") from error
    return settings, rest
