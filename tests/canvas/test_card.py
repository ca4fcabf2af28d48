from __future__ import annotations

import pytest

from entropy_valley import files
from entropy_valley.backbone.families import FAMILIES
from entropy_valley.backbone.tokenizer import load_tokenizer
from entropy_valley.canvas.card import read_card, read_tokenizer
from entropy_valley.errors import InputError

TEMPLATE = "English: {src}\nGerman: "


def test_the_light_tokenizer_is_the_released_one(checkpoint):
    light, full = (read(checkpoint, FAMILIES["diffullama"]) for read in (read_tokenizer, load_tokenizer))
    for text in ["the small cat saw 12 dogs", "那只小猫 #PRS_ORG#", "", "<mask> </s>  two  spaces , and ' s"]:
        tokens = full(text, add_special_tokens=False)["input_ids"]
        assert light(text, add_special_tokens=False)["input_ids"] == tokens
        settings = {"skip_special_tokens": True, "clean_up_tokenization_spaces": False}
        assert light.decode(tokens, **settings) == full.decode(tokens, **settings)
    assert light.get_vocab() == full.get_vocab()


def test_it_knows_prompt_context_and_digests(checkpoint):
    card = read_card(checkpoint, None, "diffullama", TEMPLATE, bos=True)
    bare = read_card(checkpoint, None, "diffullama", TEMPLATE, bos=False)
    assert card.context == 40
    assert card.prompt.encode("cat")[1:] == bare.prompt.encode("cat")
    assert card.prompt.encode("cat")[0] == card.prompt.tokenizer.get_vocab()["<s>"]
    assert card.backbone_digest == files.read_json(checkpoint / "checkpoint.json")["digest"]


def adapter(folder, backbone_digest):
    folder.mkdir()
    files.write_json(folder / "adapter.json", {"adapter_digest": "a1", "backbone_digest": backbone_digest})
    return folder


def test_an_adapter_makes_another_checkpoint_of_the_same_backbone(checkpoint, tmp_path):
    bare = read_card(checkpoint, None, "diffullama", TEMPLATE, bos=True)
    card = read_card(checkpoint, adapter(tmp_path / "a", bare.backbone_digest), "diffullama", TEMPLATE, bos=True)
    assert card.adapter_digest == "a1" and card.digest != bare.digest


def test_an_adapter_of_another_backbone_is_refused(checkpoint, tmp_path):
    with pytest.raises(InputError, match="trained on backbone other"):
        read_card(checkpoint, adapter(tmp_path / "a", "other"), "diffullama", TEMPLATE, bos=True)


def test_a_sentence_beyond_the_context_is_named_with_its_numbers(checkpoint):
    card = read_card(checkpoint, None, "diffullama", TEMPLATE, bos=True)
    card.check("test.jsonl", "s7", 30, 10)
    with pytest.raises(
        InputError, match=r"test\.jsonl: sentence 's7': prompt 30 \+ canvas 11 = 41 tokens.*context is 40"
    ):
        card.check("test.jsonl", "s7", 30, 11)
