"""Reveal orders and variable-length decoders of docs/extending.md, as a user would follow it, and wrong ones."""

import re
from pathlib import Path

import pytest
import torch

from entropy_valley import plugins
from entropy_valley.decoding import reference
from entropy_valley.decoding.requests import Denoising
from entropy_valley.experiment.config import base_files, load_files, methods
from entropy_valley.lengths import make_method
from entropy_valley.model.prompt import Prompt
from entropy_valley.translation.translator import Translator

ROOT = Path(__file__).parents[2]
SENTENCES = ["Anna sees it", "the cat paints the old red car"]
GUIDE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
OWN = {
    name: (code, block)
    for name, code, block in re.findall(r"```python\n# (\w+)\.py(.*?)```\n\n```yaml\n(.*?)```", GUIDE, re.DOTALL)
}


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    """The config with a block of the user's own, whose class is in a module of the user's own."""
    monkeypatch.syspath_prepend(tmp_path)

    def load(module, code, block):
        (tmp_path / f"{module}.py").write_text(f"#{code}")
        (tmp_path / "mine.yaml").write_text(block)
        return load_files([*base_files(ROOT), tmp_path / "mine.yaml"])

    return load


def prompt_of(backbone):
    return Prompt("English: {src}\nGerman: ", backbone.tokenizer)


def translate(llada, settings):
    ratio, order = make_method("ratio", {"ratios": 1.0}), settings["order"]
    translator = Translator(llada, prompt_of(llada), ratio, order, 4, order_settings=settings["order_settings"])
    return translator.translate(SENTENCES)


def test_the_order_of_the_guide_reveals_the_middle_first(llada, loaded):
    settings = methods.order_settings(loaded("my_orders", *OWN["my_orders"]), "outward")
    assert settings == {"order": plugins.with_code("my_orders:Outward"), "order_settings": {"reach": 2.0}}
    denoising = Denoising.named(settings["order"], 4, "llada", settings["order_settings"])
    assert (denoising.variable_length, denoising.steps, denoising.order.reach) == (None, 4, 2.0)
    for source, translation in zip(SENTENCES, translate(llada, settings), strict=True):
        text = reference.decode(llada, prompt_of(llada).encode(source), translation.length, 4, rank=outward)[1]
        assert translation.text == prompt_of(llada).text(text)


def outward(step):
    slots = torch.arange(len(step.logits))
    return (slots - (len(slots) - 1) / 2).abs() + 2 * step.entropy()


def test_the_decoder_of_the_guide_changes_the_length_without_t(llada, loaded):
    settings = methods.order_settings(loaded("my_decoders", *OWN["my_decoders"]), "append")
    own = plugins.with_code("my_decoders:Append")
    assert settings == {"order": own, "order_settings": {"masks": 4, "cap": 256}}
    denoising = Denoising.named(settings["order"], 4, "llada", settings["order_settings"])
    assert (denoising.order, denoising.steps, denoising.variable_length.masks) == (None, 0, 4)
    assert all(translation.length > 2 for translation in translate(llada, settings))
