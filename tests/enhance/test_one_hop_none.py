"""Without a source of one-hop triples the context's own are left."""

from __future__ import annotations

from graphcontext.enhance.one_hop_none import NoOneHop
from graphcontext.enhance.triples import Extraction, Triples
from graphcontext.enhance.wikidata import Wikidata
from tests.enhance.test_triples import CORPUS, SS, Extractor, Question, Ranking, Scored


def test_it_adds_what_triples_adds_and_says_so() -> None:
    extractor = Extractor({"p0": Extraction((SS,))})
    given = [Question("q", "?", "c")], [Ranking("q", (Scored("p0", 1.0),))], {"c": CORPUS}
    (plain,), (context,) = Triples(extractor).enhance(*given), Wikidata(extractor, NoOneHop()).enhance(*given)
    assert context.units == plain.units
    assert context.reason == "no one-hop entry"
