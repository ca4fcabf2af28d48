"""Adapters of tiny checkpoints, tiny by us or by PEFT on the authors' module names."""

import torch
from safetensors.torch import load_file

from entropy_valley.model.adapters import Adapter, write_adapter
from entropy_valley.model.families import LORA_TARGETS

# The target list of the paper's public training code. PEFT matches it from the end of a module's path: LLaDA has no
# `o_proj`, and its head is one more `ff_out`.
AUTHORS_TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "ff_proj", "up_proj", "ff_out"]
BLOCK = ["q_proj", "k_proj", "v_proj", "attn_out", "ff_proj", "up_proj", "ff_out"]


def authors_model(folder):
    """The linear layers of a checkpoint under its released names, as far as PEFT needs the authors' class."""
    root = torch.nn.Module()
    for name, weight in load_file(folder / "model.safetensors").items():
        *path, leaf = name.removesuffix(".weight").split(".")
        if weight.dim() == 2 and leaf not in ("wte", "embed_tokens"):
            parent = root
            for part in path:
                if not hasattr(parent, part):
                    parent.add_module(part, torch.nn.Module())
                parent = getattr(parent, part)
            layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False)
            layer.weight = torch.nn.Parameter(weight)
            parent.add_module(leaf, layer)
    return root


def peft_save(folder, out, **config):
    """What PEFT saves of a trained adapter on the authors' class; its model."""
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(0)
    model = get_peft_model(authors_model(folder), LoraConfig(**{"r": 4, "lora_alpha": 8, **config}))
    for parameter in model.parameters():
        if parameter.requires_grad:
            torch.nn.init.normal_(parameter, std=0.1)
    model.save_pretrained(out)
    return model


def adapter_of(pairs, alpha, **settings):
    """A plain adapter from A and B by module."""
    weights = {
        f"{module}.lora_{side}.weight": one
        for module, pair in pairs.items()
        for side, one in zip("AB", pair, strict=True)
    }
    given = {key: value for key, value in settings.items() if value}
    return Adapter(weights, {"peft_type": "LORA", "r": len(next(iter(weights.values()))), "lora_alpha": alpha, **given})


def random_adapter(model, rank=3, alpha=6.0, **settings):
    random, pairs = torch.Generator().manual_seed(5), {}
    for name, module in model.named_modules():
        if name.rpartition(".")[2] in LORA_TARGETS:
            outer, inner = module.weight.shape
            pairs[name] = torch.randn(rank, inner, generator=random), torch.randn(outer, rank, generator=random)
    return adapter_of(pairs, alpha, **settings)


def write(adapter, folder, *family):
    folder.mkdir()
    write_adapter(adapter, folder, *family)
    return folder
