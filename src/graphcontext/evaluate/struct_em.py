"""Struct-EM: whether a question on a document's structure is led to the pages and tables that it asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from graphcontext.data.records import Context, Corpus, Prediction, Question, Ranking
from graphcontext.errors import InputError


class StructEM:
    r"""Exact match of the retrieved with the asked structure nodes (KGP Table 1, "Struct-EM" on PDFTriage).

    With T(q) those supports of a question that are pages or tables, and R(q) the first |T(q)| pages and tables of its
    ranking (other passages between them do not count):

    .. math:: \text{struct\_em}(q) = [R(q) = T(q)] \quad \text{as sets}

    Emits ``struct_em`` over all questions, 0 for one that asks for no page or table, and ``struct_em_asked`` over
    those that do. A failed or empty ranking scores 0. Needs no answers: ``generator=none`` scores it.

    Differs from the paper: PDFTriage is not to be had, and how it counts what is retrieved beyond the asked nodes is
    not said. Here nodes after the asked ones are allowed: the texts and tables of a page follow it.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    needs_answers: ClassVar[bool] = False
    needs_supports: ClassVar[bool] = True
    needs_corpora: ClassVar[bool] = True
    columns: ClassVar[dict[str, str]] = {"struct_em_asked": "questions whose supports are pages or tables"}
    signature: ClassVar[str] = "struct_em|first pages and tables|supports, as a set"

    def score(
        self,
        questions: Sequence[Question],
        predictions: Sequence[Prediction],
        rankings: Sequence[Ranking],
        contexts: Sequence[Context],
        corpora: dict[str, Corpus],
    ) -> list[dict[str, float | None]]:
        """Compare each ranking with what its question asks for.

        Raises:
            InputError: the rankings are not those of the questions.
        """
        if [q.id for q in questions] != [r.id for r in rankings]:
            got = f"{len(rankings)} rankings that are not of these {len(questions)} questions"
            raise InputError(f"metric struct_em: {got}")
        asked = {question.corpus_id for question in questions}
        nodes = {c: {p.id for p in corpora[c].passages if p.kind in ("page", "table")} for c in asked}
        rows: list[dict[str, float | None]] = []
        for question, ranking in zip(questions, rankings, strict=True):
            known = nodes[question.corpus_id]
            wanted = known.intersection(question.supports)
            found = [hit.id for hit in ranking.passages if hit.id in known][: len(wanted)]
            value = float(bool(wanted) and set(found) == wanted)
            rows.append({"struct_em": value, "struct_em_asked": value if wanted else None})
        return rows
