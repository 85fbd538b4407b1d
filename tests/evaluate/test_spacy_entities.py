"""Entities by spaCy: what counts as one, and what names its weights."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphcontext.component import fingerprint
from graphcontext.config import compose
from graphcontext.data.records import Prediction, Question
from graphcontext.errors import MissingWeightsError
from graphcontext.evaluate.entities import EntityJaccard
from graphcontext.evaluate.spacy_entities import SpacyEntities


def test_a_missing_model_is_named() -> None:
    with pytest.raises(MissingWeightsError, match="nobody/nothing"):
        SpacyEntities("nobody/nothing").entities("x")


def test_the_signature_names_the_weights_and_no_machine_path(tmp_path: Path) -> None:
    signature = EntityJaccard(SpacyEntities("spacy_en")).signature
    assert signature == "entity_jaccard|SpacyEntities spacy_en@e94cbf6c2424"
    folder = tmp_path / "own_en"
    folder.mkdir()
    (folder / "config.cfg").write_text("one")
    first = SpacyEntities(str(folder)).signature
    (folder / "config.cfg").write_text("two")
    assert first.startswith("SpacyEntities own_en@") and SpacyEntities(str(folder)).signature != first


def test_the_key_holds_only_what_can_change_entities() -> None:
    node = compose(["metric=[entity_jaccard]"]).config["metric"]["entity_jaccard"]
    assert set(fingerprint(node)["extractor"]) == {"_target_", "_version_", "model", "weights"}


@pytest.mark.needs_models
def test_entities_are_named_entities_and_noun_phrases_once() -> None:
    found = SpacyEntities("spacy_en").entities("The Apache server runs on Ubuntu.\nThe Apache server stops.")
    assert found.count("apache server") == 1
    assert "ubuntu" in found
    assert SpacyEntities("spacy_en").entities("") == []


@pytest.mark.needs_models
def test_the_metric_takes_them_as_they_are() -> None:
    text = "Canonical maintains Ubuntu in London."
    question = Question("q", "who?", "corpus", ("Nothing is known.", text))
    scores = EntityJaccard(SpacyEntities("spacy_en")).score([question], [Prediction("q", "who?", text, ())], [], [])
    assert scores == [{"entity_jaccard": 1.0}]
