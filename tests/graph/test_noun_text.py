"""The nouns of a passage, stemmed."""

from __future__ import annotations

import pytest

from graphcontext.errors import InputError, MissingWeightsError
from graphcontext.graph import noun_text
from graphcontext.graph.noun_text import NounText, stemmed
from graphcontext.store import Store, Workspace
from tests.graph.passages import corpus


def test_stop_words_and_single_characters_are_dropped_and_the_rest_is_stemmed():
    assert (
        stemmed(["the", "capital", "cities", "of", "a", "country", ",", "x", "東", "東京"]) == "capit citi countri 東京"
    )


def test_wrong_values_and_a_missing_model_are_named():
    with pytest.raises(InputError, match=r"noun_text\.tag=stem; .*did you mean stemmed"):
        NounText("spacy_en", tag="stem")
    with pytest.raises(MissingWeightsError, match="nobody/nothing"):
        NounText("nobody/nothing").nouns(["x"])


@pytest.mark.needs_models
class TestTagged:
    def test_nouns_and_names_stay(self):
        nouns = NounText("spacy_en").nouns(["The old University of Zürich teaches two sciences.", "", "It rains."])
        assert nouns == ["univers zürich scienc", "", ""]

    def test_the_codes_order_tags_what_was_stemmed(self):
        raw, stems = NounText("spacy_en"), NounText("spacy_en", tag="stemmed")
        text = "The director quickly wrote a story about an American city"
        assert raw.nouns([text]) == ["director stori citi"]
        found = stems.nouns([text])[0].split()
        assert set(found) <= {"director", "quickli", "wrote", "stori", "american", "citi"}
        assert "director" in found

    def test_a_text_is_the_same_alone_and_among_others(self):
        texts = [
            f"The {a} of {b} likes a {c}." for a in ("king", "dog") for b in ("Rome", "Bern") for c in ("song", "hat")
        ]
        together = NounText("spacy_en").nouns(texts)
        assert together == [NounText("spacy_en").nouns([text])[0] for text in texts]

    def test_each_text_is_tagged_once_per_store(self, tmp_path, monkeypatch):
        first = NounText("spacy_en")
        first.bind(Workspace(Store(tmp_path)))
        pool = corpus(("A", "A big dog."), ("B", "A small cat."))
        first.begin({pool.id: pool, "again": pool})
        (file,) = (tmp_path / "noun_text").iterdir()
        assert len(file.read_text().splitlines()) == 2
        monkeypatch.setattr(noun_text, "load_pipeline", None)
        second = NounText("spacy_en")
        second.bind(Workspace(Store(tmp_path)))
        assert [second.of(p) for p in pool.passages] == ["dog", "cat"]
        other = NounText("spacy_en", tag="stemmed")
        other.bind(Workspace(Store(tmp_path)))
        with pytest.raises(TypeError):  # another order is another result: it is not taken from there
            other.of(pool.passages[0])
