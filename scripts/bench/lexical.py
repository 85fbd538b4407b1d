"""Top 30 of TF-IDF and BM25: a score for every passage and argsort (the papers' way) beside inverted lists.

python scripts/bench/lexical.py --passages 50000

The passages are docstrings of the installed packages, the questions first lines of others. The papers' way is
scikit-learn's ``cosine_similarity`` with ``argsort``, and rank_bm25's loop (Okapi, as KGP's code calls it).
"""

import argparse
import itertools
from collections import Counter

import clock
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import cosine_similarity
from texts import docstrings

from graphcontext.data.records import Corpus, Passage, Question
from graphcontext.retrieve.bm25 import BM25
from graphcontext.retrieve.tfidf import TFIDF

TOP = 30


class RankBM25:
    """What rank_bm25's BM25Okapi does: a dict of counts per passage, one look-up per passage and query word."""

    def __init__(self, corpus: list[list[str]], k1: float = 1.5, b: float = 0.75, epsilon: float = 0.25):
        self.counts = [Counter(text) for text in corpus]
        self.lengths = np.array([len(text) for text in corpus])
        df = Counter(word for counts in self.counts for word in counts)
        idf = {word: np.log(len(corpus) - n + 0.5) - np.log(n + 0.5) for word, n in df.items()}
        floor = epsilon * sum(idf.values()) / len(idf)
        self.idf = {word: value if value >= 0 else floor for word, value in idf.items()}
        self.k1, self.slack = k1, k1 * (1 - b + b * self.lengths / self.lengths.mean())

    def top(self, query: list[str]) -> tuple[np.ndarray, np.ndarray]:
        scores = np.zeros(len(self.counts))
        for word in query:
            tf = np.array([counts.get(word) or 0 for counts in self.counts])
            scores += (self.idf.get(word) or 0) * (tf * (self.k1 + 1) / (tf + self.slack))
        order = np.argsort(-scores, kind="stable")[:TOP]
        return order, scores[order]


def differences(expected: list[tuple[np.ndarray, np.ndarray]], rankings: list, number: dict[str, int]) -> str:
    """Say whether the rankings are equal, ties by index, and by how much scores differ."""
    worst, other = 0.0, 0
    for (order, scores), ranking in zip(expected, rankings, strict=True):
        positive = order[scores > 0]
        found = [number[hit.id] for hit in ranking.passages]
        values = np.array([hit.score for hit in ranking.passages])
        worst = max(worst, float(np.abs(values - scores[scores > 0]).max(initial=0)))
        # two passages whose scores agree to 1e-12 may come in either order: the sums run in another one
        other += sum(a != b for a, b in zip(found, positive.tolist(), strict=True))
        other -= sum(
            a != b and abs(x - y) < 1e-12
            for a, b, x, y in zip(found, positive.tolist(), values, scores[scores > 0], strict=True)
        )
    return f"{other} ranks other, scores to {worst:.0e}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passages", type=int, default=50_000)
    parser.add_argument("--queries", type=int, default=256, help="questions of ours")
    parser.add_argument("--paper-queries", type=int, default=20, help="questions of the papers' way, one by one")
    options = parser.parse_args()
    texts = list(itertools.islice(docstrings(), options.passages + options.queries))
    asked = [text.strip().splitlines()[0] for text in texts[-options.queries :]]
    pool = Corpus.of([Passage(f"p{n}", "", text, "") for n, text in enumerate(texts[: -options.queries])])
    number = {passage.id: n for n, passage in enumerate(pool.passages)}
    texts = [passage.match_text for passage in pool.passages]
    questions = [Question(str(n), text, pool.id) for n, text in enumerate(asked)]
    few = asked[: options.paper_queries]

    vectoriser = TfidfVectorizer()
    matrix = vectoriser.fit_transform(texts)

    def by_cosine() -> list[tuple[np.ndarray, np.ndarray]]:
        found = []
        for text in few:
            scores = cosine_similarity(vectoriser.transform([text]), matrix)[0]
            order = np.argsort(-scores, kind="stable")[:TOP]
            found.append((order, scores[order]))
        return found

    peer = RankBM25([text.split() for text in texts])
    ways = [
        ("TF-IDF", "cosine_similarity, argsort", by_cosine, TFIDF(TOP)),
        (
            "BM25",
            "rank_bm25's loop, argsort",
            lambda: [peer.top(text.split()) for text in few],
            BM25(TOP, variant="okapi", tokens="blanks"),
        ),
    ]
    rows = []
    for name, paper_name, paper_way, ours in ways:
        paper, expected = clock.cpu(paper_way)
        first, _ = clock.cpu(lambda ours=ours: ours.retrieve(questions[:1], {pool.id: pool}, {}), times=1)
        whole, rankings = clock.cpu(lambda ours=ours: ours.retrieve(questions, {pool.id: pool}, {}))
        paper, each = paper / len(few), whole / len(questions)
        equal = differences(expected, rankings[: len(few)], number)
        rows += [
            (name, paper_name, f"{1000 * paper:.2f}", 1, ""),
            (name, "ours", f"{1000 * each:.3f}", f"{paper / each:.0f}", equal),
            (name, "ours, the first question: makes the index", f"{1000 * first:.0f}", "", ""),
        ]
    length, asked_length = (np.mean([len(text.split()) for text in some]) for some in (texts, asked))
    print(f"Top {TOP} of {len(texts)} docstrings of {length:.0f} words, questions of {asked_length:.0f}\n")
    clock.table("retriever | way | ms a question | ratio | equal", rows)


if __name__ == "__main__":
    main()
