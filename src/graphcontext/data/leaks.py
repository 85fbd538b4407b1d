"""Keep copies of scored questions out of the pool: by duplicate link, by equal text, by equal token set."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from graphcontext.data.splits import Dated

Item = TypeVar("Item", bound=Dated)
LAYERS = ("own thread", "duplicate by link", "duplicate by text", "equal token set")


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Hashes of a question's normalised text and of its set of tokens: equal content, equal hash."""

    id: int | str
    text: int
    tokens: int


def normalise(text: str) -> str:
    """Return lower-case words joined by one space, without punctuation (+ and # stay: C++ is not C#)."""
    return " ".join(re.findall(r"[\w+#]+", unicodedata.normalize("NFKC", text).casefold()))


def fingerprint(post_id: int | str, text: str) -> Fingerprint:
    """Return the fingerprint of a question's title and body."""
    plain = normalise(text)
    return Fingerprint(post_id, _hash(plain), _hash(" ".join(sorted(set(plain.split())))))


class Groups:
    """Disjoint sets of post ids of one type (union–find); an id that was never joined is a group of its own."""

    def __init__(self) -> None:
        self._parent: dict[Any, Any] = {}

    def join(self, a: Any, b: Any) -> None:
        low, high = sorted((self.of(a), self.of(b)))
        self._parent[high] = low

    def of(self, post_id: Any) -> Any:
        """Return the lowest id of the group that holds ``post_id``."""
        path = []
        while post_id in self._parent and self._parent[post_id] != post_id:
            path.append(post_id)
            post_id = self._parent[post_id]
        for passed in path:
            self._parent[passed] = post_id
        return post_id


def link_duplicates(pairs: Iterable[tuple[int, int]]) -> set[int]:
    """Return the ids that are marked as a duplicate of another question; the original of each group stays.

    Args:
        pairs: (duplicate, original). Where a whole group is marked (a circle) its lowest id is the original.
    """
    groups, marked, members = Groups(), set(), set()
    for duplicate, original in pairs:
        members.update((duplicate, original))
        if duplicate != original:
            marked.add(duplicate)
            groups.join(duplicate, original)
    with_original = {groups.of(member) for member in members - marked}
    circles = {groups.of(member) for member in marked} - with_original
    return marked - circles  # the lowest id names its group


def guard(
    scored: Sequence[Item],
    candidates: Sequence[Item],
    pairs: Iterable[tuple[Any, Any]],
    prints: Iterable[Fingerprint],
) -> tuple[tuple[Item, ...], Counter[str]]:
    """Return the candidates that are no copy of a scored question, and what was taken out at which layer.

    Copies are transitive over all layers: a copy of a copy is a copy, also by way of filtered posts.

    Args:
        scored: the questions to answer.
        candidates: the items that would form the pool.
        pairs: (duplicate, original) links, followed in both directions.
        prints: fingerprints of all questions that were read, filtered duplicates included.
    """
    prints = list(prints)
    joins = {
        "own thread": [],
        "duplicate by link": list(pairs),
        "duplicate by text": _equal(prints, "text"),
        "equal token set": _equal(prints, "tokens"),
    }
    groups, left, taken = Groups(), list(candidates), Counter(dict.fromkeys(LAYERS, 0))
    for layer in LAYERS:
        for a, b in joins[layer]:
            groups.join(a, b)
        leaks = {groups.of(item.id) for item in scored}
        safe = [item for item in left if groups.of(item.id) not in leaks]
        taken[layer] = len(left) - len(safe)
        left = safe
    return tuple(left), taken


def near_duplicates(scored: Sequence[Any], candidates: Sequence[Any], least: float) -> set[Any]:
    """Return the ids of the candidates whose ``question`` or ``answer`` is nearly that of a scored item.

    Two texts are nearly one where the Jaccard index of their sets of normalised words, |A ∩ B| / |A ∪ B|, is at
    least ``least``. Empty texts are never near.
    """
    found: set[Any] = set()
    for part in ("question", "answer"):
        texts = [set(normalise(getattr(item, part)).split()) for item in (*candidates, *scored)]
        words = _incidence(texts)
        ours, theirs = words[: len(candidates)], words[len(candidates) :]
        common = (ours @ theirs.T).tocoo()  # (n_candidates, n_scored): words in common, zeros left out
        sizes = np.array([len(text) for text in texts])
        either = sizes[common.row] + sizes[len(candidates) + common.col] - common.data
        near = common.row[common.data / either >= least]
        found |= {candidates[i].id for i in near.tolist()}
    return found


def _incidence(texts: Sequence[set[str]]) -> Any:
    """Return which text holds which word, int32 (n_texts, n_words)."""
    from scipy.sparse import csr_matrix

    column = {word: n for n, word in enumerate(sorted(set().union(*texts)))}
    indices = [column[word] for text in texts for word in text]
    indptr = np.cumsum([0, *map(len, texts)])
    shape = (len(texts), max(1, len(column)))
    return csr_matrix((np.ones(len(indices), np.int32), indices, indptr), shape=shape)


def _equal(prints: Sequence[Fingerprint], key: str) -> list[tuple[Any, Any]]:
    """Return pairs that join all posts whose fingerprints agree in ``key``."""
    first: dict[int, Any] = {}
    return [(first.setdefault(getattr(p, key), p.id), p.id) for p in prints]


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
