"""The model card beside an adapter."""

import pytest
import yaml

from entropy_valley import files
from entropy_valley.training.card import write_card

SETTINGS = {"r": 64, "lora_alpha": 128, "base_model_name_or_path": "GSAI-ML/LLaDA-8B-Base"}
SPEC = {"backbone": "llada-8b", "direction": "en-zh", "prompt": "Chinese: {src}\n", "training": {"epochs": 2}}
TRAINED = {"adapter_digest": "a1", "backbone_digest": "b1", "data_digest": "d1", "family": "llada", "seed": 7}
TRAINED |= {"pairs": 200000, "steps": 6250, "trainable_parameters": 167772160, "spec": SPEC}


@pytest.fixture
def written(tmp_path):
    def write(facts, settings=SETTINGS):
        files.write_json(tmp_path / "adapter.json", facts)
        files.write_json(tmp_path / "adapter_config.json", settings)
        write_card(tmp_path)
        card = tmp_path / "README.md"
        return card.read_text(encoding="utf-8") if card.exists() else None

    return write


def test_it_has_what_the_hub_asks_for_and_what_a_user_needs(written):
    _, head, text = written(TRAINED).split("---\n", 2)
    assert yaml.safe_load(head) == {
        "library_name": "peft",
        "pipeline_tag": "translation",
        "language": ["en", "zh"],
        "tags": ["masked-diffusion", "machine-translation", "lora"],
        "base_model": "GSAI-ML/LLaDA-8B-Base",
    }
    for part in ("200,000 sentence pairs with seed 7", "--direction en-zh", "rank is 64", "licence MIT"):
        assert part in text, part


def test_an_adopted_adapter_says_from_where_it_is(written):
    facts = {key: value for key, value in TRAINED.items() if key not in ("pairs", "steps", "data_digest")}
    spec = {key: SPEC[key] for key in ("backbone", "direction")}
    text = written({**facts, "spec": spec, "adopted": True, "source": {"repository": "owner/name"}})
    assert "taken from owner/name" in text and "None" not in text


def test_another_attention_than_that_of_peft_is_said(written, tmp_path):
    assert "attention" not in written(TRAINED)
    (tmp_path / "README.md").unlink()
    text = written({**TRAINED, "spec": SPEC | {"attention": "prefix"}})
    assert "`attention: prefix`: the rows of the prompt" in text and "computes another function" in text


def test_a_card_that_is_there_stays(written, tmp_path):
    (tmp_path / "README.md").write_text("mine", encoding="utf-8")
    assert written(TRAINED) == "mine"
