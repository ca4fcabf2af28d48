"""Special tokens: read from the tokenizer, and held against config.json, the release and the family."""

import contextlib
import dataclasses
import json
import shutil

import pytest

from entropy_valley.errors import InputError
from entropy_valley.experiment.demo.pretraining import train_tokenizer
from entropy_valley.model.checkpoint import load_tokenizer, special_ids
from entropy_valley.model.families import FAMILIES
from entropy_valley.model.load import NO_TOKEN, load_backbone

KINDS = ("mask", "eos", "pad", "bos")


def edit_config(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


def released_with(family, folder, **ids):
    """The family with a release that has the vocabulary of ``folder``, and its ids but for ``ids``."""
    size = family.to_stock(json.loads((folder / "config.json").read_text()))["vocab_size"]
    true = special_ids(folder, dataclasses.replace(family, releases=()), load_tokenizer(folder, family))
    release = dataclasses.replace(family.releases[0], config={"vocab_size": size}, ids=true._asdict() | ids)
    return dataclasses.replace(family, releases=(release,))


def refusal(family, kind, message):
    """Of a token that the family has; where it has none, nothing that is said of it matters. Of an EOS that the family
    leaves to the tokenizer, that is not the case."""
    has = kind == "eos" or getattr(family, f"{kind}_token") is not None
    return pytest.raises(InputError, match=message) if has else contextlib.nullcontext()


def test_they_are_those_of_the_literal_tokens(tiny, family):
    backbone = load_backbone(tiny[family.name][1], family.name)
    vocabulary = backbone.tokenizer.get_vocab()
    assert backbone.eos_id == vocabulary[family.eos_token or backbone.tokenizer.eos_token]
    assert backbone.bos_id == vocabulary.get(family.bos_token)
    assert backbone.mask_id == (NO_TOKEN if family.causal else vocabulary[family.mask_token])


@pytest.mark.parametrize("kind", ["mask", "eos", "pad"])
def test_another_id_in_the_config_is_named(folder, family, kind):
    edit_config(folder, **{f"{kind}_token_id": 77})
    with refusal(family, kind, rf"{kind} id is \d+, config.json says 77"):
        load_backbone(folder, family.name)


def test_one_of_several_ids_in_the_config_is_enough(folder, family):
    tokenizer = load_tokenizer(folder, family)
    eos = tokenizer.get_vocab()[family.eos_token or tokenizer.eos_token]
    edit_config(folder, eos_token_id=[77, eos])
    assert special_ids(folder, family, tokenizer).eos == eos
    edit_config(folder, eos_token_id=[77, 78])
    with pytest.raises(InputError, match=r"eos id is \d+, config.json says \[77, 78\]"):
        special_ids(folder, family, tokenizer)


@pytest.mark.parametrize("kind", KINDS)
def test_another_id_in_a_release_of_its_vocabulary_is_named(tiny, family, kind):
    folder, tokenizer = tiny[family.name][1], load_tokenizer(tiny[family.name][1], family)
    assert special_ids(folder, released_with(family, folder), tokenizer).eos is not None
    with refusal(family, kind, rf"{kind} id is \d+, {family.releases[0].repository} has 77"):
        special_ids(folder, released_with(family, folder, **{kind: 77}), tokenizer)


def test_an_eos_that_nothing_declares_is_named(tiny):
    folder, family = tiny["illada"][1], FAMILIES["illada"]
    tokenizer = load_tokenizer(folder, family)
    tokenizer.eos_token = None
    with pytest.raises(InputError, match="tokenizer: declares no eos token"):
        special_ids(folder, family, tokenizer)


@pytest.mark.parametrize(("checkpoint", "family"), [("diffullama", "llama3"), ("llama3", "diffullama")])
def test_families_of_one_model_type_are_told_apart_by_their_tokens(tiny, checkpoint, family):
    with pytest.raises(InputError, match="tokenizer: no token"):
        load_backbone(tiny[checkpoint][1], family)


def test_a_mask_token_that_the_tokenizer_declares_goes_first(tiny, tmp_path):
    family = FAMILIES["diffullama"]
    folder = shutil.copytree(tiny["diffullama"][1], tmp_path / "checkpoint")
    vocabulary = {number: token for token, number in load_tokenizer(folder, family).get_vocab().items()}
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"mask_token": vocabulary[5]}))
    (folder / "special_tokens_map.json").unlink(missing_ok=True)
    edit_config(folder, mask_token_id=5)
    assert special_ids(folder, family, load_tokenizer(folder, family)).mask == 5


def test_a_chat_template_and_its_tokens(family):
    tokenizer = train_tokenizer(["a b"], 300, family)
    assert (family.chat is None) == (not family.chat_tokens)
    for token in family.chat_tokens:
        assert token in family.chat and len(tokenizer(token)["input_ids"]) == 1
        assert tokenizer.decode(tokenizer(f"{token}a")["input_ids"], skip_special_tokens=True) == "a"
    assert family.chat is None or family.chat.count("{prompt}") == 1


def test_dreams_tokenizer_is_released_without_a_fast_one(tiny, tmp_path):
    """Its class comes as remote code: the files are Qwen2's, and Qwen2's own class reads them."""
    family, folder = FAMILIES["dream"], shutil.copytree(tiny["dream"][1], tmp_path / "dream")
    whole = json.loads((folder / "tokenizer.json").read_text())
    (folder / "vocab.json").write_text(json.dumps(whole["model"]["vocab"]))
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in whole["model"]["merges"]]
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges]))
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    remote = {
        "tokenizer_class": "DreamTokenizer",
        "auto_map": {"AutoTokenizer": ["tokenization_dream.DreamTokenizer", None]},
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | remote))
    fast = load_tokenizer(folder, family)
    (folder / "tokenizer.json").unlink()
    slow = load_tokenizer(folder, family)
    for text in ("Tap Reset now.", "点击现在。", "Löschen <|mask|><|endoftext|>"):
        assert slow(text)["input_ids"] == fast(text)["input_ids"]
    assert special_ids(folder, family, slow) == special_ids(tiny["dream"][1], family, fast)
    (folder / "merges.txt").unlink()
    with pytest.raises(InputError, match=r"no tokenizer: no merges\.txt\. Copy"):
        load_tokenizer(folder, family)


def test_a_tokenizer_that_the_family_cannot_load_is_refused(tmp_path):
    (tmp_path / "tokenizer.model").write_bytes(b"sentencepiece")
    with pytest.raises(InputError, match=r"no tokenizer: no tokenizer\.json\. Copy"):
        load_tokenizer(tmp_path, FAMILIES["diffullama"])
