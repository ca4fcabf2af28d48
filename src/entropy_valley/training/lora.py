"""Low-rank adapters on a stock model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import torch

from entropy_valley.training.data import seed_of

if TYPE_CHECKING:
    from entropy_valley.model.families import Family
    from entropy_valley.training.settings import Lora


def targets(model: Any, family: Family, kind: str = "blocks") -> list[str]:
    """Full paths of the modules to adapt: the family's LoRA targets in every block, none outside the blocks.

    Short names would be ambiguous: in LLaDA both the LM head and the FFN output are called ``ff_out``. With the kind
    "by_name" they are what counts, as in the authors' code: all modules with one of the family's bare names.
    """
    if kind == "by_name":
        bare = {name: family.released_name(name).rpartition(".")[2] for name, _ in model.named_modules()}
        return sorted(name for name in bare if bare[name] in family.lora_names)
    path = re.compile(rf"model\.layers\.\d+\.(self_attn|mlp)\.({'|'.join(family.lora_targets)})")
    matching = [name for name, _ in model.named_modules() if path.fullmatch(name)]
    wanted = model.config.num_hidden_layers * len(family.lora_targets)
    if len(matching) != wanted:
        raise RuntimeError(f"{len(matching)} modules to adapt, not {wanted}: {matching}")
    return sorted(matching)


def attach(model: Any, family: Family, settings: Lora, seed: int) -> Any:
    """A PEFT model around ``model`` with seeded float32 adapters on exactly :func:`targets`."""
    from peft import LoraConfig, get_peft_model

    wanted = targets(model, family, settings.targets)
    torch.manual_seed(seed_of(seed, "lora"))
    config = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        target_modules=wanted,
        task_type="CAUSAL_LM",
    )
    adapted = get_peft_model(model, config)
    names = sorted(name for name, module in model.named_modules() if hasattr(module, "lora_A"))
    if names != wanted:
        raise RuntimeError(f"PEFT adapted other modules than asked: {sorted(set(names) ^ set(wanted))}")
    return adapted


def checkpoint_activations(model: Any) -> None:
    """Keep only the layers' inputs in a forward pass; the backward pass computes each layer again, same dropout."""
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})


def trainable(model: Any) -> list[torch.nn.Parameter]:
    """The adapters' parameters."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]
