"""A family of the user's own, made as docs/extending.md says: one file outside the package."""

import dataclasses
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import LlamaConfig, LlamaForCausalLM

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.experiment.demo.pretraining import new_model, train_tokenizer
from entropy_valley.model import families
from entropy_valley.model.attention import pack
from entropy_valley.model.checkpoint import config_arguments, write_checkpoint
from entropy_valley.model.families import find_family
from entropy_valley.model.load import load_backbone

NAME, SENTENCE = "quill:LLADA", [3, 4, 5, 6, 7]
SECTION = Path(families.__file__).read_text().partition("LLADA_INSTRUCT = ")[0].partition("LLADA_NAMES = ")
CODE = "from entropy_valley.model.families import Family, Release\n\n" + "".join(SECTION[1:])
for old, new in (("llada", "quill"), ("model.transformer.blocks", "quill"), ("d_model", "dim"), ("ff_out", "down")):
    CODE = CODE.replace(f'"{old}', f'"{new}')


@pytest.fixture
def quill(tmp_path, monkeypatch):
    """The file, in an otherwise empty working directory."""
    (tmp_path / "quill.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    yield find_family(NAME)
    del sys.modules["quill"]
    sys.path.remove(str(tmp_path))


@pytest.fixture
def folder(quill, tmp_path):
    tokenizer = train_tokenizer(["Tap Reset now."], 300, quill)
    shape = dict(width=32, layers=2, heads=4, kv_heads=2, ffn=48, context=64, seed=1)
    model = new_model(NAME, vocabulary=len(tokenizer), **shape)
    write_checkpoint(model, quill, tokenizer, tmp_path / "checkpoint")
    return tmp_path / "checkpoint"


def plain(folder):
    """A stock model with the tensors of the checkpoint, each under the stock name that the file above gives it."""
    fields, tensors, code = files.read_json(folder / "config.json"), load_file(folder / "model.safetensors"), {}
    exec(CODE, code)
    given = {stock: fields[released] for stock, released in code["LLADA_FIELDS"].items()}
    stock = {released.format(i=i): name.format(i=i) for released, name in code["LLADA_NAMES"] for i in range(2)}
    model = LlamaForCausalLM(LlamaConfig(**given, attn_implementation="eager")).eval()
    model.load_state_dict({f"{stock[name.removesuffix('.weight')]}.weight": one for name, one in tensors.items()})
    return model


@torch.inference_mode()
def test_it_computes_what_the_stock_class_does(folder):
    backbone = load_backbone(folder, NAME)
    everything = torch.zeros(1, 1, len(SENTENCE), len(SENTENCE))
    expected = plain(folder)(input_ids=torch.tensor([SENTENCE]), attention_mask=everything).logits[0]
    ours = backbone.model.lm_head(backbone.model.hidden_states(pack([SENTENCE])))
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=0)
    assert backbone.eos_id != backbone.mask_id
    assert backbone.family.name == NAME  # what an adapter's card says, and finds again


@pytest.mark.parametrize(
    ("key", "value"),
    [("rope_scaling", {"factor": 8.0}), ("hidden_act", "gelu"), ("use_sliding_window", True), ("attention_bias", True)],
)
def test_what_the_decoder_does_not_compute_is_refused_whatever_a_family_fixes(folder, quill, key, value):
    files.write_json(folder / "config.json", files.read_json(folder / "config.json") | {key: value})
    with pytest.raises(InputError, match=rf"{key} is .*, not .* The decoder does not compute this"):
        config_arguments(folder, dataclasses.replace(quill, fixed={}))


def test_a_field_that_the_decoder_does_not_know_is_refused(folder, quill):
    other = dataclasses.replace(quill, fields=quill.fields | {"num_experts": "n_layers"})
    with pytest.raises(InputError, match=r"num_experts = .*: is not known here"):
        config_arguments(folder, other)


def test_another_architecture_is_refused(quill, monkeypatch):
    monkeypatch.setattr(sys.modules["quill"], "LLADA", dataclasses.replace(quill, architecture="GemmaForCausalLM"))
    with pytest.raises(InputError, match="architecture is GemmaForCausalLM"):
        find_family(NAME)
