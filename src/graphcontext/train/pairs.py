"""Training pairs, from the stages that a run has: the question with its context becomes the prompt."""

from __future__ import annotations

from typing import Any

from graphcontext.component import instantiate
from graphcontext.data.splits import by_hash
from graphcontext.errors import InputError
from graphcontext.files import digest
from graphcontext.pipeline import Data, Pipeline
from graphcontext.stage import Stages
from graphcontext.store import Workspace
from graphcontext.train.examples import Pair
from graphcontext.train.key import side_of

Texts = list[tuple[str, str]]


def read_pairs(config: dict[str, Any], side: str, workspace: Workspace, stages: Stages) -> list[Any]:
    """Return the pairs of one side: the run's prompt for each question, its first gold answer as target.

    With ``trainer.data=evidence`` those of an agent instead (:func:`evidence_pairs`), with ``bi_encoder`` questions
    with gold passages and others (:class:`graphcontext.train.bi_encoder.BiEncoder`).

    Args:
        config: of the training.
        side: ``train`` or ``validation``.
        workspace: the store.
        stages: gets what was read, under ``corpus``, ``context`` … of this side.

    Raises:
        InputError: the generator has no prompt, or the side has no question.
    """
    pipeline = Pipeline(side_of(config, side), workspace)
    pipeline.stages = stages
    if config["trainer"]["data"] == "bi_encoder":
        data = pipeline.data()
        return instantiate(config["bi_encoder"], "bi_encoder").build(data.questions, data.corpora)
    if config["trainer"]["data"] == "evidence":
        return evidence_pairs(pipeline.data(), instantiate(config["agent"], "agent"))
    generator = pipeline.parts["generator"]
    needs_prompt(generator)
    data = pipeline.data()
    contexts = pipeline.contexts(data, pipeline.rankings(data, pipeline.graphs(data)))
    pairs = []
    for question, context in zip(data.questions, contexts, strict=True):
        answer = next((r for r in question.references if r.strip()), "")
        reason = None if answer else "no gold answer"
        if context.status == "failed":
            reason = "its context failed"
        pairs.append(Pair(question.id, generator.request(question, context).messages, answer, reason))
    return pairs


def evidence_pairs(data: Data, agent: Any) -> list[Pair]:
    """Return what a traversal agent learns: from the question and its first i gold passages, the next (KGP §4.3).

    The order is that of the data set's supporting facts. A question with fewer than two gold passages gives one pair
    that is left out, with its reason.

    Args:
        data: questions with supports, and their corpora.
        agent: has ``request(item, question, path)``.
    """
    pairs = []
    corpus, texts = "", {}
    for question in data.questions:
        if corpus != question.corpus_id:  # that of all questions is read once
            corpus = question.corpus_id
            texts = {p.id: p.match_text for p in data.corpora[corpus].passages}
        path = [texts[support] for support in question.supports if support in texts]
        for i in range(1, max(2, len(path))):
            name = f"{question.id}/{i}"
            target = path[i] if i < len(path) else ""
            reason = None if target else "fewer than two gold passages"
            pairs.append(Pair(name, agent.request(name, question.text, path[:i]).messages, target, reason))
    return pairs


def needs_prompt(generator: Any) -> None:
    """Refuse a generator that asks nothing.

    Raises:
        InputError: naming it.
    """
    if not hasattr(generator, "request"):
        raise InputError(f"generator={type(generator).__name__}: training pairs need the prompt of generator=llm")


def read_texts(config: dict[str, Any], workspace: Workspace, stages: Stages) -> tuple[Texts, Texts]:
    """Return (id, text) of the passages of all corpora: nine tenths in the order of a hash, and the last tenth.

    Raises:
        InputError: there are fewer than two passages.
    """
    pipeline = Pipeline(side_of(config, "train"), workspace)
    pipeline.stages = stages
    passages = {p.id: p for corpus in pipeline.data().corpora.values() for p in corpus.passages}
    ordered = by_hash(passages.values())
    if len(ordered) < 2:
        raise InputError(f"dataset={config['dataset'].get('name')}: {len(ordered)} passages; training needs two")
    held = max(1, len(ordered) // 10)
    most, kept = config["trainer"]["pairs"], config["trainer"]["held_out"]
    texts = [(p.id, p.context_text) for p in ordered]
    return texts[:-held][:most], texts[-held:][:kept]


def made_from(stages: dict[str, Stages]) -> dict[str, str]:
    """Return the hash of what each side was read from."""
    last = {side: seen.get("context") or seen["corpus"] for side, seen in ((k, v.seen) for k, v in stages.items())}
    return {side: digest([seen.content]) for side, seen in last.items()}
