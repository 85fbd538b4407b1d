"""Entities by their surface form."""

from __future__ import annotations

import pytest

from graphcontext.errors import MissingWeightsError
from graphcontext.graph.linker_spacy_ner import SpacyNERLinker
from graphcontext.store import Store, Workspace
from tests.graph.passages import corpus


def linked(*texts, linker=None):
    passages = corpus(*[("", t) for t in texts])
    linker = linker or SpacyNERLinker("spacy_en")
    linker.begin({passages.id: passages})
    return linker.link(passages.passages)


def test_a_missing_model_is_named():
    with pytest.raises(MissingWeightsError, match="nobody/nothing"):
        linked("x", linker=SpacyNERLinker("nobody/nothing"))


@pytest.mark.needs_models
class TestRead:
    def test_names_count_but_numbers_and_common_nouns_do_not(self):
        (found,) = linked("Scott Derrickson directed two films in the United States in July 2012.")
        assert found == [("scott derrickson", 1.0), ("united states", 1.0)]

    def test_two_ways_to_write_a_name_are_one_entity_but_for_its_words(self):
        found = linked("The Beatles came from Liverpool.", "Liverpool's port is large.", "He likes Liverpool.")
        assert all(("liverpool", 1.0) in links for links in found)
        assert found[0][0] == ("beatles", 1.0)

    def test_no_text_names_nothing(self):
        assert linked("it rains.", "東") == [[], []]

    def test_what_was_read_is_read_from_the_store_by_the_next_run(self, tmp_path, monkeypatch):
        first = SpacyNERLinker("spacy_en")
        first.bind(Workspace(Store(tmp_path)))
        expected = linked("Paris and Rome.", "It rains.", linker=first)
        monkeypatch.setattr("graphcontext.graph.linker_spacy_ner.load_pipeline", None)
        second = SpacyNERLinker("spacy_en")
        second.bind(Workspace(Store(tmp_path)))
        assert linked("It rains.", "Paris and Rome.", linker=second) == expected[::-1]
