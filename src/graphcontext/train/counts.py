"""How many training examples there are and how long, before any is made: by the data set's card, else assumed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphcontext.train.examples import IGNORED, Examples
from graphcontext.train.outline import Counts

TAIL = 3  # the longest example by the mean one, where nothing was counted: assumed
GOLDS = 2  # gold passages of a question: assumed


def counts_of(config: Mapping[str, Any], root: Path | str = ".") -> Counts:
    """Return counts for a training that has not read its data.

    The training side's own card is used where it was read, else nine tenths of the training questions that the data
    set's YAML assumes, or of the pool that a run read or that it assumes: the last tenth is held out.

    Args:
        config: resolved, composed with ``primary="train"``.
        root: the working folder, which holds ``store/``.
    """
    from graphcontext import plan
    from graphcontext.train.key import side_of

    trainer = config["trainer"]
    side = side_of(dict(config), "train")
    found, said = plan.size(side, root), ""
    n_all = found.n_train or found.n_pool
    if not found.known:
        scored = {**side, "split": "test", "dataset": {**side["dataset"], "side": "test", "limit": None}}
        found = plan.size(scored, root)
        by_pool, n_all = found.known and not found.n_train, found.n_train or found.n_pool
        said = "examples: nine tenths of the pool" if by_pool else "examples: assumed in the data set's YAML"
        found = replace(found, n_questions=_at_most(trainer["pairs"], n_all * 9 // 10))
        side = scored
    held_out = _at_most(trainer["held_out"], math.ceil(n_all / 10))
    most = min(trainer["max_tokens"], _window(config) or trainer["max_tokens"])
    if trainer["data"] == "text":
        tokens = 0.9 * found.n_pool * (found.tokens_per_question + found.tokens_per_answer)
        blocks = max(1, math.ceil(tokens / most))
        return Counts(blocks, max(1, blocks // 9), 0.0, float(min(most, tokens)), most, most, said)
    passage = found.tokens_per_question + found.tokens_per_answer
    if trainer["data"] == "bi_encoder":
        return _contrasts(config, found.n_questions, held_out, (found.tokens_per_question, passage), said)
    shown, target = plan.context_tokens(side, found), found.tokens_per_answer
    if trainer["data"] == "evidence":  # a gold passage leads to the next
        shown = target = passage
    prompt = min(plan.PROMPT_TOKENS + found.tokens_per_question + shown, most / 2)
    answer = min(target, most - prompt)
    longest, learnt = _longest(side, root, prompt, answer, most)
    if said and plan.card(dict(side), Path(root)) is None:
        said += f", the longest taken for {TAIL} times the mean"
    return Counts(found.n_questions, held_out, prompt, answer, longest, learnt, said)


def _contrasts(
    config: Mapping[str, Any], n_questions: int, held_out: int, lengths: tuple[float, float], said: str
) -> Counts:
    """Return the counts of a bi-encoder's examples, by the mean tokens of a question and of a passage."""
    loss = config["bi_encoder"]
    question, passage = min(lengths[0], loss["question_tokens"]), min(lengths[1], loss["passage_tokens"])
    hops = loss["hops"]
    tokens = hops * (question + passage) + hops * (hops - 1) / 2 * passage + loss["negatives"] * passage
    each = GOLDS if hops == 1 else 1
    return Counts(each * n_questions, each * held_out, tokens, 0.0, math.ceil(TAIL * tokens), 0, said)


def counted(train: Examples, held_out: Examples, separate: bool = False) -> Counts:
    """Return the counts of examples that are made; there is one or more on the training side.

    Args:
        train, held_out: examples of both sides.
        separate: labels are a sequence of their own: those of an encoder–decoder.
    """
    learnt = [sum(label != IGNORED for label in e.labels) for e in train.examples]
    inputs = [len(e.inputs) for e in train.examples]
    longest, answer = max(e.length for e in train.examples), sum(learnt) / len(learnt)
    prompt = sum(inputs) / len(inputs)
    if separate:
        return Counts(len(learnt), len(held_out.examples), prompt, answer, longest, max(learnt))
    # a batch has logits wherever one of its rows learns: from its shortest prompt to its end
    ends = [longest - (n - own) for n, own in zip(inputs, learnt, strict=True) if 2 * n >= longest]
    return Counts(len(learnt), len(held_out.examples), prompt - answer, answer, longest, max(ends))


def _at_most(limit: int | None, n: int) -> int:
    return n if limit is None else min(limit, n)


def _window(config: Mapping[str, Any]) -> int | None:
    from graphcontext.train.key import base

    return base(dict(config)).get("context_window")


def _longest(side: Mapping[str, Any], root: Path | str, prompt: float, answer: float, most: int) -> tuple[int, int]:
    """Return tokens of the longest example and of the longest answer, by the card or ``TAIL`` times the mean."""
    from graphcontext import plan

    card = plan.card(dict(side), Path(root))
    words = {} if card is None else card["words"]
    kinds = [k for k in ("pool", "scored") if {f"{k} questions", f"{k} accepted answers"} <= set(words)]
    if not kinds:
        return math.ceil(min(most, TAIL * (prompt + answer))), math.ceil(min(most, TAIL * answer))
    question = max(words[f"{kind} questions"]["max"] - words[f"{kind} questions"]["mean"] for kind in kinds)
    answer = max(words[f"{kind} accepted answers"]["max"] for kind in kinds) * plan.TOKENS_PER_WORD
    longest = prompt + question * plan.TOKENS_PER_WORD + answer
    return math.ceil(min(most, longest)), math.ceil(min(most, answer))
