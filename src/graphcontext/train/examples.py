"""From pairs to token ids: prompt and answer of a causal model, source and target of a seq2seq one, packed text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from graphcontext.errors import InputError
from graphcontext.generate.chat import Message
from graphcontext.generate.hf_seq2seq import source_text

IGNORED = -100  # label of a token that is not learnt


@dataclass(frozen=True)
class Pair:
    """One training pair: the chat up to the answer, and the answer. ``reason`` says why it has none."""

    id: str
    messages: tuple[Message, ...]
    answer: str
    reason: str | None = None


@dataclass(frozen=True)
class Example:
    """Token ids of one pair.

    Args:
        id: of the question.
        inputs: prompt and answer of a causal model; the source of an encoder–decoder.
        labels: what is learnt at each position, ``IGNORED`` where nothing is: of a causal model as long as
            ``inputs`` (position i is predicted from those before it), of an encoder–decoder the target.
    """

    id: str
    inputs: tuple[int, ...]
    labels: tuple[int, ...]

    @property
    def length(self) -> int:
        """Tokens that a batch with this example is padded to."""
        return max(len(self.inputs), len(self.labels))


@dataclass
class Examples:
    """The examples of one side, and what became of the others.

    Args:
        examples: in the order of their questions.
        skipped: reason → number of pairs left out.
        cut: number of examples of which tokens were cut.
        controlled: number of examples whose texts hold a control token of the model, which is read as one.
    """

    examples: list[Example] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    cut: int = 0
    controlled: int = 0

    def facts(self) -> dict[str, Any]:
        """Return counts for the manifest."""
        lengths = [e.length for e in self.examples]
        return {
            "pairs": len(self.examples),
            "tokens": sum(lengths),
            "longest": max(lengths, default=0),
            "cut": self.cut,
            "skipped": dict(sorted(self.skipped.items())),
        } | ({"controlled": self.controlled} if self.controlled else {})

    def described(self, side: str) -> str:
        """Return the counts in one line."""
        facts = self.facts()
        left = "".join(f", left out {n}: {reason}" for reason, n in facts["skipped"].items())
        cut = f", {self.cut} with tokens cut" if self.cut else ""
        cut += f", {self.controlled} whose text holds a control token of the model" if self.controlled else ""
        return f"{side}: {facts['pairs']} examples, {facts['tokens']:,} tokens, longest {facts['longest']}{cut}{left}"


def causal(pairs: Iterable[Pair], model: Any, system_role: bool, max_tokens: int, loss_on: str) -> Examples:
    """Encode pairs for a causal model: one BOS where the model has one, the prompt, the answer, EOS.

    An answer that does not fit is cut, and then has no EOS: the model is not taught to stop in mid-sentence.

    Args:
        pairs: to encode.
        model: :class:`graphcontext.generate.causal_model.CausalModel`; its ``encode`` is that of evaluation.
        system_role: as of the LLM.
        max_tokens: of prompt and answer.
        loss_on: ``answer`` or ``all``.
    """
    found = Examples()
    eos = _end(model)
    for pair in pairs:
        if pair.reason:
            found.skipped[pair.reason] += 1
            continue
        prompt, answer = model.encode_answered(pair.messages, pair.answer, system_role)
        answer = [*answer, eos]
        room = max_tokens - len(prompt)
        if room < 1:
            found.skipped[f"no room for an answer in trainer.max_tokens={max_tokens}"] += 1
            continue
        found.cut += len(answer) > room
        found.controlled += _is_controlled(pair, model)
        answer = answer[:room]
        masked = prompt if loss_on == "all" else [IGNORED] * len(prompt)
        found.examples.append(Example(pair.id, (*prompt, *answer), (*masked, *answer)))
    return found


def seq2seq(pairs: Iterable[Pair], model: Any, max_tokens: int) -> Examples:
    """Encode pairs for an encoder–decoder: messages joined by blank lines → the answer, each at most ``max_tokens``.

    Both have the special tokens of the model's own tokenizer (BART's answers begin with ``<s>``, as it was pretrained
    and as it generates). An answer that is cut has no end.

    Args:
        pairs: to encode.
        model: :class:`graphcontext.generate.seq2seq_model.Seq2SeqModel`.
        max_tokens: of the source, and of the target; what is beyond is cut.
    """
    found, eos = Examples(), _end(model)
    for pair in pairs:
        if pair.reason:
            found.skipped[pair.reason] += 1
            continue
        whole = model.ids(source_text(pair.messages))
        source = model.cut(source_text(pair.messages), whole, max_tokens)
        target = list(model.tokenizer(text_target=pair.answer, truncation=False, verbose=False)["input_ids"])
        target += [eos] if target[-1:] != [eos] else []
        found.cut += len(whole) > len(source) or len(target) > max_tokens
        found.controlled += _is_controlled(pair, model)
        found.examples.append(Example(pair.id, tuple(source), tuple(target[:max_tokens])))
    return found


def _is_controlled(pair: Pair, model: Any) -> bool:
    """Tell whether question, context or answer spell a control token such as ``<|im_end|>``: it is read as that."""
    text = "\n".join([pair.answer, *(message["content"] for message in pair.messages if message["role"] == "user")])
    return any(token in text for token in model.tokenizer.all_special_tokens)


def packed(texts: Iterable[tuple[str, str]], model: Any, max_tokens: int) -> Examples:
    """Pack texts into blocks of ``max_tokens``, each text closed by EOS, one BOS before it where the model has one.

    All tokens are learnt. A last block of fewer than two tokens, which has nothing to predict, is left out.

    Args:
        texts: (id, text).
        model: a causal model's tokenizer, as of :func:`causal`.
        max_tokens: of a block.
    """
    found, eos = Examples(), _end(model)
    stream: list[int] = []
    opening = [model.tokenizer.bos_token_id] if model.adds_bos else []
    n = 0
    for name, text in texts:
        if not text.strip():
            found.skipped["empty text"] += 1
            continue
        ids = model.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        stream += [*opening, *ids, eos]
        while len(stream) >= max_tokens:
            block, stream = tuple(stream[:max_tokens]), stream[max_tokens:]
            found.examples.append(Example(f"block{n}-{name}", block, block))
            n += 1
    if len(stream) > 1:
        found.examples.append(Example(f"block{n}", tuple(stream), tuple(stream)))
    return found


def _end(model: Any) -> int:
    """Return the id of the token that ends a text."""
    eos = model.tokenizer.eos_token_id
    if eos is None:
        raise InputError(f"model folder {model.folder}: its tokenizer has no end-of-sequence token to learn")
    return int(eos)
