"""What happened to each item of a run: its question, ranking, context, prompts, answer and scores, as texts."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphcontext.data.records import Context, Passage, Prediction, Question, Ranking, from_json
from graphcontext.files import read_lines
from graphcontext.path import lines
from graphcontext.retrieve.agents.state import call_id
from graphcontext.run_folder import Run

SMALL = 1 << 26  # bytes of a corpus that is read to name passages


@dataclass(frozen=True)
class Trace:
    """A run's files, each read once and keyed by item."""

    run: Run
    questions: dict[str, Question]
    rankings: dict[str, Ranking]
    contexts: dict[str, Context]
    predictions: dict[str, Prediction]
    scores: dict[str, dict[str, float]]
    calls: dict[str, list[dict[str, Any]]]


def read(run: Run) -> Trace:
    """Read a run's files; of a call that failed and was asked again, the last attempt."""
    rows = run.lines("calls.jsonl")
    last = {(row["role"], row["item"], row["fingerprint"]): row for row in rows}
    calls: dict[str, list[dict[str, Any]]] = {}
    for row in last.values():
        calls.setdefault(str(row["item"]), []).append(row)
    files = (run.questions(), run.rankings(), run.contexts(), run.predictions())
    return Trace(run, *({record.id: record for record in records} for records in files), run.scores(), calls)


def title(question: Question) -> str:
    """Return what a question is called, on one line."""
    return " ".join((question.title or question.text).split())


def titles(contexts: Iterable[Context]) -> dict[str, str]:
    """Return passage → its first line, of every passage that stands in a context."""
    units = (unit for context in contexts for unit in context.units if unit.triple is None)
    return {u.source: u.text.removeprefix("Question: ").strip().partition("\n")[0] for u in units}


def retrieved(ranking: Ranking, named: Mapping[str, str], unnamed: str = "passage {}") -> list[dict[str, Any]]:
    """Return id, score and title of each hit; a passage that no context shows has its id for a title."""
    hits = ranking.passages
    return [{"id": hit.id, "score": hit.score, "title": named.get(hit.id, unnamed.format(hit.id))} for hit in hits]


def parts(trace: Trace, item: str) -> list[tuple[str, str]]:
    """Return (heading, text) of ranking, context, prompts and answer."""
    ranking, context, prediction = trace.rankings[item], trace.contexts[item], trace.predictions[item]
    shown = {unit.source: unit.text.strip().partition("\n")[0][:80] for unit in reversed(context.units)}
    scores = {hit.id: "" if ranking.steps else f"{hit.score:.5f}  " for hit in ranking.passages}  # of a path: 1 / rank
    known = passages(trace, item)
    about = {hit.id: shown.get(hit.id) or _line_of(known.get(hit.id)) for hit in ranking.passages}
    place = {name: _place(passage) for name, passage in known.items()}
    hits = [
        f"{n}. {scores[hit.id]}{hit.id}  {about[hit.id]}{place.get(hit.id, '')}".rstrip()
        for n, hit in _numbered(ranking)
    ]
    if ranking.fallback:
        hits.append(f"fall-back: {ranking.fallback}")
    units = "\n\n".join(f"[{source}]\n" + "\n".join(u.text for u in group) for source, group in _by_source(context))
    facts = (f"{prediction.n_tokens} tokens" if prediction.n_tokens else "", prediction.finish or "")
    said = ", ".join([_status(prediction), *filter(None, facts)])
    asked = trace.questions[item]
    way = lines(ranking, known, asked.supports, asked.text)
    return [
        (f"ranking{_reason(ranking)}", "\n".join(hits) or "(none)"),
        *([("path", "\n".join(way))] if way else []),
        *_agent_prompt(trace, item),
        (f"context ({context.n_tokens} tokens, {context.n_cut} units cut){_reason(context)}", units or "(none)"),
        *((f"prompt ({call['role']})", messages(call)) for call in trace.calls.get(item, [])),
        (f"answer ({said})", prediction.prediction or "(none)"),
    ]


def _agent_prompt(trace: Trace, item: str) -> list[tuple[str, str]]:
    """Return the first prompt of an agent, under a heading that says how many there were."""
    steps = trace.rankings[item].steps or ()
    asked = [call for step in steps if step.path for call in trace.calls.get(call_id(item, step.path), [])]
    return [(f"prompt (agent, 1 of {len(asked)})", messages(asked[0]))] if asked else []


def _line_of(passage: Passage | None) -> str:
    """Return the first line of a passage that no context shows."""
    return passage.context_text.strip().partition("\n")[0][:80] if passage else ""


def _place(passage: Passage) -> str:
    """Return where a passage of a user's own document stands, empty for others."""
    page = f", page {passage.source.page}" if passage.source.page is not None else ""
    return f"  ({passage.source.document}{page})" if passage.source.document else ""


def passages(trace: Trace, item: str) -> dict[str, Passage]:
    """Return an item's passages and those on the way to them, from the store beside the run, else from its context.

    A large corpus is read for the way alone.
    """
    ranking = trace.rankings[item]
    wanted = {passage for step in ranking.steps or () for passage in (*step.path, *step.chosen)}
    key, store = trace.run.manifest["stages"]["corpus"]["key"], trace.run.path.parent.parent / "store"
    path = store / "corpus" / key / f"corpus-{trace.questions[item].corpus_id}.jsonl"
    if path.is_file() and path.stat().st_size <= SMALL:
        wanted |= {hit.id for hit in ranking.passages}
    if not wanted:
        return {}
    rows = _corpus(path)
    found = {passage: from_json(Passage, rows[passage]) for passage in sorted(wanted & rows.keys())}
    for unit in trace.contexts[item].units:
        if unit.source in wanted:
            found.setdefault(unit.source, Passage(unit.source, "", unit.text, unit.text))
    return found


@functools.lru_cache(maxsize=1)
def _corpus(path: Path) -> dict[str, dict[str, Any]]:
    """Return the rows of a corpus by passage, none where the file is not there."""
    return {row["id"]: row for row in read_lines(path)}


def _by_source(context: Context) -> Any:
    """Return (source, units) of neighbouring units with one source: an extractor's sentences are one block."""
    return itertools.groupby(context.units, key=lambda unit: unit.source)


def _numbered(ranking: Ranking) -> Any:
    return enumerate(ranking.passages, 1)


def _status(record: Any) -> str:
    return record.status + (f": {record.reason}" if record.reason else "")


def _reason(record: Any) -> str:
    return f" — {_status(record)}" if record.reason or record.status == "failed" else ""


def messages(call: dict[str, Any]) -> str:
    """Return the messages of a call, each behind its role."""
    return "\n".join(f"<{m['role']}> {m['content']}" for m in call.get("messages", []))
