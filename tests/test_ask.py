"""One question of the user's own: answer, sources, and what is not asked twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphcontext import api
from graphcontext.ask import Asked
from graphcontext.data.records import Context, Passage, Prediction, Ranking, Scored, Source, Step, Unit
from graphcontext.errors import InputError

CONF = str(Path(__file__).parent / "table" / "conf")
QUESTION = "How do I find which process holds a port?"


def ask(question: str, *overrides: str) -> Asked:
    return api.ask(question, "experiment=tests/base", *overrides, config_dir=CONF)


def test_an_answer_names_its_sources() -> None:
    asked = ask(f"  {QUESTION}\n")
    from instant import InstantLLM  # importable now: the parent of the conf tree is

    text = asked.text()
    answer, sources = text.split("\n\nSources\n")
    assert answer == asked.prediction.prediction and "port" in text
    lines = sources.splitlines()
    assert lines[0].startswith("  [1] ") and "(score 0." in lines[0]
    assert lines[1].strip().startswith("https://cqa.example.org/questions/")
    assert ", by user" in lines[1] and lines[1].endswith("CC0 1.0")
    assert lines[-1] == f"context: {asked.context.n_tokens} tokens, 0 units cut to fit the budget"
    assert not Path("runs").exists()

    before = len(InstantLLM.asked)
    again = ask(QUESTION)  # the same question, but for blanks around it
    assert again == asked and len(InstantLLM.asked) == before
    ask(QUESTION, "generator.max_new_tokens=5")
    ask(QUESTION + "?")
    assert len(InstantLLM.asked) == before + 2


@pytest.mark.parametrize("blank", ["", " \n\t"])
def test_a_blank_question_is_refused(blank: str) -> None:
    with pytest.raises(InputError, match="the question is blank"):
        ask(blank)
    assert not (Path("store") / "corpus").exists()


def asked(ranking: Ranking, prediction: Prediction, units: tuple[Unit, ...] = ()) -> Asked:
    passages = {
        "p": Passage("p", "A title", "text", "text"),
        "q": Passage("q", "Other", "text", "text", Source("https://x.org/1", "", "CC BY-SA 4.0")),
    }
    return Asked(prediction, Context("a", units, 12, 1), ranking, passages)


def test_sources_without_a_link_and_added_facts() -> None:
    ranking = Ranking("a", (Scored("p", 0.5), Scored("q", 0.25)), fallback="cosine")
    facts = Unit("w", "ss instance of command.", "wikidata"), Unit("t", "ss lists sockets\nlsof lists files", "spacy")
    units = (Unit("p", "text", "p"), *facts)
    text = asked(ranking, Prediction("a", "Why?", "Since.", ()), units).text()
    assert text.splitlines() == [
        "Since.",
        "",
        "Sources",
        "  [1] A title  (score 0.5000)",
        "      source unknown",
        "  [2] Other  (score 0.2500)",
        "      https://x.org/1, CC BY-SA 4.0",
        "  ranked by fall-back: cosine (the question has no neighbour in the graph)",
        "",
        "Facts added to the context, by wikidata",
        "  ss instance of command.",
        "",
        "Facts added to the context, by spacy",
        "  ss lists sockets",
        "  lsof lists files",
        "",
        "context: 12 tokens, 1 units cut to fit the budget",
    ]


def test_sources_that_the_model_was_not_shown_are_marked() -> None:
    passages = {name: Passage(name, name.upper(), f"text of {name}", f"text of {name}") for name in "pqr"}
    ranking = Ranking("a", tuple(Scored(name, 0.5) for name in "pqr"))
    units = (Unit("u", "text of p\ntext of q", "p"),)  # q stands in p's, as in a pair
    text = Asked(Prediction("a", "Why?", "Since", ()), Context("a", units, 12, 1), ranking, passages).text()
    assert "\n  [2] Q  (score 0.5000)\n" in text and "\n  [3] R  (score 0.5000)  (not shown to the model)\n" in text
    assert text.endswith("1 units cut to fit the budget; 1 of 3 sources were not shown to the model")


def test_a_page_that_no_document_has_is_said_first() -> None:
    ranking = Ranking("a", (Scored("p", 0.5),), fallback="structure_not_found")
    text = asked(ranking, Prediction("a", "What is on page 99?", "Rain", ()), (Unit("p", "text", "p"),)).text()
    assert text.splitlines()[2].startswith("no document has such a page or table")
    assert "structure_not_found" not in text


def test_a_path_has_no_scores_and_a_cut_answer_names_the_whole_key() -> None:
    ranking = Ranking("a", (Scored("p", 1.0), Scored("q", 0.5)), steps=(Step((), "Why?", ("p", "q"), 2),))
    text = asked(ranking, Prediction("a", "Why?", "Since", (), n_tokens=24, finish="length")).text()
    assert "score" not in text and "\n  [2] Other  (not shown to the model)\n" in text
    assert "\nthe answer was cut at 24 tokens (generator.max_new_tokens)\n" in text


def test_no_answer_and_no_source_are_said() -> None:
    text = asked(Ranking("a", ()), Prediction("a", "Why?", " ", (), status="failed", reason="server: 500")).text()
    assert text.startswith("(no answer: server: 500)\n") and "none: nothing similar in the pool" in text
    assert "(no answer: empty)" in asked(Ranking("a", ()), Prediction("a", "Why?", "", (), status="empty")).text()
