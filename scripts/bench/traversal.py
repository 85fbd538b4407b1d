"""Traversal of padded HotpotQA questions: a vectoriser fitted again at every step (the released code) beside ours.

python scripts/bench/traversal.py --questions 200

Each question has its own corpus, padded to the paper's 715 passages. The evidence of a seed is given: the question and
the seed's first words, as a stand-in for what a model writes. The released code's way fits scikit-learn's vectoriser on
all passages for the seeds, and again on the neighbours of each seed. Both take the same passages, ties by index.
Without a graph every other passage is a candidate.
"""

import argparse

import clock
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from graphcontext.component import instantiate
from graphcontext.config import compose
from graphcontext.data.records import Corpus, Graph, Question
from graphcontext.retrieve.agents.state import Evidence
from graphcontext.retrieve.traversal import Traversal

TOP, BRANCHING, DECIMALS = 30, 3, 12


class Given:
    """The question, and the first words of the last passage."""

    repeatable = True

    def evidence(self, states):
        return [Evidence(evidence(s.question.text, s.passages[-1].match_text)) for s in states]


def evidence(question: str, passage: str) -> str:
    return " ".join([question, *passage.split()[:12]])


def ranked(text: str, texts: list[str], k: int) -> list[int]:
    """The released code's step: fit, transform, cosine, sort."""
    vectoriser = TfidfVectorizer()
    matrix = vectoriser.fit_transform(texts)
    scores = (matrix @ vectoriser.transform([text]).T).toarray().reshape(-1)
    return np.argsort(-np.round(scores, DECIMALS), kind="stable")[:k].tolist()


def refitted(question: Question, corpus: Corpus, graph: Graph | None) -> list[str]:
    """Seeds, then of each seed the neighbours nearest to its evidence; passages in the order of appearance."""
    texts = [p.match_text for p in corpus.passages]
    found = []
    for seed in ranked(question.text, texts, TOP // BRANCHING):
        near = range(len(texts)) if graph is None else graph.indices[graph.indptr[seed] : graph.indptr[seed + 1]]
        candidates = sorted(int(i) for i in near if texts[i].strip() and texts[i] != texts[seed])
        found.append(seed)
        if candidates:
            asked = evidence(question.text, texts[seed])
            best = ranked(asked, [texts[i] for i in candidates], BRANCHING)
            found += [candidates[place] for place in best]
    return [corpus.passages[i].id for i in dict.fromkeys(found)]


def graphs_of(config: dict, corpora: dict[str, Corpus]) -> dict[str, Graph]:
    builder = instantiate(config["graph"], "graph")
    if hasattr(builder, "begin"):
        builder.begin(corpora)
    return {corpus_id: builder.build(corpus) for corpus_id, corpus in corpora.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--paper-questions", type=int, default=20, help="of the released code's way")
    parser.add_argument("--passages", type=int, default=715)
    parser.add_argument("--graph", default="tfidf_keywords", help="beside none; none: no other")
    parser.add_argument("overrides", nargs="*", default=["dataset=hotpotqa", "scale=small"])
    options = parser.parse_args()
    words = [f"dataset.limit={options.questions}", f"dataset.n_passages={options.passages}", "retriever=traversal"]
    graph = [] if options.graph == "none" else [f"graph={options.graph}"]
    config = compose([*words, *graph, *options.overrides]).config
    dataset = instantiate(config["dataset"], "dataset")
    loaded = dataset.load()
    questions = list(dataset.select(loaded.questions))
    corpora = {q.corpus_id: loaded.corpora[q.corpus_id] for q in questions}
    graphs = graphs_of(config, corpora) if graph else {}
    few, rows = questions[: options.paper_questions], []
    for name, use_graph in ([(options.graph, True)] if graph else []) + [("none", False)]:
        chosen = {q.id: graphs[q.corpus_id] if use_graph else None for q in questions}
        paper, expected = clock.cpu(
            lambda chosen=chosen: [refitted(q, corpora[q.corpus_id], chosen[q.id]) for q in few], times=1
        )
        own, rankings = clock.cpu(
            lambda use_graph=use_graph: Traversal(Given(), TOP, BRANCHING, use_graph=use_graph).retrieve(
                questions, corpora, graphs
            )
        )
        n = np.mean([len(r.passages) for r in rankings])
        candidates = np.mean([step.n_candidates for r in rankings for step in (r.steps or ())[1:]])
        found = [[hit.id for hit in r.passages] for r in rankings]
        equal = sum(a == b for a, b in zip(expected, found))
        paper, own = paper / len(few), own / len(questions)
        about = f"{candidates:.0f} candidates a step, {n:.0f} passages"
        rows += [
            (name, "TfidfVectorizer at every step", f"{1000 * paper:.1f}", 1, about),
            (name, "ours", f"{1000 * own:.2f}", f"{paper / own:.0f}", f"{equal} of {len(few)} rankings equal"),
        ]
    name = config["dataset"]["name"]
    print(f"Traversal of {len(questions)} questions of {name}, {options.passages} passages each\n")
    clock.table("graph | way | ms a question | ratio | notes", rows)
    if any(f"{len(few)} of" not in row[4] for row in rows[1::2]):
        raise SystemExit("other passages")


if __name__ == "__main__":
    main()
