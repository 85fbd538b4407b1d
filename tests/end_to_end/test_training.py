"""From training to a table, with the embedded model: what is evaluated is what was trained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphcontext import api
from graphcontext.errors import MissingWeightsError
from graphcontext.files import read_lines

pytestmark = [pytest.mark.end_to_end, pytest.mark.needs_models]
RECIPE = ("debug=tiny", "trainer.learning_rate=0.002", "trainer.max_tokens=224")
ASKED = ("experiment=gcg/zero_shot", "dataset.limit=2", "limits.max_new_tokens=10", "metric=[rouge1]")


def answers(run: api.Run) -> list[str]:
    return [row["prediction"] for row in read_lines(run.path / "predictions.jsonl")]


@pytest.mark.slow
def test_a_trained_adapter_answers_otherwise_than_its_base_and_as_its_merged_model(tmp_path: Path) -> None:
    done = api.train(*RECIPE)
    held_out = done.facts["held_out_loss"]
    assert held_out["best"] < held_out["base"]  # on pairs that it was not trained on
    assert done.facts["examples"]["train"]["pairs"] == 8
    assert (done.path / "adapter_model.safetensors").stat().st_size < 0.05 * 134_515_008 * 4
    about = json.loads((done.path / "manifest.json").read_text())
    assert about["base"]["model"] == "smollm2"
    assert (about["kind"], about["steps"], about["ranks"]) == ("lora", 4, 1)

    again = api.train(*RECIPE)
    assert (again.path, again.said) == (done.path, ("trained before",))

    base = api.run(*ASKED)
    tuned = api.run(*ASKED, f"llm.adapter={done.path}")
    assert answers(tuned) != answers(base)
    merged = api.merge([str(done.path), str(tmp_path / "merged")])
    assert answers(api.run(*ASKED, f"llm.model={merged}")) == answers(tuned)


def test_a_run_says_how_to_train_what_it_lacks_and_a_card_needs_no_adapter() -> None:
    with pytest.raises(MissingWeightsError) as told:
        api.run(*ASKED, "llm.adapter=gcg/sft")
    wanted = "graphcontext train experiment=gcg/sft scale=sample llm=smollm2 dataset=cqa_sample"
    assert wanted in str(told.value)
