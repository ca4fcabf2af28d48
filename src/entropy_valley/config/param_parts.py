"""Parts of jobs' params: settings of methods, orders, models, trainings and corpora."""

from __future__ import annotations

from typing import Any

from entropy_valley import plugins, revisions
from entropy_valley.config.matrix import DEV, Run, all_cells
from entropy_valley.config.paths import checkpoint_of, downloaded_datasets
from entropy_valley.config.schema import Experiment
from entropy_valley.data.sources.base import reverse
from entropy_valley.decoding.orders import KNOWN, SourceGuided, looks_at_anchors
from entropy_valley.files import canonical
from entropy_valley.lengths import find_method
from entropy_valley.model.families import find_family
from entropy_valley.model.prompt import PREFIX
from entropy_valley.training.settings import Lora, Loss

# --- The length methods and reveal orders of a config: their classes, settings and needs.


def needs_statistics(experiment: Experiment, method: str) -> bool:
    """Whether a method's canvases depend on the length statistics of their run."""
    return _says(experiment, method, "uses_statistics", False)


def needs_length_head(experiment: Experiment, method: str) -> bool:
    """Whether a method's canvases depend on the length head of their run."""
    return _says(experiment, method, "uses_length_head", False)


def sees_reference(experiment: Experiment, method: str) -> bool:
    """Whether a method's canvases are as long as references."""
    return _says(experiment, method, "sees_reference", False)


def canvas_needs_model(experiment: Experiment, method: str) -> bool:
    """Whether choosing a method's canvases takes a forward pass; Oracle and any Fixed Ratio take none."""
    return _says(experiment, method, "probes", True) or needs_length_head(experiment, method)


def _says(experiment: Experiment, method: str, attribute: str, unsaid: bool) -> bool:
    """An attribute of a method's class. A reassigned method has no class, and needs nothing."""
    name = selector_name(experiment, method)
    return name != "reassigned" and getattr(find_method(name, {}), attribute, unsaid)


def selector_name(experiment: Experiment, method: str) -> str:
    """The length method that a block sets up: the block's ``selector``, or its name."""
    return getattr(experiment.length_methods, method).selector or method


def selector_settings(experiment: Experiment, method: str, direction: str) -> dict[str, Any]:
    """A method's block without its label. Of values by direction it has that of this direction; of a user's class also
    its code."""
    block = getattr(experiment.length_methods, method)
    settings = {
        key: value[direction] if isinstance(value, dict) and direction in value else value
        for key, value in dump(block).items()
        if key != "label"
    }
    if "selector" in settings:
        settings["selector"] = plugins.with_code(settings["selector"])
    binary = not experiment.decoding.exact_products and "exact" in type(block).model_fields
    return {"exact": False, **settings} if binary else settings


def is_ratio_without_slot(experiment: Experiment, method: str) -> bool:
    """Whether a method is a fixed ratio as the paper's, without a slot for the EOS."""
    block = getattr(experiment.length_methods, method)
    return selector_name(experiment, method) == "ratio" and not block.reserve_eos_slot


def reassigned_methods(experiment: Experiment) -> list[str]:
    """The methods that reassign the canvas ratios of another method."""
    return [name for name, block in experiment.length_methods if getattr(block, "selector", None) == "reassigned"]


def order_settings(experiment: Experiment, name: str) -> dict[str, Any]:
    """The reveal order that a name of the config stands for, with its code if it is a user's, and its settings."""
    block = experiment.reveal_orders.get(name)
    settings = {"order": name} if block is None else dump(block)
    return {"order": plugins.with_code(settings.pop("order")), "order_settings": settings}


def source_guided(experiment: Experiment, name: str) -> bool:
    """Whether the reveal order that a name of the config stands for looks at the SIG."""
    return issubclass(_order_class(experiment, name), SourceGuided)


def needs_anchors(experiment: Experiment, name: str) -> bool:
    """Whether the reveal order that a name of the config stands for looks at a gold alignment."""
    return looks_at_anchors(_order_class(experiment, name))


def _order_class(experiment: Experiment, name: str) -> type:
    return plugins.find("reveal order", KNOWN, order_settings(experiment, name)["order"])


def dump(section: Any) -> dict[str, Any]:
    """A section of the config as plain values, without those that are null."""
    return section.model_dump(mode="json", exclude_none=True)


# --- What the params of a job say of a run's model, and of its passes.


def of(experiment: Experiment, run: Run) -> dict[str, Any]:
    """Which model a run is of, and how it reads a sentence."""
    section = experiment.backbones[run.backbone]
    return {
        "backbone": run.backbone,
        "family": section.family,
        "bos": section.bos,
        "shifted": shifted(experiment, run.backbone),
        "direction": run.direction,
        "prompt": prompt(experiment, run.backbone, run.direction),
        "attention": section.attention,
    }


def prompt(experiment: Experiment, backbone: str, direction: str) -> str:
    """The template of a direction as a backbone gets it: in the chat template where it wants one."""
    section, template = experiment.backbones[backbone], experiment.directions[direction].prompt
    return find_family(section.family).chat.replace("{prompt}", template) if section.chat else template


def shifted(experiment: Experiment, backbone: str) -> bool:
    """Whether slot i is read from row i - 1: as the config says, else as the family was trained."""
    section = experiment.backbones[backbone]
    return find_family(section.family).shifted if section.shifted is None else section.shifted


def filling(experiment: Experiment, run: Run) -> dict[str, Any]:
    """As :func:`engine_passes`, of jobs that choose or fill canvases. A prompt that sees no canvas needs no cache."""
    sees = experiment.backbones[run.backbone].attention != PREFIX
    refresh = experiment.of(run.backbone).decoding.refresh if sees else 1
    return engine_passes(experiment, run, revisions.DECODING) | {"prompt_cache": refresh}


def engine_passes(experiment: Experiment, run: Run, revision: int | list[int]) -> dict[str, Any]:
    """As :func:`passes`, of the engine's jobs."""
    settings = experiment.of(run.backbone).decoding
    return passes(experiment, run, revision) | {
        "head_precision": "backbone" if settings.head_precision == settings.precision else settings.head_precision,
        "batch_invariant": settings.batch_invariant,
        "compile_layers": settings.compile_layers,
        "mask_token": settings.mask_token,
    }


def passes(experiment: Experiment, run: Run, revision: int | list[int]) -> dict[str, Any]:
    """What every job has that runs a run's model."""
    settings = experiment.decoding
    model, direction = of(experiment, run), experiment.backbones[run.backbone].decoding_prompt_of
    if direction:
        model["prompt"] = prompt(experiment, run.backbone, direction)
    return {**model, "revision": revision, "precision": settings.precision, "merge_adapter": settings.merge_adapter}


# --- The settings of a training that its adapter depends on.

# Elsewhere in the params; and what only says how a training runs. More processes, and passes of another size, draw
# other dropout masks: the adapter is then another one, but no better, so a finished one stays.
_ELSEWHERE = {"precision"}
_EXECUTION = {"processes", "micro_tokens", "checkpoint_every", "activation_checkpointing", "wandb"}


def training_settings(experiment: Experiment, run: Run) -> dict[str, Any]:
    """What the params of a run's training hold of `training`, with what its direction and then its backbone change."""
    section = experiment.backbones[run.backbone]
    settings = experiment.training_of(run.direction).model_dump(mode="json")
    if run.pool:
        pairs = experiment.directions[run.direction].pools[run.pool]
        settings["limit"] = min(pairs, settings["limit"] or pairs)
    changes = section.training.model_dump(mode="json", exclude={"bos"}, exclude_none=True)
    for part, fields in (("loss", Loss.model_fields), ("lora", Lora.model_fields)):
        settings[part] |= {key: changes.pop(key) for key in [*changes] if key in fields}
    if section.eos_padding is not None:
        settings["loss"] |= {"eos_padding": section.eos_padding, "padding_read": False}
    if settings["loss"]["normaliser"] != "micro_batch" and not settings["loss"]["padding_read"]:
        del settings["loss"]["micro_batch"]
    if find_family(section.family).causal:  # the others are of masks, and what comes later is not read
        settings["loss"] = {
            key: settings["loss"][key] for key in ("normaliser", "micro_batch") if key in settings["loss"]
        }
    return {key: value for key, value in (settings | changes).items() if key not in _ELSEWHERE | _EXECUTION}


# --- The slices of the rules that make corpora and test sets.

USUAL = 1000  # sentences of a test set


def corpus(experiment: Experiment, direction: str) -> str:
    settings = experiment.corpus_of(direction)
    source = experiment.sources[experiment.directions[direction].train]
    filters = {} if source.given else {code: dump(settings.filter_of(code)) for code in direction.split("-")}
    drawn = not (source.given or source.splits)
    return _slice(
        direction=direction,
        revision=revisions.CORPUS,
        seed=settings.seed,
        source=source.settings(direction, "train", "dev"),
        train=settings.train,
        dev=settings.dev,
        filters=filters,
        **({"sampling": settings.sampling_of(direction)} if drawn else {}),
    )


def both_ways(experiment: Experiment, direction: str) -> bool:
    """Whether one pass over the source draws the pairs of a direction and of its reverse."""
    back, source = reverse(direction), experiment.directions[direction].train
    asked = back in experiment.matrix.directions and experiment.directions[back].train == source
    return asked and experiment.sources[source].reversible and _alike(experiment, direction, back)


def _alike(experiment: Experiment, one: str, other: str) -> bool:
    """Whether the pairs of two directions are drawn in the same way."""
    sampling = experiment.corpus.sampling_of
    return sampling(one) == sampling(other) and experiment.corpus_of(one) == experiment.corpus_of(other)


def testset(experiment: Experiment, direction: str, name: str) -> str:
    return _slice(
        direction=direction,
        revision=revisions.CORPUS,
        seed=experiment.corpus.seed,
        source=experiment.sources[name].settings(direction, "test"),
        **_sizes(experiment, direction, name),
    )


def sentences(experiment: Experiment, direction: str, name: str) -> int:
    """How many sentences a test set will have, as far as the config and its source say; else :data:`USUAL`."""
    if name == DEV:
        return experiment.corpus_of(direction).dev
    sizes, known = _sizes(experiment, direction, name), experiment.sources[name].size
    return sizes.get("challenge") or min(filter(None, (sizes["limit"], known)), default=USUAL)


def _sizes(experiment: Experiment, direction: str, name: str) -> dict[str, Any]:
    """How many sentences a test set takes, never more than the config's limit for all, and how they are chosen; a
    challenge subset is of all that the source's own limit gives."""
    source, readings = experiment.sources[name], experiment.corpus_of(direction)
    most = readings.test_limit
    limit = source.limit if source.challenge else min(filter(None, (most, source.limit)), default=None)
    chosen = limit is not None and not source.endless  # of an endless source, the first ones are all there are
    sizes = {"limit": limit, **({"subset": readings.subset} if chosen else {})}
    if not source.challenge:
        return sizes
    size = min(filter(None, (most, source.challenge)))
    return {**sizes, "challenge": size, "challenge_reading": readings.challenge}


def tokenizers(experiment: Experiment, direction: str) -> list[str]:
    """The backbones with a checkpoint of their own whose cells have a direction; variants share its tokenizer."""
    names = (cell.run.backbone for cell in all_cells(experiment) if cell.run.direction == direction)
    return list(dict.fromkeys(checkpoint_of(experiment, name) for name in names))


def trained(experiment: Experiment) -> set[str]:
    """The directions whose training pairs are drawn here for an adapter."""
    if experiment.adapters == "released":
        return set()
    runs = (cell.run for cell in all_cells(experiment))
    return {run.direction for run in runs if not experiment.backbones[run.backbone].zero_shot}


def dataset(experiment: Experiment, name: str) -> str:
    """For the download of a data set; ``name`` is that of its folder."""
    source = downloaded_datasets(experiment)[name]
    return _slice(repository=source.dataset, revision=source.revision)


def _slice(**settings: Any) -> str:
    return canonical(settings)
