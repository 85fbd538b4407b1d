"""A CSV that data.stackexchange.com exports: one row is a question with an answer (GraphContextGen, 2401.12671 §3)."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from graphcontext.data.dump import Dump
from graphcontext.data.location import data_path
from graphcontext.data.question_table import read_table
from graphcontext.data.stackexchange import StackExchange, site_of
from graphcontext.errors import InputError

FOLDER, SITE = "stackoverflow_cli", "stackoverflow.com"  # the default place, and the site it is of


class StackExchangeCSV(StackExchange):
    """Read a Data Explorer CSV of questions with their accepted answers, then filter, cut and guard it as a dump (§3).

    Needed columns, in any order and case: QuestionId, QuestionTitle, QuestionBody, AnswerId, AnswerBody. Read where
    they are there: Tags, CreationDate, OwnerDisplayName, ContentLicense, AnswerOwnerDisplayName, AnswerScore (or
    Score), and AcceptedAnswerId, which says which of several rows of a question holds the accepted answer; where it is
    blank, none is, and the question is left out as in a dump. Without that column each answer is taken for accepted,
    and the card says so. Other columns are ignored. Without CreationDate the data set is cut by id.

    Args:
        path: the CSV, or a folder with one CSV; None for ``stackoverflow_cli`` below ``GRAPHCONTEXT_DATA``.
        site: host name for links; None takes it from the folder's name, where that is one.
        archive_sha1: SHA-1 of the CSV, None is not checked.

    The other arguments are those of :class:`graphcontext.data.stackexchange.StackExchange`.
    """

    version: ClassVar[int] = 1

    @classmethod
    def _site_of(cls, path: Path) -> str:
        folder = path.parent if path.is_file() else path
        return SITE if folder.name == FOLDER else site_of(path)

    @classmethod
    def _locate(cls, name: str, path: str | None, url: str | None) -> Path:
        return data_path(name, path, (FOLDER,), url)

    @classmethod
    def _role(cls, file: Path) -> str:
        return "queryresults.csv"  # as data.stackexchange.com names it, whatever it is called now

    @classmethod
    def _stored(cls, path: Path) -> list[Path]:
        if path.is_file():
            return [path]
        found = sorted(file for file in path.iterdir() if file.suffix.lower() == ".csv" and file.is_file())
        if len(found) != 1:
            listed = ", ".join(file.name for file in found[:8]) or "none"
            raise InputError(f"{path}: expected one CSV in this folder, found {listed}; name the file by dataset.path")
        return found

    def _dump(self, path: Path, years: frozenset[int] | None) -> Dump:
        return read_table(self._stored(path)[0], years, None if self.tags is None else frozenset(self.tags))
