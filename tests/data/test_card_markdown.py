"""A data set's card as markdown: what a dump or a path names is text, never markup."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcontext.data.card import card_markdown, escaped

EVIL = "<script>alert(1)</script> | --> `x` [a](b)\n# head"


def test_names_tags_and_licences_are_text() -> None:
    card = {"name": EVIL, "site": EVIL, "split": {"side": EVIL}, "dates": {"pool": [EVIL]}, "tags": {EVIL: 3}}
    lines = card_markdown(card).splitlines()
    assert len(lines) == 8  # heading, blank, two of the table's head, one each
    for line in lines:
        assert "<" not in line and "-->" not in line and "`" not in line.replace("\\`", "")
    assert all(line.replace("\\|", "").count("|") == 3 for line in lines[4:])
    assert lines[0].startswith("## &lt;script&gt;alert(1)&lt;/script&gt; \\|")


def test_plain_names_stay_as_they_are() -> None:
    card = {"name": "cqa_sample", "license": "CC BY-SA 4.0 (older posts 2.5)", "tags": {"c++": 1200, "c#": 1}}
    assert card_markdown(card) == (
        "## cqa_sample\n\n| | |\n|---|---|\n| license | CC BY-SA 4.0 (older posts 2.5) |\n"
        "| tags: c++ | 1,200 |\n| tags: c# | 1 |\n"
    )


@pytest.mark.parametrize(("text", "shown"), [("a|b", "a\\|b"), ("a\\|b", "a\\\\\\|b"), ("x & y", "x &amp; y")])
def test_what_is_escaped(text: str, shown: str) -> None:
    assert escaped(text) == shown


@given(st.text())
def test_no_text_opens_a_tag_or_a_cell(text: str) -> None:
    shown = escaped(text)
    assert "<" not in shown and ">" not in shown and "\n" not in shown
    assert "|" not in shown.replace("\\\\", "").replace("\\|", "")
