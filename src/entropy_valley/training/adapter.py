"""The LoRA adapter of a training: attached by PEFT, and saved."""

import importlib.metadata
from collections.abc import Sequence
from pathlib import Path

import torch

from entropy_valley import files
from entropy_valley.errors import refusal
from entropy_valley.model import adapters
from entropy_valley.model.decoder import Decoder
from entropy_valley.model.families import LORA_TARGETS, Family, find_family
from entropy_valley.model.load import Backbone
from entropy_valley.settings import JsonObject
from entropy_valley.training.log import history_csv
from entropy_valley.training.loss import seed_of
from entropy_valley.training.settings import Lora


def lora_modules(model: Decoder, family: Family, kind: str = "blocks") -> list[str]:
    """Full paths of the modules to adapt: :data:`.LORA_TARGETS` in every block, none outside the blocks.

    With the kind "by_name" bare released names are what counts, as in the authors' code: in LLaDA both the LM head and
    the FFN output are called ``ff_out``.
    """
    names, named = (family.lora_names, family.released_name) if kind == "by_name" else (LORA_TARGETS, str)
    return sorted(name for name, _ in model.named_modules() if named(name).rpartition(".")[2] in names)


def attach_lora(model: Decoder, family: Family, settings: Lora, seed: int) -> Decoder:
    """The model, with PEFT's seeded float32 adapters beside exactly :func:`lora_modules`: all that is trained."""
    torch.manual_seed(seed_of(seed, "lora"))
    adapters.inject(model, settings.peft, lora_modules(model, family, settings.targets))
    return model


def trainable(model: torch.nn.Module) -> list[torch.nn.Parameter]:
    """The adapters' parameters."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def versions() -> dict[str, str]:
    """Of the packages that the numbers of a training depend on."""
    return {name: importlib.metadata.version(name) for name in ("torch", "transformers", "deepspeed")}


def is_finished(folder: Path, identity: JsonObject) -> bool:
    """Whether ``folder`` already holds this adapter, whole: a job that starts again costs nothing.

    Packages of other versions than then are no reason to train again.
    """
    written = adapters.read_facts(folder)
    if any(written.get(key) != value for key, value in identity.items()) or not (folder / adapters.LOSSES).exists():
        return False
    return refusal(adapters.read_adapter, folder, find_family(written["family"])) is None  # neither cut nor damaged


def save(
    backbone: Backbone, folder: Path, settings: JsonObject, facts: JsonObject, history: Sequence[Sequence[float]]
) -> None:
    """Write ``adapter_model.safetensors``, ``adapter_config.json``, ``adapter.json`` and ``losses.csv``.

    ``settings`` are keys of PEFT's ``LoraConfig``, ``facts`` go into ``adapter.json`` and ``history`` into
    ``losses.csv``. Raises InputError, and writes no folder, for an adapter that is not finite or changes nothing.
    """
    from peft import get_peft_model_state_dict

    weights = get_peft_model_state_dict(backbone.model, save_embedding_layers=False)
    trained = adapters.from_peft(weights, settings, backbone.family, folder)
    facts = {**facts, "versions": versions(), "vocabulary": backbone.model.config.vocab_size}
    with files.atomic_folder(folder) as new:
        adapters.write_adapter(trained, new, facts=facts)
        files.write_text(new / adapters.LOSSES, history_csv(history))
