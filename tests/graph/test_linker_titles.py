"""Mentions of the corpus' own documents."""

from __future__ import annotations

import pytest

from graphcontext.enhance.surface_form import normalise
from graphcontext.graph.linker_titles import TitlesLinker
from tests.graph.passages import corpus


def linked(*passages):
    return TitlesLinker().link(corpus(*passages).passages)


def test_the_longest_title_is_found_and_not_its_parts():
    found = linked(("New York", "x"), ("New York City", "y"), ("City", "New York City, then New York."))
    assert found == [[], [], [("new york city", 1.0), ("new york", 1.0)]]


def test_a_parenthesis_at_the_end_is_no_part_of_a_name():
    film = normalise("Sinister (film)")
    assert linked(("Sinister (film)", "x"), ("A", "He made Sinister in 2012."))[1] == [(film, 1.0)]
    assert linked(("Sinister (film)", "x"), ("A", "He made Sinister (film)."))[1] == [(film, 1.0)]


def test_a_name_of_several_documents_means_each_in_equal_shares():
    # "Kiss" is a title and, without its parenthesis, a name of two others: 1/3 each. "Kiss (song)" is one document.
    titles = [(t, "x") for t in ("Kiss", "Kiss (band)", "Kiss (song)")]
    found = linked(*titles, ("A", "Kiss."), ("B", "Kiss (song)."))
    assert found[3] == [(t, pytest.approx(1 / 3)) for t in map(normalise, ("Kiss", "Kiss (band)", "Kiss (song)"))]
    assert found[4] == [(normalise("Kiss (song)"), 1.0)]


def test_letters_count_but_for_the_first_of_several_words():
    passages = [
        ("Her", "x"),
        ("Operating system", "y"),
        ("A", "I saw her use an operating system."),
        ("B", "Her. SYSTEM"),
    ]
    assert linked(*passages)[2:] == [[("operating system", 1.0)], [("her", 1.0)]]


def test_non_ascii_titles_numbers_and_blanks():
    passages = [("東京", "x"), ("1984", "y"), ("", "z"), ("(", "w"), ("A", "Zürich, 東京 in 1984 ( )"), ("Zürich", "")]
    assert linked(*passages)[4] == [("zürich", 1.0), ("東京", 1.0)]  # a number names too much, "A" is one letter
    assert linked() == []
