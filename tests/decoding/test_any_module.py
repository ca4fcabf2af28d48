"""`Translator.of`: a module of transformers that the decoder does not compute, in the engine."""

from __future__ import annotations

import pytest
import torch
from tiny_checkpoints import SOURCES
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

from entropy_valley import InputError, Translator, choose_length
from entropy_valley.model.load import stock_model

GIVEN = {"prompt": "{src} = ", "ratios": [0.6, 0.8, 1.0], "steps": 3}


def small(kind, config, **more):
    """A random model with weights so wide that its distributions are not flat."""
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    torch.manual_seed(1)
    model = kind(config(vocab_size=300, max_position_embeddings=64, **shape, **more)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(8 if weight.dim() == 2 else 1)
    return model


@pytest.fixture(scope="module")
def tokenizer(checkpoints):
    return PreTrainedTokenizerFast.from_pretrained(checkpoints / "llada", local_files_only=True)


@pytest.fixture(params=["bert", "a mixture of experts"])
def module(request):
    if request.param == "bert":  # layer norms, GELU, a head with a bias behind a layer of its own
        return small(BertForMaskedLM, BertConfig)
    experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "num_key_value_heads": 2}
    return small(Qwen3MoeForCausalLM, Qwen3MoeConfig, head_dim=16, **experts)


@torch.inference_mode()
def plain(module, prompt, length, steps, mask, eos):
    """The text of one canvas by minimum entropy, in a plain loop over logits of one sequence."""
    tokens = [mask] * length
    for step in range(steps):
        logits = logits_of(module)(torch.tensor([[*prompt, *tokens]])).logits[0, len(prompt) :].double()
        logits[:, mask] = -torch.inf
        entropies = torch.special.entr(logits.softmax(-1)).sum(-1).tolist()
        masked = [slot for slot in range(length) if tokens[slot] == mask]
        count = length // steps + (step < length % steps)
        for slot in sorted(masked, key=lambda slot: (entropies[slot], slot))[:count]:
            tokens[slot] = int(logits[slot].argmax())
    return tokens[: tokens.index(eos)] if eos in tokens else tokens


def logits_of(module):
    if isinstance(module, BertForMaskedLM):
        return lambda ids: module(input_ids=ids)
    return lambda ids: module(input_ids=ids, attention_mask=torch.zeros(1, 1, ids.shape[1], ids.shape[1]))


def test_a_module_translates_as_a_plain_loop_does(module, tokenizer):
    translator = Translator.of(module, tokenizer, mask="<|mdm_mask|>", eos="<|endoftext|>", **GIVEN)
    mask, eos = translator.backbone.mask_id, translator.backbone.eos_id
    for source, ours in zip(SOURCES[:4], translator.translate(SOURCES[:4]), strict=True):
        prompt = translator.prompt.encode(source)
        count = len(translator.prompt.tokens(source))
        alone = choose_length(
            logits_of(module), prompt, translator.method, mask_id=mask, eos_id=eos, source_tokens=count
        )
        assert ours.canvas == alone.canvas and ours.entropies == pytest.approx(alone.entropies, abs=1e-4)
        tokens = plain(module, prompt, ours.canvas, 3, mask, eos)
        assert ours.text == translator.prompt.text([token for token in tokens if token != mask])


def test_a_stock_class_translates_as_the_decoder_does(diffusion):
    """By an order that looks at the SIG in each step, too."""
    tokenizer, module = diffusion.tokenizer, stock_model(diffusion.family, diffusion.model)
    more = {"order": "sig_first", "order_settings": {"sig": "stepwise_kl"}}
    wrapped = Translator.of(
        module, tokenizer, mask=diffusion.mask_id, eos=diffusion.eos_id, shifted=diffusion.shifted, **GIVEN, **more
    )
    ours = Translator(diffusion, wrapped.prompt, wrapped.method, steps=3, **more).translate(SOURCES[:4])
    for one, other in zip(wrapped.translate(SOURCES[:4]), ours, strict=True):
        assert (one.canvas, one.text) == (other.canvas, other.text)
        assert one.entropies == pytest.approx(other.entropies, abs=1e-4)


def test_a_module_that_stays_causal_is_refused(tokenizer):
    module = small(GPT2LMHeadModel, GPT2Config)
    forward = module.forward
    module.forward = lambda input_ids, **_: forward(input_ids)
    with pytest.raises(InputError, match="GPT2LMHeadModel: its rows do not see those behind them"):
        Translator.of(module, tokenizer, mask=3, eos=4, **GIVEN)
    with pytest.raises(InputError, match="mask: the tokenizer has no token <m>"):
        Translator.of(module, tokenizer, mask="<m>", eos=4, **GIVEN)
