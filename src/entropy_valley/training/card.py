"""The model card of an adapter: what the Hugging Face hub shows of its folder. It is not tracked: edit it freely."""

import contextlib
from pathlib import Path

import yaml

from entropy_valley import files
from entropy_valley.model.adapters import FACTS, SETTINGS, read_facts
from entropy_valley.model.families import find_family
from entropy_valley.model.prompt import PREFIX, attention_of
from entropy_valley.results import CARD
from entropy_valley.settings import JsonObject, read_object

_CARD = """\
---
{head}---

# {name}, {source} → {target}: a LoRA adapter for {kind} translation

An adapter for {base}{origin}. Its rank is {rank}, its alpha {alpha}. `{facts}` has all that is known of it, such as the
prompt.

## Use

{command}PEFT loads it on the class whose names of modules it has; `entropy-valley export` converts between those of the
authors' class and those of the stock class in transformers.{attention}

## Limits

Nothing here says how well it translates: score it on a test set that it has not seen. The licence of the adapter is for
its owner to add.{licence}
"""
_COMMAND = """```bash
entropy-valley translate --direction {} --backbone {} --adapter FOLDER < in.txt > out.txt
```

"""
_PREFIX_NOTE = """ It was trained with `attention: prefix`: the rows of the prompt attend to the
prompt alone. PEFT does not mask the canvas from them, and alone computes another function."""


def write_card(folder: Path) -> None:
    """Write the card of the adapter in a folder; none where there is one, or where no ``adapter.json`` says enough."""
    facts = read_facts(folder)
    if "spec" in facts and not (folder / CARD).exists():
        # Too little is said, or of other types.
        with contextlib.suppress(KeyError, TypeError, ValueError, AttributeError):
            files.write_text(folder / CARD, card(facts, read_object(folder / SETTINGS)))


def card(facts: JsonObject, settings: JsonObject) -> str:
    """The card, as Markdown behind the hub's YAML block, from ``adapter.json`` and ``adapter_config.json``."""
    spec, base, family = facts["spec"], settings.get("base_model_name_or_path"), find_family(facts["family"])
    kind = "autoregressive" if family.causal else "masked diffusion"
    source, target = spec["direction"].split("-")
    head = {"library_name": "peft", "pipeline_tag": "translation", "language": [source, target]}
    head |= {"tags": [kind.replace(" ", "-"), "machine-translation", "lora"]} | ({"base_model": base} if base else {})
    origin = f", taken from {facts['source'].get('repository') or 'a given folder'}" if facts.get("adopted") else None
    release = family.release(base) if base else None
    return _CARD.format(
        head=yaml.safe_dump(head, sort_keys=False),
        name=spec["backbone"],
        source=source,
        target=target,
        kind=kind,
        base=f"[{base}](https://huggingface.co/{base})" if base else f"the checkpoint `{facts['backbone_digest']}`",
        origin=origin or f", trained on {facts['pairs']:,} sentence pairs with seed {facts['seed']}",
        rank=settings["r"],
        alpha=settings["lora_alpha"],
        facts=FACTS,
        command="" if family.causal else _COMMAND.format(spec["direction"], spec["backbone"]),
        attention=_PREFIX_NOTE if attention_of(spec) == PREFIX else "",
        licence=f" Its checkpoint is under the licence {release.licence}." if release else "",
    )
