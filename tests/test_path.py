"""The way of a traversal as text and as a drawing: what is said, where it stands, and that nothing of it is markup."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcontext import api, show
from graphcontext.cli import main
from graphcontext.component import records_steps
from graphcontext.conf_tree import options
from graphcontext.data.records import Passage, Ranking, Scored, Source, Step
from graphcontext.path import lines, names, tree
from graphcontext.path_svg import BOX, SIZE, figure, measure, svg, wrap

CONF = str(Path(__file__).parent / "table" / "conf")
NASTY = "<script>alert(1)</script> & \"'\x1b[31m ]]> <b>"
PASSAGES = {
    "a": Passage("a", "Ada", "Ada was born in London.", ""),
    "b": Passage("b", "London", "London lies on the Thames.", ""),
    "c": Passage("c", "report.pdf", "", "", Source(page=3), kind="page"),
    "x": Passage("x", NASTY, NASTY, ""),
}
STEPS = (
    Step((), "Which river?", ("a", "x"), 9),
    Step(("a",), "Ada's town lies\non a river", ("b", "a2"), 5),
    Step(("x",), "", (), 0, "no neighbour"),
    Step(("a", "b"), "more", ("c",), 2),
)
RANKING = Ranking("q", tuple(Scored(i, 1.0) for i in "abcx"), steps=STEPS)


def elements(drawing: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(drawing).iter())


def test_the_way_as_text():
    assert lines(RANKING, PASSAGES, ["b"])[:8] == [
        "seed [1] Ada: Ada was born in London.",
        "  evidence: Ada's town lies on a river",
        "    → [2] London: London lies on the Thames.  (gold)",
        "      evidence: more",
        "        → [3] report.pdf: page 3",
        "    → [–] passage a2",
        f"seed [4] {' '.join(NASTY.split())}: {' '.join(NASTY.split())}",
        "  (no neighbour)",
    ]
    assert lines(Ranking("q", ()), PASSAGES) == [] and figure("q", Ranking("q", ()), PASSAGES) == ""


def test_evidence_that_is_the_question_is_not_said_and_why_a_path_ends_is():
    # as agent=tfidf writes them: of "a" a neighbour, of "x" none, of "b" nothing to say
    steps = (
        *(Step((), "Which river?", ("a", "x"), 9), Step(("a",), "Which river?", ("b",), 5)),
        *(Step(("x",), "Which river?", (), 0, "no neighbour"), Step(("a", "b"), "Thames", (), 1)),
    )
    ranking = Ranking("q", tuple(Scored(i, 1.0) for i in "abx"), steps=steps)
    assert [line.strip()[:29] for line in lines(ranking, PASSAGES)] == [
        "seed [1] Ada: Ada was born in",
        "→ [2] London: London lies on ",
        "evidence: Thames",
        f"seed [3] {' '.join(NASTY.split())}"[:29],
        "(no neighbour)",
    ]
    texts = [e for e in elements(svg("Which river?", steps, names(ranking, PASSAGES))) if e.tag.endswith("text")]
    assert [e.text for e in texts if e.get("class") in ("e", "r")] == ["Thames", "no neighbour"]
    assert [e.text for e in texts].count("Which river?") == 1
    assert {float(e.get("x")) for e in texts if (e.text or "")[:1] == "["} == {263, 567}  # a short arrow: 44 pixels


TABLE = "| Name | Load | |\n| --- | --- | --- |\n| Ship 0 | 5 tons | x\\|y |"


@pytest.mark.parametrize(
    ("title", "text", "shown"),
    [
        ("Ships", f"Ships (rows 1 to 20 of 60)\n{TABLE}", "rows 1 to 20 of 60"),
        ("Harbour", f"Table 1: Ships (rows 1 to 20 of 60)\n{TABLE}", "Table 1: Ships (rows 1 to 20 of 60)"),
        ("Ships", f"Ships\n{TABLE}", "table of Name, Load"),
        ("Ship", f"Ships\n{TABLE}", "Ships"),
        ("Harbour", TABLE, "table of Name, Load"),
        ("Harbour", "a | b\n| c", "a | b | c"),
    ],
)
def test_a_table_is_shown_by_caption_and_rows(title, text, shown):
    known = {"t": Passage("t", title, text, text, kind="table")}
    steps = (Step((), "q", ("t",), 1), Step(("t",), f"q\n{text}", (), 0))
    found = lines(Ranking("q", (Scored("t", 1.0),), steps=steps), known)
    assert found[0] == f"seed [1] {title}: {shown}" and "---" not in found[1]


def test_the_way_of_pairs_without_seeds():
    # as retriever=mdr notes them: two steps from one passage, none before
    steps = (Step(("a",), "q Ada", ("b",), 9), Step(("a",), "q Ada", ("c",), 9))
    ((seed,),) = [turn.branches for turn in tree(steps)]
    assert seed.passage == "a" and [turn.branches[0].passage for turn in seed.turns] == ["b", "c"]


def test_what_a_chain_of_thought_looked_for_stands_before_what_it_found():
    # as retriever=ircot notes them: no passage leads to another; a route of retriever=structured stands alone
    steps = (
        Step((), "Which river?", ("a",), 9),
        Step((), "Ada lived in Lis.", ("b",), 9),
        Step((), "It is.", (), 0, "answered"),
    )
    ranking = Ranking("q", (Scored("a", 1.0), Scored("b", 0.5)), steps=steps)
    found = lines(ranking, PASSAGES, question="Which river?")
    assert [line.partition(" [")[0] for line in found] == [
        *("seed", "evidence: Ada lived in Lis.", "→", "evidence: It is.", "(answered)"),
    ]
    texts = [e.text for e in elements(svg("Which river?", steps, names(ranking, PASSAGES))) if e.tag.endswith("text")]
    assert texts.count("Ada lived in Lis.") == texts.count("answered") == 1
    route = Ranking("q", ranking.passages, steps=(Step((), "page 3", ("a",), 9),))
    assert lines(route, PASSAGES, question="Which river?")[0] == "evidence: page 3"


def test_all_text_is_escaped_and_nothing_is_loaded():
    steps = (Step((), NASTY, ("x",), 9), Step(("x",), NASTY, (), 0, NASTY))
    ranking = Ranking("q", (Scored("x", 1.0),), steps=steps)
    drawing = figure(NASTY, ranking, PASSAGES, ["x"])
    assert "<script" not in drawing and "\x1b" not in drawing and "<b>" not in drawing
    tags = {element.tag.rpartition("}")[2] for element in elements(drawing)}
    assert tags == {"figure", "svg", "title", "style", "rect", "text", "path"}
    assert not re.search(r"href|url\(|@import|https?://(?!www\.w3\.org/2000/svg)", drawing)
    shown = " ".join(element.text or "" for element in elements(drawing))
    assert shown.count("<script>alert(1)</script>") >= 5  # question twice, title, text, evidence


def test_gold_passages_are_marked():
    drawing = svg("Which river?", STEPS, names(RANKING, PASSAGES, ["b"]))
    assert drawing.count('class="g"') == 1 and drawing.count("★ gold passage") == 1


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(exclude_categories=["C"]), max_size=300), st.floats(40, 400), st.integers(1, 6))
def test_wrapped_lines_fit_and_lose_nothing_but_what_is_cut(text, width, n):
    found = wrap(text, width, n)
    assert len(found) <= n and all(measure(line) <= width + SIZE for line in found)
    if not found or not found[-1].endswith("…"):
        assert sum(len(line.replace(" ", "")) for line in found) == sum(map(len, text.split()))


TITLES = st.text("Wi <&\"'", max_size=60)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(TITLES, TITLES), min_size=6, max_size=6), TITLES, st.data())
def test_boxes_do_not_overlap_and_stand_within_the_drawing(texts, evidence, data):
    passages = {str(n): Passage(str(n), *pair, "") for n, pair in enumerate(texts)}
    some = st.lists(st.sampled_from("012345"), max_size=3, unique=True).map(tuple)
    seeds = data.draw(some)
    steps = [Step((), "q", seeds, 6)]
    for path in [(seed,) for seed in seeds]:
        steps.append(Step(path, evidence, data.draw(some), 3, data.draw(st.sampled_from([None, "no neighbour"]))))
    deeper = [(*step.path, one) for step in steps[1:] for one in step.chosen]
    steps += [Step(path, evidence, data.draw(some), 3) for path in deeper[:4]]
    ranking = Ranking("q", (), steps=tuple(steps))
    drawing = ElementTree.fromstring(svg(evidence, ranking.steps, names(ranking, passages)))
    width, height = (float(drawing.get(key)) for key in ("width", "height"))
    rects = [e for e in drawing.iter() if e.tag.endswith("rect")]
    boxes = [tuple(float(e.get(k)) for k in ("x", "y", "width", "height")) for e in rects]
    for x, y, w, h in boxes:
        assert 0 <= x <= x + w <= width and 0 <= y <= y + h <= height
    for (x, y, w, h), (x2, y2, w2, h2) in itertools.combinations(boxes, 2):
        assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y
    for text in (e for e in drawing.iter() if e.tag.endswith("text")):
        at, end = float(text.get("x")), float(text.get("x")) + measure(text.text or "")
        above = float(text.get("y"))
        own = [b for b in boxes if b[0] <= at <= b[0] + b[2] and b[1] <= above <= b[1] + b[3]]
        assert (end <= own[0][0] + BOX) if own else (end <= width and above <= height)
        assert own or all(not (x < end and at < x + w and y < above < y + h) for x, y, w, h in boxes)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory):
    """A traversal without a graph, by a model that answers at once."""
    root = tmp_path_factory.mktemp("way")
    words = ("experiment=tests/base", "dataset.limit=2", "retriever=traversal", "agent=chat")
    more = ("retriever.use_graph=false", "retriever.top_k=4", "retriever.branching=2")
    return api.run(*words, *more, config_dir=CONF, root=root)


def test_a_run_shows_the_way_and_what_the_agent_was_asked(run):
    item = run.questions()[0].id
    text = show.text([run], item)
    assert "-- path\n   seed [1] " in text and "     evidence: " in text and "→ [2] " in text
    assert "-- ranking\n   1. " in text and not re.search(r"   1\. \d\.\d", text)
    assert "-- prompt (agent, 1 of 2)\n   <system> " in text
    assert "passage " not in text.partition("-- path")[2].partition("-- prompt")[0]  # each by its title


def test_a_page_and_a_file_draw_it(run, tmp_path, capsys):
    item = run.questions()[0].id
    page = show.write_html([run], None, str(tmp_path / "page.html")).read_text()
    assert page.count('<figure class="path">') == 2 and page.count("<h4>path</h4>") == 2
    assert main(["show", str(run.path), "--item", item, "--svg", str(tmp_path / "way.svg")]) == 0
    assert capsys.readouterr().out == f"drawing: {tmp_path / 'way.svg'}\n"
    assert ElementTree.parse(tmp_path / "way.svg").getroot().tag.endswith("svg")
    assert main(["show", str(run.path), "--svg", str(tmp_path / "way.svg")]) == 2
    assert "needs one RUN and --item ID" in capsys.readouterr().err


def test_a_moved_run_shows_what_its_contexts_hold(run, tmp_path):
    moved = tmp_path / "elsewhere" / "runs" / run.path.name
    moved.parent.mkdir(parents=True)
    moved.mkdir()
    for file in run.path.iterdir():
        (moved / file.name).write_bytes(file.read_bytes())
    text = show.text([type(run)(moved)], run.questions()[0].id)
    assert "-- path\n   seed [1] " in text


def test_an_answer_shows_the_way(tmp_path, capsys, monkeypatch):
    words = ["experiment=tests/base", "retriever=traversal", "agent=tfidf", "retriever.use_graph=false"]
    question = "How do I find which process holds a port?"
    flags = ["--config-dir", CONF, "--html", "page.html", "--svg", "way.svg", "--quiet"]
    assert main(["ask", question, *words, "retriever.top_k=4", *flags]) == 0
    out = capsys.readouterr().out
    assert "\nPath\n  seed [1] " in out and out.endswith("page: page.html\ndrawing: way.svg\n")
    assert '<figure class="path">' in Path("page.html").read_text() and Path("way.svg").is_file()


def test_a_drawing_that_cannot_be_is_refused_before_anything_is_computed(capsys, monkeypatch):
    monkeypatch.setattr(api, "ask", lambda *_, **__: pytest.fail("it was computed"))
    words = ["ask", "Which port?", "experiment=tests/base", "--config-dir", CONF]
    assert main([*words, "--svg", "way.svg"]) == 2
    assert "--svg way.svg: there is no path to draw" in capsys.readouterr().err
    assert main([*words, "--html", "nowhere/page.html"]) == 2
    assert "--html nowhere/page.html: there is no folder nowhere" in capsys.readouterr().err


def test_which_retrievers_have_a_path():
    with_path = {
        name for name in options("retriever") if records_steps(api.compose(f"retriever={name}").config["retriever"])
    }
    assert with_path == {"ircot", "mdr", "structured", "traversal"}
    assert records_steps({"_target_": f"{Mine.__module__}.Mine"})  # what a user's own gives is not known


class Mine:
    """A retriever of a user's own."""

    def retrieve(self): ...
