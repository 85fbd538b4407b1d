"""The entity graph of KGP, named TAGME there (§2.2 and the official code)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from graphcontext.data.records import Corpus, Graph
from graphcontext.enhance.surface_form import normalise
from graphcontext.errors import InputError
from graphcontext.graph.incidence import graph_of_shared

Key = str | tuple[str]  # an entity, or (document,)


class EntityLinks:
    r"""Joins every two passages that mention a common entity or are of one document (KGP §2.2).

    .. math:: E = \{\{i, j\} : \mathrm{ent}_\tau(i) \cap \mathrm{ent}_\tau(j) \neq \emptyset\}, \quad
        \mathrm{ent}_\tau(i) = \{e : \mathrm{prior}(e | \text{mention in } i) > \tau\} \cup \{\mathrm{title}(i)\}

    The passages of one document form a clique by its title, and a passage that names the title joins it.

    Args:
        linker: names the entities of each passage with a prior: ``link(passages)``, ``name``, ``begin(corpora)``.
        threshold: τ in [0, 1], strict; the paper's 0.8.
        title_clique: the document's title is an entity of each of its passages; so is the document itself, where
            ``source.document`` names it.

    Raises:
        InputError: a threshold out of range.

    Differs from the paper:
        The paper's linker is a web service (``linker=wat``); the other linkers need no network and
        ``facts["linker"]`` says which it was. Entities are told apart by title, so that a linked entity and a
        document of that title are one. Passages without text have no edge.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, linker: Any, threshold: float = 0.8, title_clique: bool = True) -> None:
        if isinstance(threshold, bool) or not isinstance(threshold, (int, float)) or not 0 <= threshold <= 1:
            raise InputError(f"graph.threshold={threshold}: allowed is a prior from 0 to 1")
        self.linker, self.threshold, self.title_clique = linker, float(threshold), title_clique

    def begin(self, corpora: dict[str, Corpus]) -> None:
        """Let the linker read the passages of all corpora, each text once."""
        self.linker.begin(corpora)

    def build(self, corpus: Corpus) -> Graph:
        """Return the graph over the corpus' passages; ``facts["linker"]`` names the linker."""
        at = [i for i, p in enumerate(corpus.passages) if p.match_text.strip()]
        passages = [corpus.passages[i] for i in at]
        linked = self.linker.link(passages)
        own = {document: keys_of(*document) for document in {(p.title, p.source.document) for p in passages}}
        number: dict[Key, int] = {}
        rows: list[int] = []
        keys: list[int] = []
        n_linked = 0
        for i, passage, entities in zip(at, passages, linked, strict=True):
            held: list[Key] = [entity for entity, prior in entities if prior > self.threshold]
            n_linked += bool(held)
            if self.title_clique:
                held += own[passage.title, passage.source.document]
            keys += [number.setdefault(key, len(number)) for key in held]
            rows += [i] * len(held)
        facts = {
            **{"linker": self.linker.name, "threshold": self.threshold, "title_clique": self.title_clique},
            **{"n_linked": n_linked, "n_entities": sum(isinstance(key, str) for key in number)},
        }
        pairs = np.array([rows, keys], np.int64)
        return graph_of_shared(corpus.id, len(corpus.passages), pairs[0], pairs[1], facts)


def keys_of(title: str, document: str | None) -> list[Key]:
    """Return the keys of a document's passages: its title as an entity, and its file."""
    name = normalise(title)
    return [*([name] if name else []), *([(document,)] if document else [])]


def texts_of(corpora: dict[str, Corpus]) -> Sequence[str]:
    """Return the texts that a linker reads, each once."""
    return list(dict.fromkeys(p.match_text for c in corpora.values() for p in c.passages if p.match_text.strip()))
