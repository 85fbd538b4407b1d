"""The cache key of each stage of a run, known from the config and the identity of its data alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphcontext.component import active_metrics, draws, fingerprint, locate, needs_graph
from graphcontext.files import digest


@dataclass(frozen=True)
class Keys:
    """The cache key of each stage of a run: known from the config and the identity of its data alone."""

    corpus: str
    questions: str
    graph: str | None
    ranking: str
    context: str
    prediction: str
    scores: dict[str, str]

    @property
    def run(self) -> str:
        return digest([self.prediction, sorted(self.scores.items())])


def corpus_key(config: dict[str, Any]) -> str:
    """Return the key of a config's data set alone, whatever else it needs.

    Which questions are scored is no part of it, unless the class says that it builds the corpora of those alone
    (``selects_first(config)``): thousands of questions may have a corpus of their own.
    """
    dataset = config["dataset"]
    cls = locate(dataset["_target_"], "dataset")
    whole = ["corpus", fingerprint(dataset, getattr(cls, "selection", frozenset()))]
    first = hasattr(cls, "selects_first") and cls.selects_first(dataset) and _selected(config)["limit"] is not None
    return digest([*whole, _selected(config)] if first else whole)


def _selected(config: dict[str, Any]) -> dict[str, Any]:
    """Return what of a config chooses the scored questions."""
    dataset = config["dataset"]
    selection = getattr(locate(dataset["_target_"], "dataset"), "selection", frozenset())
    selected = {k: dataset.get(k) for k in sorted(selection)}
    if selected.get("limit") is None:  # without a limit every question is scored, whatever the seed
        selected.pop("seed", None)
    return selected


def keys(config: dict[str, Any], asked: str | None = None) -> Keys:
    """Return the keys of all stages; each covers all that can change its result and nothing else.

    Args:
        config: a resolved config.
        asked: a question of the user's own instead of the data set's.
    """

    def key(stage: str, node: dict[str, Any], *inputs: str | None) -> str:
        seeds = [config["seed"], config["sample_index"]] if draws(node) else None
        return digest([stage, fingerprint(node), seeds, *inputs])

    corpus = corpus_key(config)
    questions = digest(["questions", corpus, _selected(config)] if asked is None else ["asked", corpus, asked])
    graph = key("graph", config["graph"], corpus) if needs_graph(config["retriever"]) else None
    ranking = key("ranking", config["retriever"], questions, graph)
    context = key("context", {"enhancer": config["enhancer"], "packing": config["packing"]}, ranking)
    prediction = key("prediction", config["generator"], context)
    scores = {name: key("score", node, prediction) for name, node in active_metrics(config).items()}
    return Keys(corpus, questions, graph, ranking, context, prediction, scores)
