"""The stages in order: corpus → graph → ranking → context → prediction → scores → run folder.

Each stage is a pure function of the artefacts before it and one component. This module does their IO:
keys, the store, locks, resume, manifests. It is the first file to read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphcontext.component import components, instantiate
from graphcontext.data.records import (
    Context,
    Corpus,
    Graph,
    Passage,
    Prediction,
    Question,
    Ranking,
    content_id,
    from_json,
)
from graphcontext.errors import InputError, RunError
from graphcontext.evaluate.retrieval import check_cut_offs, check_supports
from graphcontext.files import jsonl, read_lines, write_atomic
from graphcontext.graph.storage import load_graph, save_graph
from graphcontext.items import run_items, score_items
from graphcontext.keys import keys
from graphcontext.stage import Stages
from graphcontext.store import Artefact, Workspace
from graphcontext.train.trained import STAGE, TARGET

CHUNK = 64  # items per chunk of a resumable stage: a kill costs one chunk at most, and no answered LLM call


@dataclass(frozen=True)
class Data:
    """The questions to score and the corpora they are answered from."""

    questions: tuple[Question, ...]
    corpora: dict[str, Corpus]
    card: dict[str, Any]


def build_parts(config: dict[str, Any], workspace: Workspace | None = None) -> dict[str, Any]:
    """Construct the component of each stage; nothing is loaded.

    Raises:
        InputError: a component refuses an argument.
    """
    names = ("dataset", "graph", "retriever", "enhancer", "packing", "generator", "metric")
    return {name: instantiate(config[name], name, workspace) for name in names}


class Pipeline:
    """Runs the stages of one config, each at most once per store.

    Args:
        config: a resolved config (:func:`graphcontext.config.compose`).
        workspace: the store and the seeds.
        asked: a question of the user's own instead of the data set's.

    Raises:
        InputError: a component refuses its arguments; before anything is loaded.
    """

    def __init__(self, config: dict[str, Any], workspace: Workspace, asked: str | None = None):
        self.config, self.workspace, self.asked = config, workspace, asked
        workspace.seed, workspace.sample_index = config["seed"], config["sample_index"]
        self.parts = build_parts(config, workspace)
        self.keys = keys(config, asked)
        self.stages = Stages(workspace)

    def data(self) -> Data:
        """Read the data set once; later runs read the artefact.

        Raises:
            InputError: a metric needs gold passages and no question has any, or more of a ranking than is retrieved.
        """

        def make(artefact: Artefact) -> dict[str, Any]:
            loaded = self.parts["dataset"].load()
            lines: dict[int, str] = {}  # by passage: corpora of single questions share most of them
            for corpus_id, corpus in loaded.corpora.items():
                for passage in corpus.passages:
                    if id(passage) not in lines:
                        lines[id(passage)] = jsonl([passage])
                content = "".join(lines[id(passage)] for passage in corpus.passages)
                write_atomic(artefact.path / f"corpus-{corpus_id}.jsonl", content)
            write_atomic(artefact.path / "questions.jsonl", jsonl(loaded.questions))
            write_atomic(artefact.path / "card.json", json.dumps(loaded.card, indent=1, ensure_ascii=False))
            return {"n_questions": len(loaded.questions), "n_corpora": len(loaded.corpora)}

        questions, corpora, card = self.stages.run("corpus", self.keys.corpus, [], make, _read_data)
        chosen = self.parts["dataset"].select(questions) if self.asked is None else (_own(self.asked, corpora),)
        self._check_pools(corpora)
        if self.asked is None:
            metrics = {name: self.parts["metric"][name] for name in self.keys.scores}
            check_supports(metrics, chosen, str(self.config["dataset"].get("name")))
            n_passages = max((len(corpus.passages) for corpus in corpora.values()), default=0)
            check_cut_offs(metrics, getattr(self.parts["retriever"], "top_k", None), n_passages)
        return Data(chosen, corpora, card)

    def _check_pools(self, corpora: dict[str, Corpus]) -> None:
        """Refuse to retrieve from nothing.

        Raises:
            InputError: a corpus has no passage, and a retriever that ranks some.
        """
        if getattr(self.parts["retriever"], "top_k", None) and not all(c.passages for c in corpora.values()):
            dataset = self.config["dataset"]
            left = "each is a question that is asked on this side or scored later"
            mend = "retriever=none, or add passages"
            name = f"dataset={dataset.get('name')}, split={dataset.get('side')}"
            raise InputError(f"{name}: no passage is left to retrieve ({left}); {mend}")

    def graphs(self, data: Data) -> dict[str, Graph]:
        """Build the graph of each corpus, where the retriever needs one."""
        if self.keys.graph is None:
            return {}

        def make(artefact: Artefact) -> dict[str, Any]:
            facts, builder = {}, self.parts["graph"]
            if hasattr(builder, "begin"):  # what is done once for all corpora, such as encoding their pool
                builder.begin(data.corpora)
            for corpus_id, corpus in data.corpora.items():
                graph = builder.build(corpus)
                save_graph(artefact.path / f"graph-{corpus_id}.npz", graph)
                facts[corpus_id] = graph.facts
            return {"graphs": facts}

        def read(path: Path) -> dict[str, Graph]:
            return {corpus_id: load_graph(path / f"graph-{corpus_id}.npz") for corpus_id in data.corpora}

        return self.stages.run("graph", self.keys.graph, ["corpus", *self._adapters("graph")], make, read)

    def rankings(self, data: Data, graphs: dict[str, Graph]) -> list[Ranking]:
        """Retrieve passages for each question."""
        retriever = self.parts["retriever"]

        def compute(batch: list[Question]) -> list[Ranking]:
            return check_rankings(retriever.retrieve(batch, data.corpora, graphs), batch, data.corpora)

        inputs = ["corpus", *(["graph"] if self.keys.graph else []), *self._adapters("retriever")]
        return self._items("ranking", self.keys.ranking, inputs, data.questions, compute, Ranking)

    def contexts(self, data: Data, rankings: list[Ranking]) -> list[Context]:
        """Enhance each ranking into a context and pack it into the token budget."""
        ranked = {r.id: r for r in rankings}

        def compute(batch: list[Question]) -> list[Context]:
            enhanced = self.parts["enhancer"].enhance(batch, [ranked[q.id] for q in batch], data.corpora)
            return [self.parts["packing"].pack(context) for context in enhanced]

        inputs = ["corpus", "ranking", *self._adapters("enhancer")]
        return self._items("context", self.keys.context, inputs, data.questions, compute, Context)

    def predictions(self, data: Data, contexts: list[Context]) -> list[Prediction]:
        """Generate an answer to each question."""
        shown = {c.id: c for c in contexts}
        generator = self.parts["generator"]
        more = [data.corpora] if getattr(generator, "needs_corpora", False) else []

        def compute(batch: list[Question]) -> list[Prediction]:
            return generator.generate(batch, [shown[q.id] for q in batch], *more)

        inputs = ["context", *self._adapters("generator")]
        return self._items("prediction", self.keys.prediction, inputs, data.questions, compute, Prediction)

    def _adapters(self, stage: str, node: dict[str, Any] | None = None) -> list[str]:
        """Return the names of the trainings whose result a stage (a ``node`` of it) takes, as read: bytes and key.

        Raises:
            MissingWeightsError: one is not trained yet.
        """
        names = []
        for part in components(self.config[stage] if node is None else node):
            if part["_target_"] == TARGET:
                adapter = instantiate(part, stage, self.workspace)
                names.append(f"adapter:{adapter.experiment}:{adapter.key[:12]}")
                artefact = self.workspace.store.artefact(STAGE, adapter.folder.name)
                self.stages.take(names[-1], artefact, adapter.command)
        return list(dict.fromkeys(names))

    def scores(
        self, data: Data, predictions: list[Prediction], rankings: list[Ranking], contexts: list[Context]
    ) -> dict[str, list[dict[str, Any]]]:
        """Score the predictions by each metric: one artefact per metric, so that adding one costs only it.

        Of each item its values, and ``reason`` where the metric gave none. A metric whose class says ``asks = True``
        asks a language model: it has a call log, as the stages before it.
        """
        scores: dict[str, list[dict[str, Any]]] = {}
        for name, key in self.keys.scores.items():

            def make(artefact: Artefact, name: str = name) -> dict[str, Any]:
                metric = self.parts["metric"][name]
                items = list(zip(data.questions, predictions, rankings, contexts))
                asks = getattr(metric, "asks", False)
                with self.workspace.stage(artefact, len(items)) if asks else nullcontext(lambda n: None) as advance:
                    lines = score_items(name, _scorer(metric, data.corpora), items)
                    advance(len(lines))
                write_atomic(artefact.path / "scores.jsonl", jsonl(lines))
                n_failed = sum(line[name] is None for line in lines)
                again = "n_unscored" if getattr(metric, "repeatable", False) else "n_failed"  # the latter is retried
                return {"signature": metric.signature, again: n_failed}

            inputs = ["ranking", "context", "prediction", *self._adapters("metric", self.config["metric"][name])]
            rows = self.stages.run(f"score:{name}", key, inputs, make, _read_scores)
            scores[name] = [{k: v for k, v in row.items() if k not in ("id", "status")} for row in rows]
        return scores

    def _items(
        self,
        stage: str,
        key: str,
        inputs: list[str],
        questions: tuple[Question, ...],
        compute: Callable[[list[Question]], list[Any]],
        cls: type,
    ) -> list[Any]:
        """Run a per-question stage resumably and return its records in the order of the questions."""

        def make(artefact: Artefact) -> dict[str, Any]:
            with self.workspace.stage(artefact, len(questions)) as advance:
                records = run_items(artefact.path / f"{stage}s.jsonl", questions, compute, cls, CHUNK, advance)
            counts = {s: sum(r.status == s for r in records) for s in ("failed", "empty")}
            n_retry = sum(bool(getattr(r, "retry", None)) for r in records)
            return {"n": len(records), "n_failed": counts["failed"], "n_empty": counts["empty"], "n_retry": n_retry}

        def read(path: Path) -> list[Any]:
            return [from_json(cls, row) for row in read_lines(path / f"{stage}s.jsonl")]

        return self.stages.run(stage, key, inputs, make, read)


def check_rankings(rankings: list[Ranking], questions: list[Question], corpora: dict[str, Corpus]) -> list[Ranking]:
    """Check what a retriever returned: finite scores, passages of the question's corpus, none twice.

    Raises:
        RunError: naming the question and the passage; a wrong score would be a silent wrong number later.
    """
    known = {c.id: {p.id for p in c.passages} for c in (corpora[q.corpus_id] for q in questions)}
    for question, ranking in zip(questions, rankings):
        before: set[str] = set()
        for hit in ranking.passages:
            where = f"retriever: question {question.id}, passage {hit.id}"
            if isinstance(hit.score, bool) or not isinstance(hit.score, (int, float)) or not math.isfinite(hit.score):
                raise RunError(f"{where}: the score is {hit.score!r}; scores are finite numbers")
            if hit.id not in known[question.corpus_id]:
                raise RunError(f"{where}: there is no such passage in the question's corpus")
            if hit.id in before:
                raise RunError(f"{where} is ranked twice")
            before.add(hit.id)
    return rankings


def _scorer(metric: Any, corpora: dict[str, Corpus]) -> Callable[..., list[dict[str, float]]]:
    """Return a metric's ``score``, given the corpora where its class says ``needs_corpora = True``."""
    if not getattr(metric, "needs_corpora", False):
        return metric.score
    return lambda *records: metric.score(*records, corpora)


def _read_data(path: Path) -> tuple[tuple[Question, ...], dict[str, Corpus], dict[str, Any]]:
    questions = tuple(from_json(Question, row) for row in read_lines(path / "questions.jsonl"))
    corpora: dict[str, Corpus] = {}
    known: dict[str, Passage] = {}  # corpora of single questions share most of their passages
    for file in sorted(path.glob("corpus-*.jsonl")):
        corpus_id = file.stem.removeprefix("corpus-")
        passages = []
        for line in filter(None, file.read_text(encoding="utf-8").split("\n")):
            if line not in known:
                known[line] = from_json(Passage, json.loads(line))
            passages.append(known[line])
        corpora[corpus_id] = Corpus(corpus_id, tuple(passages))
    return questions, corpora, json.loads((path / "card.json").read_text(encoding="utf-8"))


def _read_scores(path: Path) -> list[dict[str, Any]]:
    return read_lines(path / "scores.jsonl")


def _own(text: str, corpora: dict[str, Corpus]) -> Question:
    if len(corpora) != 1:
        raise InputError(f"a question of your own needs one pool, this data set has {len(corpora)}")
    return Question(content_id(text), text, next(iter(corpora)), title=text)
