import shutil

import pytest
from bench import in_prompts

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.lengths import make_method
from entropy_valley.model.checkpoint import load_tokenizer
from entropy_valley.model.families import FAMILIES


@pytest.fixture(scope="module")
def checkpoint(checkpoints):
    """The family whose prompt has a BOS."""
    return checkpoints / "diffullama"


def test_a_checkpoint_may_declare_that_it_has_no_unknown_token(checkpoint, tmp_path):
    folder = shutil.copytree(checkpoint, tmp_path / "checkpoint")
    settings = files.read_json(folder / "tokenizer_config.json")
    files.write_json(folder / "tokenizer_config.json", settings | {"unk_token": None})  # as Dream does
    assert load_tokenizer(folder, FAMILIES["diffullama"]).unk_token_id is None


def test_a_token_declared_beside_the_tokenizer_is_one_token(checkpoint, tmp_path):
    """As DiffuLLaMA declares ти: an entry of the vocabulary, but no added token of ``tokenizer.json``."""
    family, folder = FAMILIES["diffullama"], shutil.copytree(checkpoint, tmp_path / "checkpoint")
    whole = files.read_json(folder / "tokenizer.json")
    whole["added_tokens"] = [token for token in whole["added_tokens"] if token["content"] != family.mask_token]
    files.write_json(folder / "tokenizer.json", whole)
    settings = files.read_json(folder / "tokenizer_config.json")
    settings.pop("added_tokens_decoder", None)  # transformers 4 writes the mask token there
    files.write_json(folder / "tokenizer_config.json", settings | {"mask_token": "ти", "add_bos_token": True})
    tokenizer = load_tokenizer(folder, family)
    assert tokenizer.get_vocab()["ти"] in tokenizer("cat ти dogs", add_special_tokens=False)["input_ids"]


def test_a_sentence_beyond_the_context_is_named_with_its_numbers():
    sentences = in_prompts([[1] * 30, [1] * 39, [1] * 40], 40)
    sentences.check(0, 10)
    assert sentences.fits(0, 10) and not sentences.fits(0, 11)
    with pytest.raises(InputError, match=r"test: sentence 0: prompt 30 \+ canvas 11 = 41 .*context is 40"):
        sentences.check(0, 11)
    assert sentences.room(1) == 1
    with pytest.raises(InputError, match=r"test: sentence 2: prompt of 40 tokens.*context is 40"):
        sentences.room(2)
    sentences.prompt.tokens = str.split
    seen = sentences.seen_by(make_method("ratio", {"ratios": 1.0}))
    assert [one.room for one in seen] == [10, 2, 2]  # at least the shortest canvas
