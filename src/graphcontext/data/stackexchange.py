"""A Stack Exchange dump as questions and a pool of answered questions (GraphContextGen, 2401.12671 §3)."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from graphcontext.data import archive, leaks, splits
from graphcontext.data.dump import Dump, read_dump
from graphcontext.data.filters import Filtered, Item, Rules, filter_threads
from graphcontext.data.loaded import Loaded
from graphcontext.data.location import data_path
from graphcontext.data.pool import Kept, load_side
from graphcontext.data.records import Question
from graphcontext.errors import InputError, did_you_mean
from graphcontext.hashes import hash_file

_SITE_NAME = re.compile(r"([\w-]+\.)+(com|net|org)", re.IGNORECASE)  # not a dated folder such as dump.2023


class StackExchange:
    """Read a dump, filter it, cut it in time and keep copies of scored questions out of the pool (§3).

    The pool holds the training side's questions with an accepted answer. A passage is matched on
    "title, newline, body" and shown as question with accepted answer; the accepted answer is the gold answer.

    Args:
        name: the data set's name, its folder below ``GRAPHCONTEXT_DATA``.
        path: the dump's folder, its ``Posts.xml`` (or ``.gz``) or its ``.7z``; None for the default place.
        site: host name for links, which a folder or archive named like a site must have; None takes it from there.
        license: of the whole data set, for the card; each post carries its own.
        limit: number of scored questions, None for all; never touches the pool.
        seed: the only seed that touches which questions are scored.
        split: the rule of the cut: ``years``; ``last_quarter`` in time order, by id without dates; ``auto``, the
            years where both sides keep at least 20 questions, else the last quarter.
        side: the scored side: ``test``; ``validation``, the training side's last tenth; ``train``, in two folds,
            each answered from the other fold's pool. Copies of test questions leave the latter two first, copies of
            validation questions leave ``train``.
        train_years, test_years: first and last year of each side.
        tags: keep only questions with one of these tags, None for all.
        exclude_duplicates, non_specific, non_specific_max_words, min_words_beside_links, min_question_words,
            max_question_words, min_answer_words, max_answer_words: see
            :class:`graphcontext.data.filters.Rules`.
        archive_url: where the archive can be fetched, None when it is not public.
        archive_sha1: its SHA-1, checked where a ``.7z`` is read, its folder named or itself; None is not checked.
        plan: assumed sizes for planning before the data is here.

    Raises:
        InputError: a value is not allowed, or ``path`` is named like another site than ``site``.

    Differs from the paper: its length limits and its patterns of non-specific answers are not published; ours
    are in the YAML. Near-identical questions (equal token sets) never reach the pool either.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset({"path", "plan", "archive_url", "archive_sha1"})
    selection: ClassVar[frozenset[str]] = frozenset({"limit", "seed"})

    def __init__(
        self,
        name: str,
        path: str | None,
        site: str | None,
        license: str,
        limit: int | None,
        seed: int,
        split: str,
        side: str,
        train_years: Sequence[int],
        test_years: Sequence[int],
        tags: Sequence[str] | None,
        exclude_duplicates: bool,
        non_specific: Sequence[str],
        non_specific_max_words: int,
        min_words_beside_links: int,
        min_question_words: int,
        max_question_words: int | None,
        min_answer_words: int,
        max_answer_words: int | None,
        archive_url: str | None,
        archive_sha1: str | None,
        plan: dict[str, Any] | None,
    ) -> None:
        splits.check_split(split, side)
        splits.check_limit(limit)
        for key, years in (("train_years", train_years), ("test_years", test_years)):
            if len(years) != 2 or years[0] > years[1]:
                raise InputError(f"dataset.{key}={list(years)}; allowed: [first, last] year, first <= last")
        if train_years[1] >= test_years[0]:
            raise InputError(
                f"dataset.train_years={list(train_years)} must end before test_years={list(test_years)} begin"
            )
        if path is not None:
            check_site(Path(path), site, name)
        self.name, self.path, self.site, self.license = name, path, site, license
        self.limit, self.seed, self.split, self.side = limit, seed, split, side
        self.train_years, self.test_years = tuple(train_years), tuple(test_years)
        self.tags = None if tags is None else tuple(tags)
        self.rules = Rules(
            exclude_duplicates,
            tuple(non_specific),
            non_specific_max_words,
            min_words_beside_links,
            min_question_words,
            max_question_words,
            min_answer_words,
            max_answer_words,
        )
        self.archive_url, self.archive_sha1, self.plan = archive_url, archive_sha1, plan

    @classmethod
    def identity(cls, config: dict[str, Any]) -> dict[str, str]:
        """Return the hash of the source files and the site in links: the key follows content, not path.

        Raises:
            MissingDataError: the dump is not on this machine.
            InputError: it is a dump of another site.
        """
        path = cls._locate(config["name"], config.get("path"), config.get("archive_url"))
        files = cls._stored(path)
        check_site(files[0], config.get("site"), config["name"])
        hashes = [(cls._role(file), hash_file(file)) for file in files]
        content = hashlib.sha256(json.dumps(hashes).encode()).hexdigest()
        apart = splits.apart_from(config.get("side", "test"))
        return {"content": content, "site": config.get("site") or cls._site_of(path), **apart}

    def select(self, questions: Sequence[Question]) -> tuple[Question, ...]:
        """Return the questions that are scored: ``limit`` of them, drawn by ``seed``, in id order."""
        return splits.select(questions, self.limit, self.seed)

    def load(self, side: str | None = None) -> Loaded:
        """Read one side of the data set: its scored candidates, the pool (two for ``train``) and the card.

        Args:
            side: ``test``, ``validation`` or ``train``; None takes the constructor's.

        Raises:
            MissingDataError: the dump is not on this machine.
            InputError: no dump, a damaged one, one of another site or SHA-1; no scored question or an empty pool
                (with all counts).
        """
        side = side or self.side
        splits.check_side(side)
        path = self._locate(self.name, self.path, self.archive_url)
        site = self.site or self._site_of(path)
        dump, filtered, sides = self._read(path)

        def guard(scored: Sequence[Item], candidates: Sequence[Item]) -> tuple[Sequence[Item], Counter[str]]:
            return leaks.guard(scored, candidates, dump.duplicates, filtered.prints)

        facts = {"name": self.name, "site": site, "license": self.license}
        facts |= {"assumed": dump.assumed} if dump.assumed else {}
        return load_side(Kept(path, facts, dump.counts, filtered, sides, guard), side)

    def _read(self, path: Path) -> tuple[Dump, Filtered, splits.Sides[Item]]:
        """Read what the rule of the cut needs: the paper's years, or all and cut in time order."""
        source = self._stored(path)[0]
        check_site(source, self.site, self.name)
        if self.archive_sha1 and source.suffix.lower() in (".7z", ".csv"):
            archive.check_sha1(source, self.archive_sha1)
        by_time = self.split == "last_quarter"
        spans = (self.train_years, self.test_years)
        years = frozenset(year for first, last in spans for year in range(first, last + 1))
        dump = self._dump(path, None if by_time else years)
        self._check_tags(dump)
        filtered = filter_threads(dump, self.rules)
        if by_time:
            return dump, filtered, splits.last_quarter(filtered.items, "dataset.split=last_quarter")
        least = splits.LEAST if self.split == "auto" else 0
        sides = splits.by_years(filtered.items, *spans, least)
        if sides is None:
            n_test = sum(int(item.date[:4]) >= self.test_years[0] for item in filtered.items)
            n_train = len(filtered.items) - n_test
            needed = f"{splits.LEAST} are needed on each side"
            why = f"the paper's years keep {n_train} and {n_test} questions, {needed}"
            dump = self._dump(path, None)
            filtered = filter_threads(dump, self.rules)
            why = why if any(item.date for item in filtered.items) else "no dates"
            sides = splits.last_quarter(filtered.items, why)
        return dump, filtered, sides

    @classmethod
    def _locate(cls, name: str, path: str | None, url: str | None) -> Path:
        stem = url.rsplit("/", 1)[-1] if url else ""
        site = stem.removesuffix(".7z")
        others = (stem, site, f"stackexchange/{site}", f"stackexchange/{stem}") if stem else ()
        return data_path(name, path, others, url)

    @classmethod
    def _site_of(cls, path: Path) -> str:
        return site_of(path)

    @classmethod
    def _role(cls, file: Path) -> str:
        return ".7z" if file.suffix.lower() == ".7z" else file.name.lower()

    @classmethod
    def _stored(cls, path: Path) -> list[Path]:
        return archive.source_files(path)

    def _dump(self, path: Path, years: frozenset[int] | None) -> Dump:
        files = archive.dump_files(path)
        try:
            return read_dump(files, years, None if self.tags is None else frozenset(self.tags))
        except InputError:
            archive.discard(path)
            raise

    def _check_tags(self, dump: Dump) -> None:
        for tag in self.tags or ():
            if dump.tag_names and tag not in dump.tag_names:
                raise InputError(f"dataset.tags names {tag}{did_you_mean(tag, dump.tag_names)}")


def site_of(path: Path) -> str:
    """Return the site that a folder's or archive's name is (``askubuntu.com``), empty where it is none."""
    is_part = path.name.lower().startswith("posts.xml") or path.suffix.lower() == ".csv"
    name = path.parent.name if is_part else path.name
    name = name[:-3] if name.lower().endswith(".7z") else name
    return name if "." in name.strip(".") else ""


def check_site(path: Path, site: str | None, name: str) -> None:
    """Compare the site that a folder's or archive's name is with the data set's own; other names say nothing.

    Raises:
        InputError: a dump of another site, which would fill this data set's column of a table.
    """
    named = site_of(path)
    if site and _SITE_NAME.fullmatch(named) and named.lower() != site.lower():
        raise InputError(
            f"{path} is a dump of {named}, but dataset={name} is of {site}; read it as dataset=stackexchange"
        )
