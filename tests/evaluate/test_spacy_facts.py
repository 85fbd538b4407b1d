"""Facts by spaCy: what counts as one, what names its weights, and that metrics share a parse."""

from __future__ import annotations

import pytest

from graphcontext.component import fingerprint
from graphcontext.config import compose
from graphcontext.errors import MissingWeightsError
from graphcontext.evaluate import spacy_facts
from graphcontext.evaluate.spacy_facts import SpacyFacts


@pytest.fixture(autouse=True)
def _forget():
    yield
    spacy_facts.release()


def test_a_missing_model_is_named_and_nothing_to_read_needs_none() -> None:
    absent = SpacyFacts("nobody/nothing")
    with pytest.raises(MissingWeightsError, match="nobody/nothing"):
        absent.facts(["x"])
    assert absent.facts([]) == []


def test_the_signature_names_the_weights() -> None:
    assert SpacyFacts("spacy_en").signature == "SpacyFacts spacy_en@e94cbf6c2424"


def test_the_key_holds_only_what_can_change_facts() -> None:
    node = compose(["metric=[factsumm]"]).config["metric"]["factsumm"]
    assert set(fingerprint(node)["extractor"]) == {"_target_", "_version_", "model", "weights"}


@pytest.mark.needs_models
def test_facts_are_lemmas_of_prose_each_once() -> None:
    text = "Canonical maintains the old servers.\nCanonical maintains a server. It maintains them.\n\n    sudo ss -tlnp"
    [found, nothing] = SpacyFacts("spacy_en").facts([text, "sudo ss -tlnp | grep :80"])
    assert found == (("canonical", "maintains", "server"),)
    assert nothing == ()


@pytest.mark.needs_models
def test_a_text_is_parsed_once_for_all_metrics_and_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    lines = spacy_facts.prose_lines
    monkeypatch.setattr(spacy_facts, "prose_lines", lambda text: seen.append(text) or lines(text))
    first = SpacyFacts("spacy_en").facts(["Canonical maintains Ubuntu.", "Linus wrote Git."])
    again = SpacyFacts("spacy_en").facts(["Linus wrote Git.", "Canonical maintains Ubuntu.", "Linus wrote Git."])
    assert again == [first[1], first[0], first[1]]
    assert seen == ["Canonical maintains Ubuntu.", "Linus wrote Git."]
