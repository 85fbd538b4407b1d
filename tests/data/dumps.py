"""Tiny dumps, written as the real ones are: one row a line, bodies as escaped HTML."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import quoteattr

import yaml

from graphcontext.data.stackexchange import StackExchange

CONF = Path(__file__).parents[2] / "conf" / "dataset"


def row(**attributes: object) -> str:
    return "  <row " + " ".join(f"{key}={quoteattr(str(value))}" for key, value in attributes.items()) + " />\n"


def question(number: int, title: str, accepted: int | None = None, **more: object) -> str:
    values = {"Id": number, "PostTypeId": 1, "CreationDate": "2019-05-01T10:00:00.000", "Score": 1}
    values |= {"Body": f"<p>How is it done on a server? I tried all I know about {title}.</p>"}
    values |= {"OwnerUserId": 7, "Title": title, "Tags": "|linux|"} | more
    if accepted is not None:
        values["AcceptedAnswerId"] = accepted
    return row(**values)


def answer(number: int, parent: int, body: str | None = None, **more: object) -> str:
    body = body or f"<p>Answer {number}: edit the file, then reload the service and look at its log.</p>"
    values = {"Id": number, "PostTypeId": 2, "ParentId": parent, "Score": 2, "Body": body, "OwnerUserId": 8}
    return row(**values | more)


def thread(number: int, title: str, date: str, **more: object) -> str:
    """A question with one accepted answer, whose id is the next number."""
    asked = question(number, title, number + 1, CreationDate=f"{date}T10:00:00.000", **more)
    return asked + answer(number + 1, number)


def link(duplicate: int, original: int, kind: int = 3) -> str:
    return row(Id=1, PostId=duplicate, RelatedPostId=original, LinkTypeId=kind)


def xml(root: str, rows: str) -> str:
    return f'\ufeff<?xml version="1.0" encoding="utf-8"?>\n<{root}>\n{rows}</{root}>\n'


def write(folder: Path, posts: str, links: str | None = None, tags: str | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Posts.xml").write_text(xml("posts", posts), encoding="utf-8")
    if links is not None:
        (folder / "PostLinks.xml").write_text(xml("postlinks", links), encoding="utf-8")
    if tags is not None:
        (folder / "Tags.xml").write_text(xml("tags", tags), encoding="utf-8")
    return folder


def config(name: str = "stackexchange", **overrides: object) -> dict:
    """The YAML's arguments with what the root config interpolates."""
    values = yaml.safe_load((CONF / "stackexchange.yaml").read_text(encoding="utf-8"))
    values |= yaml.safe_load((CONF / f"{name}.yaml").read_text(encoding="utf-8"))  # as its defaults list does
    values.pop("defaults", None)
    values.pop("_target_")
    return values | {"limit": None, "side": "test"} | overrides


def dataset(path: Path | str | None = None, name: str = "stackexchange", **overrides: object) -> StackExchange:
    if path is not None:
        overrides["path"] = str(path)
    return StackExchange(**config(name, **overrides))
