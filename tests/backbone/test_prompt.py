from __future__ import annotations

import pytest

from entropy_valley.backbone.loading import load_backbone
from entropy_valley.backbone.prompt import Prompt
from entropy_valley.errors import InputError


@pytest.fixture
def tokenizer(made):
    return load_backbone(made["llada"][1], "llada").tokenizer


@pytest.mark.parametrize("template", ["no place", "{src} and {src}"])
def test_a_template_names_the_source_once(template, tokenizer):
    with pytest.raises(InputError, match="exactly once"):
        Prompt(template, tokenizer)


def test_bos_and_source(tokenizer):
    prompt = Prompt("Chinese: {src}\n", tokenizer, bos=5)
    assert prompt.encode("Tap") == [5, *prompt.tokens("Chinese: Tap\n")]


@pytest.mark.parametrize("text", ["Tap Reset now.", "点击现在。", "Löschen Sie #NAME#!", "{src}", "a {b} c"])
def test_text_survives_the_tokenizer(text, tokenizer):
    prompt = Prompt("{src}", tokenizer)
    assert prompt.text(prompt.tokens(text)) == text
    assert prompt.encode(text) == prompt.tokens(text)
