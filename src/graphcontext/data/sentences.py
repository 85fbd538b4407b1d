"""Sentences of a text by its punctuation, by spaCy's rules: no model is loaded."""

from __future__ import annotations

import functools
from typing import Any


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, without blanks around them.

    >>> sentences("Use ss. It lists sockets!")
    ['Use ss.', 'It lists sockets!']
    """
    found = (span.text.strip() for span in _sentencizer()(text).sents)
    return [sentence for sentence in found if sentence]


@functools.cache
def _sentencizer() -> Any:
    import spacy

    pipeline = spacy.blank("en")
    pipeline.add_pipe("sentencizer")
    pipeline.max_length = 10**9  # no parser or recogniser, so no memory to guard
    return pipeline
