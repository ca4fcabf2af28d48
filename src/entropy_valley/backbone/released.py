"""A checkpoint's config and special tokens, checked against its family and its release."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from entropy_valley import files
from entropy_valley.backbone import checkpoint
from entropy_valley.backbone.families import Family
from entropy_valley.errors import InputError

CONFIG = "config.json"
SIZES = (
    *("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers"),
    *("num_attention_heads", "num_key_value_heads", "max_position_embeddings"),
)


def config_arguments(folder: Path, family: Family, repository: str | None = None) -> dict[str, Any]:
    """Keyword arguments of the stock config, from ``config.json``.

    Raises one InputError that names every field with which the checkpoint computes another function than its family.
    If ``repository`` (default: the one in ``checkpoint.json``) is a release of the family, also every field that
    differs from the release.
    """
    config = _config(folder, family)
    repository = repository or checkpoint.facts(folder).get("repository")
    problems = _differences(config, {"model_type": family.model_type, **family.fixed})
    try:
        arguments = dict(family.to_stock(config))
    except KeyError as error:
        problems.append(f"no field {error}")
    except Exception as error:  # of a user's own family, too
        problems.append(f"{family.name} cannot read it ({type(error).__name__}: {error})")
    else:
        problems += _impossible(arguments)
        release = family.release(repository) if repository else None
        problems += _differences(arguments, release.config if release else {})
    if problems:
        raise InputError(
            folder / CONFIG,
            "; ".join(problems),
            f"Name the family of this checkpoint, or fetch it again: {repository or family.name} is another model.",
        )
    return arguments


def _impossible(arguments: Mapping[str, Any]) -> list[str]:
    """Sizes of which no model can be made."""
    sizes = {name: arguments[name] for name in SIZES if arguments.get(name) is not None}
    wrong = [f"{name} is {value!r}, no whole number above 0" for name, value in sizes.items() if not _is_size(value)]
    if wrong or not {"hidden_size", "num_attention_heads"} <= sizes.keys():
        return wrong
    width, heads = sizes["hidden_size"], sizes["num_attention_heads"]
    shared = sizes.get("num_key_value_heads", heads)
    problems = [f"hidden_size {width} is no even number for each of {heads} heads"] if width % (2 * heads) else []
    return problems + ([f"num_key_value_heads {shared} does not divide {heads} heads"] if heads % shared else [])


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def special_ids(folder: Path, family: Family, tokenizer: Any) -> dict[str, int | None]:
    """The ids of the ``mask``, ``eos``, ``pad`` and ``bos`` token in the tokenizer; None: the family has none.

    Raises one InputError that names every token that the tokenizer does not have, or whose id differs from
    ``config.json`` or from a release of the family with a vocabulary of the same size.
    """
    vocabulary, tokens = tokenizer.get_vocab(), _special_tokens(family, tokenizer)
    ids = {kind: vocabulary.get(token) for kind, token in tokens.items()}
    wanted = (*tokens.values(), *family.chat_tokens)
    problems = [f"no token {token!r}" for token in wanted if token is not None and token not in vocabulary]
    problems += [
        f"{kind} id is {ids[kind]}, {origin} {value}"
        for origin, known in _known_ids(folder, family).items()
        for kind, value in known.items()
        if None not in (value, ids[kind]) and ids[kind] not in (value if isinstance(value, list) else [value])
    ]
    if problems:
        raise InputError(
            folder,
            f"the tokenizer's {'; '.join(problems)}",
            "Use the tokenizer that was released with the checkpoint, and name the checkpoint's family.",
        )
    return ids


def _config(folder: Path, family: Family) -> dict[str, Any]:
    """``config.json`` over the family's defaults for fields that it leaves out."""
    config = files.read_json(folder / CONFIG)
    if not isinstance(config, dict):
        raise InputError(folder / CONFIG, "not a JSON object", "Fetch it again.")
    return {**family.defaults, **config}


def _differences(found: Mapping[str, Any], expected: Mapping[str, Any]) -> list[str]:
    """Fields that differ from what is expected; for a missing field the stock class has the expected value."""
    return [
        f"{key} is {found[key]!r}, not {value!r}"
        for key, value in expected.items()
        if key in found and found[key] != value
    ]


def _special_tokens(family: Family, tokenizer: Any) -> dict[str, str | None]:
    """The special tokens; a mask token that the tokenizer itself declares has priority."""
    return {
        "mask": family.mask_token and (getattr(tokenizer, "mask_token", None) or family.mask_token),
        "eos": family.eos_token,
        "pad": family.pad_token,
        "bos": family.bos_token,
    }


def _known_ids(folder: Path, family: Family) -> dict[str, dict[str, int | None]]:
    """The special ids by their origin: ``config.json``, and the releases with a vocabulary of its size."""
    config = _config(folder, family)
    # No BOS from config.json: Dream's config keeps Qwen2's BOS, but its tokenizer has another one.
    known = {f"{CONFIG} says": {kind: config.get(f"{kind}_token_id") for kind in ("mask", "eos", "pad")}}
    size = family.to_stock(config)["vocab_size"]
    return known | {
        f"{release.repository} has": release.ids
        for release in family.releases
        if release.config.get("vocab_size") == size
    }
