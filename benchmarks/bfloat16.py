"""How far a bfloat16 model moves where a computation is ordered otherwise: rotation, attention, company, an adapter.

Random weights, the same bfloat16 values everywhere. "ours" packs four sentences and rotates as the family does. Each of
the others changes one thing; float32 throughout is the yardstick: what bfloat16 costs anyway. The adapter is random
too, of rank 64, its change of each weight 1 % of that weight's norm: merged as here, and beside the weights in float32
as PEFT runs it. On a CPU. LLaDA's and Dream's widths, with 4 layers and 32,000 tokens for a desktop computer:

    python benchmarks/bfloat16.py --family llada --layers 4 --width 4096 --ffn 12288 --heads 32 --kv-heads 32 \\
        --vocabulary 32000
    python benchmarks/bfloat16.py --family dream --layers 4 --width 3584 --ffn 18944 --heads 28 --kv-heads 4 \\
        --vocabulary 32000
"""

import argparse
import copy
import json

import torch

from entropy_valley.model.adapters import Adapter, attach
from entropy_valley.model.attention import pack
from entropy_valley.model.decoder import Angles
from entropy_valley.model.families import FAMILIES
from entropy_valley.model.load import empty_model, stock_model


def measure(family: str, layers: int, width: int, ffn: int, heads: int, kv_heads: int, vocabulary: int):
    """By variant, against "ours": largest and mean difference of the logits, share of rows with the same argmax."""
    arguments = dict(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=ffn,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        max_position_embeddings=4096,
        rope_theta=5e5,
        rms_norm_eps=1e-5,
    )
    torch.manual_seed(0)
    model = empty_model(FAMILIES[family], arguments, torch.bfloat16, "cpu").eval().requires_grad_(False)
    sentences = torch.randint(vocabulary, (4, 128)).tolist()
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):  # which transformers starts at zero
            parameter.normal_(std=0.02)
    return compare(FAMILIES[family], model, sentences)


@torch.inference_mode()
def compare(family, model, sentences):
    ours, stock = logits(model, sentences), stock_model(family, model)
    others = {"each sentence alone": torch.cat([logits(model, [sentence]) for sentence in sentences])}
    others["eager attention"] = torch.cat([eager_logits(stock, sentence) for sentence in sentences])
    angles, model.angles = model.angles, Angles(model.config.model_copy(update={"float32_rotary": False}))
    others["rotation in bfloat16"] = logits(model, sentences)
    others["float32"] = logits(model.float(), sentences)
    report = {name: difference(ours, other) for name, other in others.items()}
    report["rotation in bfloat16 against float32"] = difference(others["rotation in bfloat16"], others["float32"])
    model.bfloat16().angles = angles
    merged, beside = adapted_logits(model, sentences)
    report["adapter merged, against beside"] = difference(merged, beside)
    report["adapter merged, against none"] = difference(merged, ours)
    return report | {"standard deviation of the logits": others["float32"].std().item()}


def logits(model, sentences):
    return model.lm_head(model.hidden_states(pack(sentences))).float()


def eager_logits(model, sentence):
    everything = torch.zeros(1, 1, len(sentence), len(sentence), dtype=model.dtype)
    return model(input_ids=torch.tensor([sentence]), attention_mask=everything, use_cache=False).logits[0].float()


def adapted_logits(model, sentences):
    """The logits under a random adapter: merged into the weights, and beside them."""
    adapter, other = random_adapter(model, 64), copy.deepcopy(model)
    attach(other, adapter, "the random adapter")
    attach(model, adapter, "the random adapter", merge=True)
    return logits(model, sentences), logits(other, sentences)


def random_adapter(model, rank, share=0.01):
    """Of every linear layer of the blocks; scaling 1, and B A has ``share`` of the weight's norm."""
    weights = {}
    for name, module in model.model.layers.named_modules(prefix="model.layers"):
        if isinstance(module, torch.nn.Linear):
            outer, inner = module.weight.shape
            deviation = share * module.weight.float().std() * (inner / rank) ** 0.5
            weights[f"{name}.lora_A.weight"] = torch.randn(rank, inner) / inner**0.5
            weights[f"{name}.lora_B.weight"] = torch.randn(outer, rank) * deviation
    return Adapter(weights, {"r": rank, "lora_alpha": rank})


def difference(one, other):
    gap, same = (one - other).abs(), one.argmax(-1) == other.argmax(-1)
    return {"max": gap.max().item(), "mean": gap.mean().item(), "same argmax": same.float().mean().item()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", choices=sorted(FAMILIES), required=True)
    for name in ("layers", "width", "ffn", "heads", "kv-heads", "vocabulary"):
        parser.add_argument(f"--{name}", type=int, required=True)
    print(json.dumps(measure(**vars(parser.parse_args())), indent=2))
