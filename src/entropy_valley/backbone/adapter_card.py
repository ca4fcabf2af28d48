"""The model card of an adapter: what the Hugging Face hub shows of its folder. It is no result, and may be edited."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from entropy_valley import files
from entropy_valley.backbone.adapters import FACTS, SETTINGS, facts
from entropy_valley.backbone.families import find_family
from entropy_valley.backbone.prompt_attention import ATTENTIONS, PREFIX, attention_of
from entropy_valley.provenance import CARD

_OF_TRAINING = ("epochs", "global_batch", "learning_rate", "warmup", "weight_decay", "max_tokens")


def write_card(folder: Path, layout: str = "stock") -> None:
    """Write the card of the adapter in a folder; none where there is one, or where no ``adapter.json`` says enough.

    ``layout`` names the modules: those of the ``stock`` transformers class, or the ``released`` ones.
    """
    known = facts(folder)
    if "spec" in known and not (folder / CARD).exists():
        files.write_text(folder / CARD, card(known, files.read_json(folder / SETTINGS), layout))


def card(known: Mapping[str, Any], settings: Mapping[str, Any], layout: str = "stock") -> str:
    """The card, as Markdown behind the hub's YAML block, from ``adapter.json`` and ``adapter_config.json``."""
    spec, base = known["spec"], settings.get("base_model_name_or_path")
    source, target = spec["direction"].split("-")
    kind = "autoregressive" if find_family(known["family"]).causal else "masked diffusion"
    head = {"library_name": "peft", "pipeline_tag": "translation", "language": [source, target]}
    head |= {"tags": [kind.replace(" ", "-"), "machine-translation", "lora"]} | ({"base_model": base} if base else {})
    title = f"# {spec['backbone']}, {source} → {target}: a LoRA adapter for {kind} translation"
    parts = [f"---\n{yaml.safe_dump(head, sort_keys=False)}---", title, _origin(known, base)]
    parts += [
        "## Use",
        "\n\n".join(_use(known, layout)),
        "## Facts",
        "\n".join(_table(known, settings)),
        _limits(known, base),
    ]
    return "\n\n".join(parts) + "\n"


def _origin(known: Mapping[str, Any], base: str | None) -> str:
    of = (
        f"[{base}](https://huggingface.co/{base})"
        if base
        else f"the checkpoint with digest `{known['backbone_digest']}`"
    )
    if known.get("adopted"):
        source = known["source"].get("repository") or "a given folder"
        return f"An adapter for {of}. It was not trained by this workflow, but taken from {source}."
    return f"An adapter for {of}, trained on {known['pairs']:,} sentence pairs with seed {known['seed']}."


def _use(known: Mapping[str, Any], layout: str) -> Iterator[str]:
    spec, names = known["spec"], "the model class of its authors" if layout == "released" else "its stock class"
    if not find_family(known["family"]).causal:
        yield "The adapter holds no length method: how many slots a translation gets is chosen when it is decoded."
        options = f"--direction {spec['direction']} --backbone {spec['backbone']} --adapter FOLDER"
        yield f"```bash\nentropy-valley translate {options} < in.txt > out.txt\n```"
    yield (
        f"PEFT loads it on {names} in transformers: its modules have the names there. `entropy-valley export` converts "
        "between the names of the authors' class and of the stock class."
    )
    if attention_of(spec) == PREFIX:
        yield (
            "It was trained with another attention than its checkpoint: the rows of the prompt attend to the prompt "
            f"alone. PEFT alone does not mask the canvas from them, and computes another function. `{FACTS}` says "
            "`attention: prefix`, and this workflow decodes so."
        )
    if "prompt" in spec:
        yield "The prompt of its training, as a JSON string, with `{src}` where the source goes:"
        yield f"```json\n{json.dumps(spec['prompt'], ensure_ascii=False)}\n```"


def _table(known: Mapping[str, Any], settings: Mapping[str, Any]) -> Iterator[str]:
    spec, training = known["spec"], known["spec"].get("training", {})
    versions = ", ".join(f"{name} {version}" for name, version in known.get("versions", {}).items())
    rows = {
        "LoRA": f"rank {settings['r']}, alpha {settings['lora_alpha']}, {known['trainable_parameters']:,} parameters",
        "optimiser steps": known.get("steps"),
        **{name.replace("_", " "): training.get(name) for name in _OF_TRAINING},
        "precision of the frozen weights": spec.get("precision"),
        "family": find_family(known["family"]).name,
        "attention": f"{PREFIX}: {ATTENTIONS[PREFIX]}" if attention_of(spec) == PREFIX else None,
        "digest of the adapter": known["adapter_digest"],
        "digest of the backbone": known["backbone_digest"],
        "digest of the training pairs": known.get("data_digest"),
        "versions": versions or None,
    }
    yield from ("| | |", "|---|---|")
    yield from (f"| {name} | {value} |" for name, value in rows.items() if value is not None)


def _limits(known: Mapping[str, Any], base: str | None) -> str:
    released = find_family(known["family"]).release(base) if base else None
    licence = f" Its checkpoint is under the licence {released.licence}." if released else ""
    return (
        "## Limits\n\nNothing here says how well it translates: score it on a test set that it has not seen. Text "
        f"unlike its training pairs may be translated badly. All settings are in `{FACTS}`.\n\n"
        f"The licence of the adapter is for its owner to add.{licence}"
    )
