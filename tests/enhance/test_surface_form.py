"""When two surface forms name one entity."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from graphcontext.enhance.surface_form import normalise


def test_names_are_compared_without_case_and_marks() -> None:
    assert normalise(' "The  Apache Server". ') == "the apache server"


@given(st.text())
def test_what_is_normalised_stays_as_it_is(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)
