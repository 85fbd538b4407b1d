"""``ask``: one question of the user's own, through the same stages as a run."""

from __future__ import annotations

import html
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphcontext.data.records import Context, Passage, Prediction, Ranking
from graphcontext.errors import InputError
from graphcontext.path import lines as path_lines
from graphcontext.path_svg import figure
from graphcontext.pipeline import Pipeline
from graphcontext.prepare import check_ready
from graphcontext.retrieve.structured import NOT_FOUND
from graphcontext.store import Store, Workspace


@dataclass(frozen=True)
class Asked:
    """An answer with what it was made from."""

    prediction: Prediction
    context: Context
    ranking: Ranking
    passages: dict[str, Passage]

    def text(self) -> str:
        """Render the answer, then its sources with scores and links, then what else was shown to the model."""
        answer = self.prediction.prediction.strip() or f"(no answer: {self.prediction.reason or 'empty'})"
        lines = [answer]
        if self.ranking.fallback == NOT_FOUND:
            lines += [
                "",
                "no document has such a page or table; the question was answered from the text of all of them",
            ]
        lines += ["", "Sources"]
        shown = {unit.source for unit in self.context.units}
        texts = [unit.text for unit in self.context.units]
        n_unread = 0
        for number, hit in enumerate(self.ranking.passages, 1):
            passage = self.passages[hit.id]
            about = passage.source
            score = "" if self.ranking.steps else f"  (score {hit.score:.4f})"  # of a path it is a rank said again
            is_read = hit.id in shown or any(passage.context_text in text for text in texts)
            n_unread += not is_read
            lines.append(f"  [{number}] {passage.title}{score}{'' if is_read else '  (not shown to the model)'}")
            page = f"page {about.page}" if about.page is not None else ""
            said = [about.link, page, f"by {about.author}" if about.author else "", about.license]
            lines.append(f"      {', '.join(word for word in said if word) or 'source unknown'}")
        if not self.ranking.passages:
            lines.append("  none: nothing similar in the pool")
        if self.ranking.fallback and self.ranking.fallback != NOT_FOUND:
            why = " (the question has no neighbour in the graph)" if self.ranking.fallback == "cosine" else ""
            lines.append(f"  ranked by fall-back: {self.ranking.fallback}{why}")
        way = path_lines(self.ranking, self.passages, question=self.prediction.question)
        lines += ["", "Path", *(f"  {line}" for line in way)] if way else []
        extra = [u for u in self.context.units if u.source not in self.passages]
        for source, units in itertools.groupby(extra, key=lambda unit: unit.source):
            lines += ["", f"Facts added to the context, by {source}"]
            lines += [f"  {line}" for unit in units for line in unit.text.splitlines()]
        if self.prediction.finish == "length":
            lines += ["", f"the answer was cut at {self.prediction.n_tokens} tokens (generator.max_new_tokens)"]
        lines += ["", f"context: {self.context.n_tokens} tokens, {self.context.n_cut} units cut to fit the budget"]
        if n_unread:
            lines[-1] += f"; {n_unread} of {len(self.ranking.passages)} sources were not shown to the model"
        return "\n".join(lines)

    def html(self) -> str:
        """Render the same as a page, with the path drawn."""
        from graphcontext.show import STYLE

        asked = html.escape(self.prediction.question)
        drawn = figure(self.prediction.question, self.ranking, self.passages)
        return (
            "<!doctype html>\n<html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
            f"<title>graphcontext: {asked}</title>\n<style>{STYLE}</style>\n<h1>{asked}</h1>\n"
            f"<pre>{html.escape(self.text())}</pre>\n{drawn}\n</html>\n"
        )


def ask(question: str, config: dict[str, Any], root: str | Path = ".", quiet: bool = True) -> Asked:
    """Answer one question.

    Args:
        question: the text; must not be blank.
        config: a resolved config.
        root: the working folder, which holds ``store/``.
        quiet: no progress bars.

    Raises:
        InputError: a blank question, or a data set with more than one pool.
    """
    if not question.strip():
        raise InputError("the question is blank")
    check_ready({**config, "metric": {}}, root)  # nothing is scored
    pipeline = Pipeline(config, Workspace(Store(Path(root) / "store"), quiet=quiet), question.strip())
    data = pipeline.data()
    rankings = pipeline.rankings(data, pipeline.graphs(data))
    contexts = pipeline.contexts(data, rankings)
    predictions = pipeline.predictions(data, contexts)
    passages = {p.id: p for corpus in data.corpora.values() for p in corpus.passages}
    return Asked(predictions[0], contexts[0], rankings[0], passages)
