"""LoRA adapters: attached to a model, saved after training, and checked before use."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.model import adapters
from entropy_valley.model.adapters import FACTS, LOSSES, Adapter, of_pattern
from entropy_valley.model.attention import pack
from entropy_valley.model.checkpoint import read_origin
from entropy_valley.model.families import LORA_TARGETS, find_family
from entropy_valley.model.load import Backbone
from entropy_valley.training.log import history_csv
from entropy_valley.training.loss import seed_of
from entropy_valley.training.settings import Peft

if TYPE_CHECKING:
    from entropy_valley.model.decoder import Decoder
    from entropy_valley.model.families import Family
    from entropy_valley.training.settings import Lora

# --- The adapters of a model that is to be trained.


def lora_modules(model: Any, family: Family, kind: str = "blocks") -> list[str]:
    """Full paths of the modules to adapt: :data:`.LORA_TARGETS` in every block, none outside the blocks.

    Short names would be ambiguous: in LLaDA both the LM head and the FFN output are called ``ff_out``. With the kind
    "by_name" they are what counts, as in the authors' code: all modules with one of the family's bare names.
    """
    if kind == "by_name":
        bare = {name: family.released_name(name).rpartition(".")[2] for name, _ in model.named_modules()}
        return sorted(name for name in bare if bare[name] in family.lora_names)
    path = re.compile(rf"model\.layers\.\d+\.(self_attn|mlp)\.({'|'.join(LORA_TARGETS)})")
    matching = [name for name, _ in model.named_modules() if path.fullmatch(name)]
    wanted = model.config.num_hidden_layers * len(LORA_TARGETS)
    if len(matching) != wanted:
        raise RuntimeError(f"{len(matching)} modules to adapt, not {wanted}: {matching}")
    return sorted(matching)


def attach_lora(model: Decoder, family: Family, settings: Lora, seed: int) -> Decoder:
    """The model, with PEFT's seeded float32 adapters beside exactly :func:`lora_modules`: all that is trained."""
    modules = lora_modules(model, family, settings.targets)
    for key, patterns in (("rank_pattern", settings.rank_pattern), ("alpha_pattern", settings.alpha_pattern)):
        for pattern in patterns:
            if not any(of_pattern({pattern: True}, module, False) for module in modules):
                raise InputError(f"training.lora.{key}", f"no adapted module is called {pattern!r}", "Correct it.")
    torch.manual_seed(seed_of(seed, "lora"))
    adapters.inject(model, peft_settings(settings), modules)
    if settings.products == "backbone" and model.dtype != torch.float32:
        model.autocast = model.dtype
        for layer in adapters.attached(model).values():  # PEFT's helper ends before the backward pass, which recomputes
            layer.cast_input_dtype_enabled = False
    return model


def peft_settings(settings: Lora, base: str | None = None) -> adapters.Settings:
    """The settings under PEFT's names; ``base`` is the backbone's repository."""
    return adapters.Settings(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        base_model_name_or_path=base,
        **settings.model_dump(include={*Peft.model_fields}),
    )


def trainable(model: Any) -> list[torch.nn.Parameter]:
    """The adapters' parameters."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


# --- Saving a trained adapter: written in PEFT's format, checked, and kept only if it passes the checks.


PACKAGES = ("torch", "transformers", "deepspeed")


class AdapterError(RuntimeError):
    """An adapter that fails a check."""


def trained(backbone: Backbone, settings: Lora, checkpoint: Path, place: Path) -> Adapter:
    """The adapter beside the weights of ``backbone``; the folder ``checkpoint`` holds it. Raises InputError, with the
    ``place``, for one that :func:`.adapters.from_peft` does not take, such as one that is not trained."""
    from peft import get_peft_model_state_dict

    weights = get_peft_model_state_dict(backbone.model, save_embedding_layers=False)
    base = read_origin(checkpoint).get("repository")  # never a local path
    content = peft_settings(settings, base).model_dump()
    return adapters.from_peft(weights, content, backbone.family, place=place)


def versions() -> dict[str, str]:
    """The versions of the packages that training numbers depend on."""
    return {name: importlib.metadata.version(name) for name in PACKAGES}


def is_finished(folder: Path, identity: Mapping[str, Any]) -> bool:
    """Whether ``folder`` already holds this adapter, whole: a job that starts again costs nothing.

    Packages of other versions than then are no reason to train again.
    """
    written = adapters.read_facts(folder)
    if any(written.get(key) != value for key, value in identity.items()) or not (folder / LOSSES).exists():
        return False
    try:
        return adapters.read_adapter(folder, find_family(written["family"])).digest == written["adapter_digest"]
    except InputError:  # cut or damaged
        return False


def save(
    backbone: Backbone,
    checkpoint: Path,
    folder: Path,
    more: Mapping[str, Any],
    history: Sequence[Sequence[float]],
    settings: Lora,
) -> None:
    """Write ``adapter_model.safetensors``, ``adapter_config.json``, ``adapter.json`` and ``losses.csv``; check them.

    ``backbone`` is the adapted one and ``checkpoint`` its folder. ``more`` is added to ``adapter.json``; ``history``
    holds the values of ``losses.csv`` by step. Nothing that differs from run to run is written. Afterwards the weights
    of ``backbone`` are the merged ones. Raises AdapterError, and writes no folder, if the adapter fails a check.
    """
    change = trained(backbone, settings, checkpoint, folder)
    if differing := set(lora_modules(backbone.model, backbone.family, settings.targets)) ^ {*change.modules}:
        raise AdapterError(f"the adapted modules differ from the wanted ones by {sorted(differing)}")
    with files.atomic_folder(folder) as new:
        adapters.write_adapter(change, new)
        origin = {"backbone_digest": backbone.digest, "family": backbone.family.name, "versions": versions()}
        files.write_json(new / FACTS, {**more, **origin, **summary(change, backbone.model)})
        files.write_text(new / LOSSES, history_csv(history))
        check_effect(backbone, new)


def summary(adapter: Adapter, model: Any) -> dict[str, Any]:
    """The fields that ``adapter.json`` has for every adapter, trained here or given."""
    return {
        "adapter_digest": adapter.digest,
        "trainable_parameters": adapter.parameters,
        "vocabulary": model.config.vocab_size,
    }


def check_effect(backbone: Backbone, folder: Path) -> None:
    """Raise AdapterError unless the adapter changes logits, read from ``folder`` and merged as decoding merges it.

    It is merged into ``backbone`` itself: loading a second one would take as much memory and time again. Where PEFT has
    changed the backbone's weights (PiSSA, OLoRA), the logits are always other ones.
    """
    from peft import set_peft_model_state_dict

    model, written = backbone.model, adapters.read_adapter(folder, backbone.family)
    layers = adapters.attached(model).values()
    sequence = pack([[backbone.eos_id, 0, 1, backbone.eos_id]], model.device)
    with torch.inference_mode():
        for layer in layers:
            layer.enable_adapters(False)
        before = model.lm_head(model.hidden_states(sequence))
        set_peft_model_state_dict(model, written.lora)
        for layer in layers:
            layer.enable_adapters(True)
        adapters.merge(model, folder)
        after = model.lm_head(model.hidden_states(sequence))
    if torch.equal(before, after):
        raise AdapterError("the adapter does not change the logits")
