"""What stands under a table: substitutions, overrides, counts, fall-backs, signatures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from graphcontext import test_use
from graphcontext.component import has_answers, used
from graphcontext.run_facts import describe
from graphcontext.table import expand
from graphcontext.table.lines import Line, Lines
from graphcontext.table.spec import Spec
from graphcontext.table.substitutions import relevant, substitutions

LOST = (
    "questions: answered where the answer shares content words with the gold one (Dice, metric answered); gold "
    "passages likewise, where the data set names none. Of a question that is not answered, the first stage that lost "
    "its gold passages counts; without any in the corpus nothing can be said of the later stages."
)


def footnotes(lines: Lines) -> list[str]:
    """Return what must be read with the numbers."""
    spec, ran = lines.wish.spec, lines.ran
    notes = _dataset_notes(spec, ran)
    notes += substitutions([(line.cell.row.name, line.stand_in) for line in ran])
    for group, theirs in spec.paper_choices.items():
        if any(relevant(line.cell.composed.config, group) for line in ran):
            notes.append(f"{group}: the paper's is {theirs}, ours another")
    others = [o for o in lines.wish.overrides if not o.startswith("scale=")]  # the scale stands above
    if others:
        notes.append(f"overrides: {' '.join(expand.shown(others))}")
    notes += _common(ran, len({line.cell.column for line in ran}) > 1)
    tested = test_use.sentence(lines.root, (line.keys.corpus for line in ran if line.keys is not None))
    notes += [tested] if tested else []
    if any("lost" in line.run.metrics["facts"] for line in ran):  # type: ignore[union-attr]
        notes.append(LOST)
    notes += _servers(ran)
    signatures = {
        metric["signature"]
        for line in ran
        for name, metric in line.run.metrics["metrics"].items()  # type: ignore[union-attr]
        if name in spec.metrics
    }
    notes += [f"metric: {signature.replace('|', ', ')}" for signature in sorted(signatures)]
    return [*notes, *spec.notes]


def _common(ran: list[Line], several: bool) -> list[str]:
    """Return what each run says of itself, once, with the rows that say it where they are not all."""
    said: dict[str, dict[str, list[str]]] = {}  # text → data set → rows
    for line in ran:
        for text in _of(line):
            said.setdefault(text, {}).setdefault(line.cell.column.label, []).append(line.name)
    size = Counter(line.cell.column.label for line in ran)

    def where(rows: dict[str, list[str]]) -> str:
        if not several:
            return ", ".join(*rows.values())
        named = (("all" if len(r) == size[c] else ", ".join(r), c) for c, r in rows.items())
        return "; ".join(f"{names} on {column}" for names, column in named)

    return [
        f"{text}: {where(rows)}" if sum(map(len, rows.values())) < len(ran) else text for text, rows in said.items()
    ]


def _of(line: Line) -> Iterable[str]:
    done = line.run.metrics  # type: ignore[union-attr]
    words = {"failed": "failed", "empty": "empty", "truncated": "cut at max_new_tokens"}
    if not has_answers(line.cell.composed.config):
        del words["empty"]
    counts = [f"{done['n_' + k]} {word}" for k, word in words.items() if done["n_" + k]]
    yield f"n={done['n']}" + (f" ({', '.join(counts)})" if counts else "")
    yield from describe(done["facts"], done["n"])


def _servers(ran: list[Line]) -> list[str]:
    """Say which rows were answered by which version of a server, where they are not the same."""
    said: dict[str, dict[str, list[str]]] = {}
    for line in ran:
        kinds = {node.get("serve") for node in used(line.cell.composed.config)} - {None}
        known = line.run.manifest.get("servers", {}) if kinds else {}  # type: ignore[union-attr]
        for kind in sorted(kinds & set(known)):
            said.setdefault(kind, {}).setdefault(known[kind], []).append(line.cell.row.name)
    return [
        f"llm.serve={kind}: " + "; ".join(f"version {v} for {', '.join(dict.fromkeys(rows))}" for v, rows in by.items())
        for kind, by in said.items()
        if len(by) > 1
    ]


def _dataset_notes(spec: Spec, lines: list[Line]) -> list[str]:
    """Say for which of the paper's data sets another stands in."""
    columns = list(dict.fromkeys(line.cell.column for line in lines))
    found = {c: [spec.datasets[d] for d in c.stands_for if d != c.dataset] for c in columns}
    notes = [f"dataset: {c.dataset} stands in for {', '.join(labels)}" for c, labels in found.items() if labels]
    own = [c.label for c in columns if not c.stands_for]
    return notes + [f"dataset: {label}, chosen by you: no numbers of the paper stand beside it" for label in own]
