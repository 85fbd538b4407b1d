"""Tables of kind ``retrieved``: what two rows retrieve for the same questions, side by side (gcg/t6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

from graphcontext import trace
from graphcontext.data.card import escaped
from graphcontext.data.records import Ranking
from graphcontext.errors import InputError, did_you_mean
from graphcontext.table import page
from graphcontext.table.cells import Made
from graphcontext.table.compute import compute
from graphcontext.table.expand import Column, Request
from graphcontext.table.lines import Lines
from graphcontext.table.render import markdown_table

VIEW = {"row": ..., "against": ..., "n": 3}


def make(wish: Request, config_dir: str | None, root: Path, quiet: bool) -> Made:
    """Compute the rows; show the ``view.n`` questions for which ``row`` and ``against`` retrieve least alike.

    The rule picks, not a person: fewest passages in both rankings first, ties by id. A question for which ``row``
    fell back is left out: its ranking is not the row's own. How many questions share how many passages stands
    above the examples, which are no sample of all.
    """
    view = wish.spec.viewed()
    _check(wish, view)
    lines = compute(wish, config_dir, root, quiet)
    rule = f"the {view['n']} questions for which {view['row']} and {view['against']} share fewest passages, ties by id"
    parts = [f"Chosen by rule: {rule}. A passage in both rankings is set **bold**."]
    found = [compare(lines, column, view) for column in lines.columns]
    for column, compared in zip(lines.columns, found):
        parts += [f"## {escaped(column.label)}", *(_text(lines, view, compared) if compared else ["(nothing to show)"])]
    return page.write(lines, parts, {"rule": rule, "columns": [compared for compared in found if compared]})


def compare(lines: Lines, column: Column, view: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what two rows retrieve on one data set, JSON types; None where one of them did not run."""
    pair = [lines.of(view[key], column) for key in ("row", "against")]
    if not all(line is not None and line.ran for line in pair):
        return None
    ours, theirs = (trace.read(line.run) for line in pair)  # type: ignore[union-attr,arg-type]
    titles = trace.titles([*theirs.contexts.values(), *ours.contexts.values()])
    shared = shares(ours.rankings, theirs.rankings)
    examples = []
    for item in sorted(shared, key=lambda i: (shared[i], i))[: view["n"]]:
        asked = ours.questions[item]
        about = {"item": item, "title": trace.title(asked), "link": asked.source.link, "shared": shared[item]}
        source = {"author": asked.source.author, "license": asked.source.license}
        hits = [trace.retrieved(t.rankings[item], titles) for t in (ours, theirs)]
        examples.append(about | source | {"row": hits[0], "against": hits[1]})
    return {
        "column": column.dataset,
        "n": len(ours.rankings),
        "fallen_back": len(ours.rankings) - len(shared),
        "shared": {str(count): n for count, n in sorted(Counter(shared.values()).items())},
        "examples": examples,
    }


def shares(ours: Mapping[str, Ranking], theirs: Mapping[str, Ranking]) -> dict[str, int]:
    """Return question → number of passages in both rankings, for those in which ``ours`` did not fall back."""
    ids = {item: {hit.id for hit in ranking.passages} for item, ranking in theirs.items()}
    kept = {item: ranking for item, ranking in ours.items() if item in ids and not ranking.fallback}
    return {item: len({hit.id for hit in ranking.passages} & ids[item]) for item, ranking in kept.items()}


def _text(lines: Lines, view: Mapping[str, Any], compared: dict[str, Any]) -> list[str]:
    labels = {row.name: escaped(row.label) for row in lines.wish.spec.rows}
    left, right = labels[view["row"]], labels[view["against"]]
    counts = ", ".join(f"{count} in {n} questions" for count, n in compared["shared"].items())
    fallen = f"; {left} fell back in {compared['fallen_back']}" if compared["fallen_back"] else ""
    parts = [f"n={compared['n']}. Passages in both rankings: {counts or 'none compared'}{fallen}."]
    for example in compared["examples"]:
        ours, theirs = example["row"], example["against"]
        both = {hit["id"] for hit in ours} & {hit["id"] for hit in theirs}
        rows = [
            [str(rank), *_cell(one, both), *_cell(other, both)]
            for rank, (one, other) in enumerate(zip_longest(ours, theirs), 1)
        ]
        about = " · ".join(escaped(str(example[k])) for k in ("item", "link", "author", "license") if example[k])
        heads = ["rank", left, "score", right, "score"]
        parts += [f"### {escaped(example['title'])}", about, markdown_table(heads, rows, n_left=len(heads))]
    return parts


def _cell(hit: dict[str, Any] | None, both: set[str]) -> list[str]:
    if hit is None:
        return ["", ""]
    title = escaped(hit["title"])
    return [f"**{title}**" if hit["id"] in both else title, f"{hit['score']:.4f}"]


def _check(wish: Request, view: Mapping[str, Any]) -> None:
    names = [row.name for row in wish.spec.rows]
    for key in ("row", "against"):
        if view[key] not in names:
            raise InputError(f"table {wish.spec.name}: view.{key}={view[key]}{did_you_mean(str(view[key]), names)}")
