"""Low-rank adapters on a stock model: which modules, and how PEFT is asked for them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import torch

from entropy_valley.training.masking import seed_of

if TYPE_CHECKING:
    from entropy_valley.backbone.families import Family
    from entropy_valley.training.settings import Lora


def targets(model: Any, family: Family) -> list[str]:
    """Full paths of the modules to adapt: the family's own in every block, and nothing outside the blocks.

    A bare name would be ambiguous: LLaDA calls its LM head and its FFN output alike ``ff_out``.
    """
    path = re.compile(rf"model\.layers\.\d+\.(self_attn|mlp)\.({'|'.join(family.lora_targets)})")
    found = [name for name, _ in model.named_modules() if path.fullmatch(name)]
    wanted = model.config.num_hidden_layers * len(family.lora_targets)
    if len(found) != wanted:
        raise RuntimeError(f"{len(found)} modules to adapt, not {wanted}: {found}")
    return sorted(found)


def attach(model: Any, family: Family, settings: Lora, seed: int) -> Any:
    """A PEFT model around ``model`` with seeded float32 adapters on exactly :func:`targets`."""
    from peft import LoraConfig, get_peft_model

    wanted = targets(model, family)
    torch.manual_seed(seed_of(seed, "lora"))
    config = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        target_modules=wanted,
        task_type="CAUSAL_LM",
    )
    adapted = get_peft_model(model, config)
    found = sorted(name for name, module in model.named_modules() if hasattr(module, "lora_A"))
    if found != wanted:
        raise RuntimeError(f"PEFT adapted {sorted(set(found) ^ set(wanted))} otherwise than asked")
    return adapted


def spare_memory(model: Any) -> None:
    """Keep only the layers' inputs of a training pass; dropout draws the same when a layer is computed once more."""
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})


def trainable(model: Any) -> list[torch.nn.Parameter]:
    """The adapters' parameters, one optimiser group."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]
