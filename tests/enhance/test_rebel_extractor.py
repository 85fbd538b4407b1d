"""Triples that REBEL writes, and the windows it reads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcontext.data.records import Passage
from graphcontext.enhance.rebel_extractor import RebelExtractor, parse_rebel, windows
from graphcontext.errors import InputError, MissingWeightsError
from graphcontext.generate import seq2seq_model
from graphcontext.generate.seq2seq_model import Output, Seq2SeqModel
from tests.tiny_models import save_tiny_bart, save_tiny_t5

# the model card's example, in the format in which it prints what the model writes
PUNTA_CANA = (
    "<triplet> Punta Cana <subj> La Altagracia Province <obj> located in the administrative territorial entity"
    " <subj> Dominican Republic <obj> country <triplet> Higuey <subj> La Altagracia Province"
    " <obj> located in the administrative territorial entity <subj> Dominican Republic <obj> country"
    " <triplet> La Altagracia Province <subj> Dominican Republic <obj> country"
)


@pytest.fixture(autouse=True)
def _free():
    yield
    seq2seq_model.free()


class TestParse:
    def test_the_model_cards_example(self):
        parsed = parse_rebel(PUNTA_CANA)
        within = "located in the administrative territorial entity"
        assert parsed.triples == (
            ("Punta Cana", within, "La Altagracia Province"),
            ("Punta Cana", "country", "Dominican Republic"),
            ("Higuey", within, "La Altagracia Province"),
            ("Higuey", "country", "Dominican Republic"),
            ("La Altagracia Province", "country", "Dominican Republic"),
        )
        assert (parsed.n_malformed, parsed.fault) == (0, None)

    def test_markers_need_no_blanks(self):
        assert parse_rebel("<triplet>ss<subj>sockets<obj>lists").triples == (("ss", "lists", "sockets"),)

    @pytest.mark.parametrize(
        ("part", "n_malformed"),
        [
            ("<triplet> ss", 1),  # a head alone
            ("<triplet> ss <subj> sockets", 1),  # no relation
            ("<triplet> ss <subj> sockets <obj>", 1),
            ("<triplet> ss <subj> <obj> lists", 1),  # no tail
            ("<triplet> <subj> sockets <obj> lists <subj> ports <obj> lists", 2),  # no head, for two tails
            ("<triplet> ss <subj> sockets <obj> lists <obj> shows", 1),  # two relations
            ("<triplet> ss <obj> lists", 1),
        ],
    )
    def test_a_malformed_part_is_dropped_and_counted(self, part, n_malformed):
        whole = "<triplet> lsof <subj> files <obj> lists"
        for text in (f"{part} {whole}", f"{whole} {part}"):
            parsed = parse_rebel(text)
            assert (parsed.triples, parsed.n_malformed) == ((("lsof", "lists", "files"),), n_malformed)
        assert parse_rebel(part).fault.startswith('parse: no triple in "<triplet>')

    def test_text_before_the_first_triple_is_malformed(self):
        assert parse_rebel("well: <triplet> ss <subj> ports <obj> lists").n_malformed == 1
        assert parse_rebel("no markers").fault == 'parse: no triple in "no markers"'

    def test_of_a_cut_output_the_whole_triples_count(self):
        parsed = parse_rebel("<triplet> ss <subj> ports <obj> lists <subj> Linux <obj> platf", was_cut=True)
        assert (parsed.triples, parsed.n_malformed) == ((("ss", "lists", "ports"),), 1)
        assert parse_rebel("<triplet> ss <subj> ports <obj> li", was_cut=True).fault.startswith("truncated: ")

    def test_t14_no_text_is_no_fault(self):
        assert parse_rebel(" ") == parse_rebel("")
        assert (parse_rebel("").triples, parse_rebel("").fault) == ((), None)

    pieces = st.sampled_from(["<triplet>", "<subj>", "<obj>", "<s>", "ss", " ", "|", "\n"])

    @given(st.lists(pieces | st.text(max_size=5), max_size=30).map("".join), st.booleans())
    def test_no_output_breaks_it(self, text, was_cut):
        parsed = parse_rebel(text, was_cut)
        assert all(all(part and part == part.strip() for part in triple) for triple in parsed.triples)
        assert (parsed.fault is None) or not parsed.triples


class TestWindows:
    @staticmethod
    def count(text: str) -> int:
        return len(text.split()) + 2  # and what begins and ends an input

    def test_whole_sentences_are_joined_up_to_the_length(self):
        text = "One two. Three four. Five.\nSix seven eight nine."
        assert windows(text, self.count, 7) == ["One two. Three four. Five.", "Six seven eight nine."]
        assert windows(text, self.count, 6) == ["One two. Three four.", "Five.", "Six seven eight nine."]

    def test_a_long_sentence_stands_alone_and_no_text_has_no_window(self):
        assert windows("A b c d e f. G.", self.count, 4) == ["A b c d e f.", "G."]
        assert windows("", self.count, 4) == []

    @given(st.lists(st.lists(st.sampled_from(["Aa", "Bb", "Cc"]), min_size=1, max_size=5), max_size=8))
    def test_no_word_is_lost(self, lines):
        text = "\n".join(" ".join(line) + "." for line in lines)
        found = windows(text, self.count, 8)
        assert " ".join(found).split() == text.split()
        assert all(self.count(window) <= 8 for window in found)


@pytest.fixture
def bart(tmp_path):
    return save_tiny_bart(tmp_path / "bart")


def written(monkeypatch, outputs: dict[str, Output]) -> list[str]:
    """Let the model write these outputs; the list names what it reads."""
    read: list[str] = []

    def write(self, texts, decoding, batch_size, keep_markers):
        assert keep_markers
        read.extend(texts)
        return [outputs.get(text, Output("", "stop", 0)) for text in texts]

    monkeypatch.setattr(Seq2SeqModel, "write", write)
    return read


def passages(*texts: str) -> list[Passage]:
    return [Passage(str(i), "", "", text) for i, text in enumerate(texts)]


def test_the_windows_of_a_passage_are_joined(bart, monkeypatch):
    ss, both = "<triplet> ss <subj> ports <obj> lists", "<triplet> ss <subj> ports <obj> lists <subj> x <obj> y"
    read = written(
        monkeypatch,
        {
            "Use ss to list ports.": Output(ss, "stop", 7),
            "Lsof lists files.": Output(both + " <subj> z", "length", 12, n_cut=3),
        },
    )
    extractor = RebelExtractor(str(bart), max_source_length=9)
    first, second = extractor.extract(passages("Use ss to list ports.\nLsof lists files.", ""))
    assert read == ["Use ss to list ports.", "Lsof lists files."]  # 6 and 4 tokens, with two around them
    assert first.triples == (("ss", "lists", "ports"), ("ss", "y", "x"))
    assert (first.status, first.reason) == ("ok", "1 malformed; 1 of 2 windows cut")
    assert (second.triples, second.status, second.reason) == ((), "empty", None)


def test_t14_only_malformed_output_is_a_failure(bart, monkeypatch):
    written(monkeypatch, {"One.": Output("not a triple", "stop", 3), "Two.": Output("<triplet> ss", "length", 9)})
    one, two = RebelExtractor(str(bart)).extract(passages("One.", "Two."))
    assert (one.status, one.reason) == ("failed", 'parse: no triple in "not a triple"')
    assert (two.status, two.reason.partition(":")[0]) == ("failed", "truncated")


def test_the_first_triples_are_kept(bart, monkeypatch):
    written(monkeypatch, {"One.": Output(PUNTA_CANA, "stop", 60)})
    (found,) = RebelExtractor(str(bart), max_triples=2).extract(passages("One."))
    assert found.triples == parse_rebel(PUNTA_CANA).triples[:2]


def test_a_bart_that_learnt_one_triple_writes_it(tmp_path):
    import torch
    from transformers import AutoTokenizer, BartForConditionalGeneration

    folder = save_tiny_bart(tmp_path / "bart", init_std=0.1, dropout=0.0)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = BartForConditionalGeneration.from_pretrained(folder)
    labels = tokenizer("<triplet> ss <subj> ports <obj> lists", return_tensors="pt").input_ids[:, 1:]
    source = tokenizer("use ss to list open ports", return_tensors="pt").input_ids
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(60):
        optimiser.zero_grad()
        model(input_ids=source, labels=labels).loss.backward()
        optimiser.step()
    model.save_pretrained(folder)
    extractor = RebelExtractor(str(folder), beams=3, max_source_length=20, max_target_length=20)
    (found,) = extractor.extract(passages("use ss to list open ports"))
    assert (found.triples, found.status, found.reason) == ((("ss", "lists", "ports"),), "ok", None)


def test_a_model_without_markers_is_no_rebel(tmp_path):
    folder = save_tiny_t5(tmp_path / "t5", markers=())
    with pytest.raises(InputError, match="is no REBEL: its tokenizer has no <triplet>"):
        RebelExtractor(str(folder)).extract(passages("One."))


def test_wrong_values_and_missing_weights_are_named():
    for wrong, message in [
        ({"max_triples": 0}, "max_triples=0"),
        ({"beams": 0}, "beams=0"),
        ({"max_source_length": 2}, "max_source_length=2"),
        ({"max_target_length": 0}, "max_target_length=0"),
        ({"dtype": "float64"}, r"extractor\.dtype=float64"),
        ({"device": "tpu"}, r"extractor\.device=tpu"),
        ({"batch_size": 0}, r"extractor\.batch_size=0"),
    ]:
        with pytest.raises(InputError, match=message):
            RebelExtractor("nobody/nothing", **wrong)
    with pytest.raises(MissingWeightsError, match="no weights: nobody/nothing"):
        RebelExtractor("nobody/nothing").extract(passages("One."))
