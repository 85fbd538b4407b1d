"""GenQA: an answer that a seq2seq model writes from the question and the best candidates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from graphcontext import models
from graphcontext.data.records import Context, Corpus, Prediction, Question
from graphcontext.errors import InputError, MissingWeightsError
from graphcontext.generate.extractive import NO_ANSWER, Pools, best_answers
from graphcontext.generate.llm import failed
from graphcontext.generate.seq2seq_model import Decoding, Output, check_placement, load

SEPARATOR = "\n"


class GenQA:
    r"""Generates an answer from the question and the answers ranked best (Hsu et al. 2021; GraphContextGen A.2.2, T3).

    .. math:: \hat a = \arg\max_a p(a \mid q \,\|\, c_1 \,\|\, \dots \,\|\, c_k)

    Candidates c are one answer of each thread that the context shows, in its order: the accepted one, else the one
    with most votes; equal ones once. Question and candidates stand each in a paragraph of its own. What does not fit
    ``max_source_length`` is cut from the end, so the best candidates stay, and said in ``reason``.

    Differs from the paper: its candidates are sentences, ranked by a trained model of answer selection, ours whole
    answers in the order of the run's retriever. Its weights are not public; ``model`` is a T5 or BART that was trained
    on this input.

    Args:
        model: local folder or hub name; null where there is none yet, and then nothing can be generated.
        revision: hub commit; null for a folder.
        n_candidates: answers in the input, k.
        max_source_length: most tokens of the input.
        max_target_length: most tokens of the answer.
        beams: 1 is greedy.
        length_penalty: read only where there are several beams.
        repetition_penalty: ≥ 1; 1 is off.
        dtype: ``float32``, ``bfloat16`` or ``float16``.
        batch_size: inputs per forward pass (execution).
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N`` (execution).

    Raises:
        InputError: a value that is not allowed.
        MissingWeightsError: at the first question, ``model`` is null or not on this machine.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset({"batch_size", "device"})
    needs_corpora: ClassVar[bool] = True
    needs_model: ClassVar[bool] = True

    def __init__(
        self,
        model: str | None = None,
        revision: str | None = None,
        n_candidates: int = 5,
        max_source_length: int = 512,
        max_target_length: int = 512,
        beams: int = 1,
        length_penalty: float = 1.0,
        repetition_penalty: float = 1.0,
        dtype: str = "float32",
        batch_size: int = 8,
        device: str = "auto",
    ) -> None:
        check_placement("generator", dtype, device, batch_size)
        if n_candidates < 1:
            raise InputError(f"generator.n_candidates={n_candidates}; allowed: 1 and more")
        self.decoding = Decoding(max_source_length, max_target_length, beams, length_penalty, repetition_penalty)
        self.model, self.revision, self.n_candidates = model, revision, n_candidates
        self.dtype, self.batch_size, self.device = dtype, batch_size, device
        self._pools = Pools()

    @classmethod
    def identity(cls, config: dict[str, Any]) -> dict[str, Any]:
        """Return the hash of the model's files."""
        return models.identity(config["model"], config.get("revision")) if config.get("model") else {}

    def generate(
        self, questions: Sequence[Question], contexts: Sequence[Context], corpora: dict[str, Corpus]
    ) -> list[Prediction]:
        """Return one answer per question, by index; ``empty`` where no thread was retrieved or nothing is written."""
        if self.model is None:
            raise MissingWeightsError("no weights: GenQA has no public ones; name yours: generator.model=FOLDER")
        pools = self._pools.of_each(questions, corpora)
        inputs: dict[int, str] = {}
        for i, (question, context, pool) in enumerate(zip(questions, contexts, pools, strict=True)):
            candidates = dict.fromkeys(a.text for a in best_answers(context, pool) if a.text.strip())
            if candidates and context.status != "failed":
                inputs[i] = SEPARATOR.join([question.text, *list(candidates)[: self.n_candidates]])
        loaded = load(self.model, self.revision, self.dtype, self.device)
        outputs = dict(zip(inputs, loaded.write(list(inputs.values()), self.decoding, self.batch_size), strict=True))
        return [self._prediction(q, c, outputs.get(i)) for i, (q, c) in enumerate(zip(questions, contexts))]

    def _prediction(self, question: Question, context: Context, output: Output | None) -> Prediction:
        if context.status == "failed":
            return failed(question, f"context: {context.reason}")
        if output is None:
            return Prediction(question.id, question.text, "", question.references, 0, "empty", NO_ANSWER)
        return Prediction(
            question.id,
            question.text,
            output.text,
            question.references,
            n_tokens=output.n_tokens,
            status="ok" if output.text else "empty",
            reason=f"input cut at {self.decoding.max_source_length} tokens" if output.n_cut else None,
            finish=output.finish,
        )
