"""Triples from a dependency parse."""

from __future__ import annotations

import pytest

from graphcontext.data.records import Passage
from graphcontext.enhance.spacy_extractor import SpacyExtractor, prose_lines
from graphcontext.errors import InputError, MissingWeightsError


def extract(text: str, max_triples: int = 16):
    (extraction,) = SpacyExtractor("spacy_en", None, max_triples).extract([Passage("p", "", "", text)])
    return extraction


def test_code_is_left_out_and_lines_are_kept_apart():
    text = "List sockets with ss:\n\nsudo ss -tlnp | grep :80\n    indented code.\n\nIt shows a process."
    assert prose_lines(text) == ["List sockets with ss:", "It shows a process."]


def test_wrong_values_and_a_missing_model_are_named():
    with pytest.raises(InputError, match="max_triples=0"):
        SpacyExtractor("spacy_en", max_triples=0)
    with pytest.raises(MissingWeightsError, match="nobody/nothing"):
        SpacyExtractor("nobody/nothing").extract([Passage("p", "", "", "x")])


@pytest.mark.needs_models
class TestParsed:
    def test_subject_verb_object(self):
        assert extract("The daemon starts the services.").triples == (("daemon", "starts", "services"),)

    def test_a_preposition_belongs_to_the_relation(self):
        assert ("Apache", "listens on", "port 80") in extract("Apache listens on port 80.").triples

    def test_negation_and_particles_are_kept(self):
        assert extract("The server does not open the file.").triples == (("server", "not open", "file"),)

    def test_an_imperatives_object_is_the_subject_of_its_purpose(self):
        assert ("ss", "list", "sockets") in extract("Use ss to list sockets.").triples

    def test_pronouns_are_no_heads(self):
        assert extract("You should restart it.").triples == ()

    def test_the_limit_keeps_the_first(self):
        text = "The daemon starts the services. Apache listens on port 80."
        assert extract(text, 1).triples == extract(text).triples[:1]

    def test_t15_a_text_without_triples_is_empty(self):
        extraction = extract("sudo ss -tlnp | grep :80")
        assert (extraction.triples, extraction.status) == ((), "empty")
        assert extract("").status == "empty"

    def test_passages_by_index_and_alone_alike(self):
        texts = ["The daemon starts the services.", "", "Apache listens on port 80.\nIt serves pages."]
        passages = [Passage(str(i), "", "", text) for i, text in enumerate(texts)]
        assert SpacyExtractor("spacy_en").extract(passages) == [extract(text) for text in texts]
