"""What of a run stands in for the paper's choice, and how it is said."""

from __future__ import annotations

from graphcontext.config import Composed
from graphcontext.table.substitutions import relevant, stand_ins, substitutions

MINILM = {"_target_": "graphcontext.retrieve.encoder.SentenceEncoder", "model": "minilm"}
BGE = {**MINILM, "model": "bge"}
SPACY = {"_target_": "graphcontext.evaluate.spacy_facts.SpacyFacts", "model": "spacy_en"}
SCORER = {"model": "minilm", "num_layers": 6}
SMOL = {"_target_": "graphcontext.generate.hf.HuggingFaceLLM", "model": "smollm2"}


def composed(node: dict, llm: dict, with_llm: bool = True, **choices: str) -> Composed:
    generator: dict = {"_target_": "graphcontext.generate.none.NoGeneration"}
    if with_llm:
        generator = {"_target_": "graphcontext.generate.llm.LLMGenerator", "llm": llm}
    config = {
        "dataset": {"_target_": "graphcontext.data.stackexchange.StackExchange"},
        "encoder": node,
        "roles": {"answer": llm, "judge": llm},
        "graph": {"_target_": "graphcontext.graph.question_similarity.QuestionSimilarity", "encoder": node},
        "retriever": {"_target_": "graphcontext.retrieve.dense.Dense", "encoder": node},
        "enhancer": {"_target_": "graphcontext.enhance.none.NoEnhancement"},
        "generator": generator,
        "bertscore": SCORER,
        "fact_extractor": SPACY,
        "entity_extractor": {"_target_": "graphcontext.evaluate.spacy_entities.SpacyEntities", "model": "spacy_en"},
        "metric": {
            "rouge1": {"_target_": "graphcontext.evaluate.overlap.Rouge"},
            "bertscore_f1": {"_target_": "graphcontext.evaluate.bertscore.BERTScore", **SCORER, "rescaled": False},
            "factsumm": {"_target_": "graphcontext.evaluate.factsumm.FactSumm", "extractor": SPACY},
        },
    }
    given = {k.replace("__", "@roles."): v for k, v in choices.items()}
    return Composed(config, given, given)


def test_only_what_enters_the_run_stands_in() -> None:
    ours = composed(MINILM, SMOL, dataset="cqa_sample", encoder="minilm", llm__answer="smollm2", extractor="spacy")
    paper = composed(BGE, SMOL, dataset="askubuntu", encoder="bge", llm__answer="llama2_13b", extractor="llm")
    assert stand_ins(ours, paper) == {
        "dataset": ("askubuntu", "cqa_sample"),
        "encoder": ("bge", "minilm"),
        "llm@roles.answer": ("llama2_13b", "smollm2"),
    }  # no extractor: nothing of the run uses it
    without = composed(MINILM, SMOL, False, dataset="askubuntu", encoder="minilm", llm__answer="smollm2")
    assert stand_ins(without, paper) == {"encoder": ("bge", "minilm")}


def test_bertscores_model_matters_to_bertscore_alone() -> None:
    ours = composed(MINILM, SMOL, bertscore="minilm")
    paper = composed(MINILM, SMOL, bertscore="roberta_large")
    assert stand_ins(ours, paper, "rouge1") == {}
    assert stand_ins(ours, paper, "bertscore_f1") == {"bertscore": ("roberta_large", "minilm")}
    assert not relevant(ours.config, "nosuch")


def test_an_extractor_of_facts_matters_to_the_metrics_that_take_it() -> None:
    ours = composed(MINILM, SMOL, fact_extractor="spacy", entity_extractor="spacy")
    paper = composed(MINILM, SMOL, fact_extractor="luke_tacred", entity_extractor="spacy")
    assert stand_ins(ours, paper, "rouge1") == {}
    assert stand_ins(ours, paper, "factsumm") == {"fact_extractor": ("luke_tacred", "spacy")}
    assert relevant(ours.config, "fact_extractor") and not relevant(ours.config, "fact_extractor", "bertscore_f1")
    assert not relevant(ours.config, "entity_extractor")  # no metric here takes it


def test_another_model_under_the_papers_name_is_a_stand_in() -> None:
    ours = composed({**BGE, "model": "/models/mine"}, SMOL, encoder="bge")  # encoder.model=/models/mine
    assert stand_ins(ours, composed(BGE, SMOL, encoder="bge")) == {"encoder": ("bge", "/models/mine")}
    assert stand_ins(composed(BGE, SMOL, encoder="bge"), composed(BGE, SMOL, encoder="bge")) == {}


def test_roles_that_are_filled_alike_are_one_footnote_and_rows_are_named_where_not_all() -> None:
    llm = {"llm@roles.answer": ("llama2_13b", "smollm2"), "llm@roles.extractor": ("llama2_13b", "smollm2")}
    data = {"dataset": ("askubuntu", "cqa_sample")}  # said elsewhere
    other = {**llm, "encoder": ("bge", "minilm")}
    notes = substitutions([("a", {**llm, **data}), ("a", llm), ("b", other), ("c", data)])
    assert notes == [
        "encoder: minilm stands in for bge (rows: b)",
        "llm: smollm2 stands in for llama2_13b (rows: a, b)",
    ]
    assert substitutions([("a", llm), ("b", llm)]) == ["llm: smollm2 stands in for llama2_13b"]
