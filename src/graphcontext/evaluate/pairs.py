"""Pairs of generated and gold answers: the input that every answer metric shares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from graphcontext.data.records import Prediction, Question
from graphcontext.errors import InputError


@dataclass(frozen=True)
class Pair:
    """One generated answer beside its gold answers; a failed prediction has the empty text."""

    prediction: str
    references: tuple[str, ...]


def answer_pairs(questions: Sequence[Question], predictions: Sequence[Prediction]) -> list[Pair]:
    """Put each prediction beside the references of its question, in the order of the questions.

    Raises:
        InputError: the two differ in length, or an item answers another question than the one at its place.
    """
    if len(questions) != len(predictions):
        raise InputError(f"got {len(predictions)} predictions for {len(questions)} questions; one each is needed")
    pairs = []
    for position, (question, prediction) in enumerate(zip(questions, predictions, strict=True)):
        if question.id != prediction.id:
            found = f"prediction {position} answers question {prediction.id!r}"
            raise InputError(f"{found}, but question {question.id!r} is there")
        text = "" if prediction.status == "failed" else prediction.prediction
        pairs.append(Pair(text, question.references))
    return pairs


def distinct_texts(pairs: Iterable[Pair]) -> list[str]:
    """Return the texts of all pairs that are not blank, each once, sorted: what an extractor has to read."""
    texts = {text for pair in pairs for text in (pair.prediction, *pair.references)}
    return sorted(text for text in texts if text.strip())


def best_reference(
    pair: Pair, names: Sequence[str], compare: Callable[[str, str], Sequence[float]]
) -> dict[str, float]:
    """Compare a prediction with each of its references: the one with the highest first value gives all values.

    Without a reference, and for a blank prediction, every value is 0 and ``compare`` is not called.

    Args:
        pair: prediction and references.
        names: of the values; the first decides.
        compare: (prediction, reference) → one value per name.
    """
    nothing = [0.0] * len(names)
    found = [compare(pair.prediction, reference) for reference in pair.references if pair.prediction.strip()]
    return dict(zip(names, max(found, key=lambda values: values[0], default=nothing), strict=True))
