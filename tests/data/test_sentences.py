"""Sentences by punctuation: code does not end one."""

from __future__ import annotations

from graphcontext.data.sentences import sentences


def test_sentences_have_no_blanks_around_and_code_does_not_end_them() -> None:
    assert sentences("Use ss -tlnp. It works!\n\nDone?") == ["Use ss -tlnp.", "It works!", "Done?"]
    assert sentences("") == []
