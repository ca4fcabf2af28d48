"""What the numbers of jobs depend on: their params, as canonical JSON. Those that only a rule needs stand beside it.

Snakemake compares this text. Its ``made_from`` has a digest of the params of each result that the job reads. So a
change anywhere changes the params of all that follows, and Snakemake repeats exactly that, also after a failure or a
kill. What only says how a job runs (folders, a device, how often to save) is in no params.
"""

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from entropy_valley import revisions, shipped
from entropy_valley.experiment.config import paths
from entropy_valley.experiment.config.matrix import DEV, Cell, CellSet, Run, sets_of
from entropy_valley.experiment.config.methods import (
    declares,
    dump,
    method_settings,
    order_settings,
    origins,
    source_guided,
)
from entropy_valley.experiment.config.schema import Experiment, scoring_params
from entropy_valley.files import canonical, text_digest
from entropy_valley.model.adapters import FACTS
from entropy_valley.model.families import find_family
from entropy_valley.model.prompt import PREFIX
from entropy_valley.settings import numbers_of
from entropy_valley.training.settings import Lora, Loss, Peft

SHORT = 16  # hex digits of a digest in `made_from`
DEFAULT_SENTENCES = 1000  # sentences of a test set whose size neither the config nor its source says


def digest(spec: str) -> str:
    """What `made_from` has of the params of a result that a job reads."""
    return text_digest(spec)[:SHORT]


def _slice(**settings: Any) -> str:
    return canonical(settings)


# --- Corpora and test sets, and what is counted in them.


@functools.cache
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


def corpus_digests(experiment: Experiment, *directions: str) -> dict[str, str]:
    """What the training and development pairs of directions are made from."""
    return {f"corpus {name}": digest(corpus(experiment, name)) for name in directions}


@functools.cache
def testset(experiment: Experiment, direction: str, testset: str = DEV) -> str:
    """The params of a test set; the development pairs are a copy."""
    if testset == DEV:
        return _slice(made_from={"corpus": digest(corpus(experiment, direction))})
    return _slice(
        direction=direction,
        revision=revisions.CORPUS,
        seed=experiment.corpus.seed,
        source=experiment.sources[testset].settings(direction, "test"),
        **_sizes(experiment, direction, testset),
    )


def testset_digests(experiment: Experiment, direction: str, testsets: list[str]) -> dict[str, str]:
    """What test sets are made from."""
    return {f"testset {name}": digest(testset(experiment, direction, name)) for name in testsets}


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


def sentences(experiment: Experiment, direction: str, name: str) -> int:
    """How many sentences a test set will have; :data:`DEFAULT_SENTENCES` where neither config nor source says."""
    if name == DEV:
        return experiment.corpus_of(direction).dev
    sizes, available = _sizes(experiment, direction, name), experiment.sources[name].size
    return sizes.get("challenge") or min(filter(None, (sizes["limit"], available)), default=DEFAULT_SENTENCES)


def tokenizers(experiment: Experiment, direction: str) -> list[str]:
    """The backbones with a checkpoint of their own whose cells have a direction; variants share its tokenizer."""
    runs = [run for run in sets_of(experiment).by_run if run.direction == direction]
    return list(dict.fromkeys(paths.checkpoint_of(experiment, run.backbone) for run in runs))


# --- Checkpoints, and the adapters of runs.


def backbone(experiment: Experiment, name: str, seed: int | None = None) -> str:
    """The params of whatever makes the checkpoint of a backbone's run: variants share it."""
    origin = paths.checkpoint_of(experiment, name)
    if experiment.backbones[origin].is_pretrained_here:
        return pretraining(experiment, origin, paths.pretraining_seed(experiment, origin, seed))
    return hub(experiment, origin)


def checkpoint_digest(experiment: Experiment, name: str, seed: int | None = None) -> str:
    """For what is made from that checkpoint."""
    return digest(backbone(experiment, name, seed))


def hub(experiment: Experiment, backbone: str) -> str:
    section = experiment.backbones[backbone]
    own = {"backbone": backbone, "family": section.family}
    if section.pretrained:
        return _slice(**own, digest=shipped.MODELS[section.pretrained].origin["digest"])
    if section.hub is None:
        return _slice(**own)
    repository, released = section.hub.repository, find_family(section.family).release(section.hub.repository)
    return _slice(
        **own,
        repository=repository,
        revision=section.hub.revision or (released and released.revision),
        licence=section.hub.licence or (released and released.licence),
        gated=bool(released and released.gated),
    )


def pretraining(experiment: Experiment, backbone: str, seed: int | str) -> str:
    section = experiment.backbones[backbone]
    assert section.pretraining
    settings = section.pretraining.model_dump(mode="json", exclude={"directions", "seed"}, exclude_none=True)
    directions = pretraining_directions(experiment, backbone)
    return _slice(
        revision=revisions.PRETRAINING,
        family=section.family,
        bos=section.bos,
        seed=int(seed),
        pretraining=settings,
        prompts={name: prompt(experiment, backbone, name) for name in directions},
        made_from=corpus_digests(experiment, *directions),
    )


def pretraining_directions(experiment: Experiment, backbone: str) -> list[str]:
    """The directions whose corpora a backbone is pre-trained on."""
    pretraining = experiment.backbones[backbone].pretraining
    return (pretraining and pretraining.directions) or experiment.matrix.directions


def any_adapter(experiment: Experiment, run: Run) -> str:
    """The params of a run's adapter, which is trained or given."""
    return adapter(experiment, run) if experiment.adapters == "released" else training(experiment, run)


@functools.cache
def training(experiment: Experiment, run: Run) -> str:
    section = experiment.backbones[run.backbone]
    made_from = corpus_digests(experiment, run.direction)
    made_from["backbone"] = checkpoint_digest(experiment, run.backbone, run.seed)
    settings = model_of(experiment, run)
    if section.training.bos is not None:
        settings["bos"] = section.training.bos
    return _slice(
        **settings,
        revision=revisions.TRAINING,
        seed=run.seed,
        precision=experiment.training.precision,
        training=training_settings(experiment, run.backbone, run.direction, run.pool),
        made_from=made_from,
    )


@functools.cache
def training_settings(experiment: Experiment, backbone: str, direction: str, pool: str) -> dict[str, Any]:
    """What the params of a training hold of `training`, with what its direction and then its backbone change; the runs
    of all seeds share it.

    More processes, and passes of another size, draw other dropout masks: the adapter is then another one, but no
    better, so a finished one stays.
    """
    section = experiment.backbones[backbone]
    settings = numbers_of(experiment.training_of(direction))
    del settings["precision"]  # elsewhere in the params
    if pool:
        pairs = experiment.directions[direction].pools[pool]
        settings["limit"] = min(pairs, settings["limit"] or pairs)
    changes = section.training.model_dump(mode="json", exclude={"bos"}, exclude_none=True)
    for part, fields in (("loss", Loss.model_fields), ("lora", Lora.model_fields)):
        settings[part] |= {key: changes.pop(key) for key in [*changes] if key in fields}
    for key, field in Peft.model_fields.items():  # as PEFT has it: a key that is added here repeats no training
        if settings["lora"][key] == field.default:
            del settings["lora"][key]
    if section.eos_padding is not None:
        settings["loss"] |= {"eos_padding": section.eos_padding, "padding_read": False}
    if settings["loss"]["normaliser"] != "micro_batch" and not settings["loss"]["padding_read"]:
        del settings["loss"]["micro_batch"]
    if find_family(section.family).causal:  # the others are of masks, and what comes later is not read
        for key in settings["loss"].keys() - {"normaliser", "micro_batch"}:
            del settings["loss"][key]
    return settings | changes


@functools.cache
def adapter(experiment: Experiment, run: Run) -> str:
    """For a given adapter. Its folder is no part of it: the digest of what is in it is."""
    given = paths.released_adapter(experiment, run)
    section = experiment.backbones[run.backbone]
    return _slice(
        backbone=run.backbone,
        family=section.family,
        direction=run.direction,
        seed=run.seed,
        revision=revisions.ADOPTION,
        source=numbers_of(given),
        attention=section.attention,
        made_from={"backbone": checkpoint_digest(experiment, run.backbone, run.seed)},
    )


# --- What every job depends on that runs a run's model: the model, and its passes.


def model_of(experiment: Experiment, run: Run) -> dict[str, Any]:
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
    chat = find_family(section.family).chat if section.chat else None
    return chat.replace("{prompt}", template) if chat else template


def shifted(experiment: Experiment, backbone: str) -> bool:
    """Whether slot i is read from row i - 1: as the config says, else as the family was trained."""
    section = experiment.backbones[backbone]
    return find_family(section.family).shifted if section.shifted is None else section.shifted


def passes(experiment: Experiment, run: Run, revision: int | list[int]) -> dict[str, Any]:
    """What every job has that runs a run's model."""
    settings = experiment.decoding
    model, direction = model_of(experiment, run), experiment.backbones[run.backbone].decoding_prompt_of
    if direction:
        model["prompt"] = prompt(experiment, run.backbone, direction)
    return {**model, "revision": revision, "precision": settings.precision, "merge_adapter": settings.merge_adapter}


def engine_passes(experiment: Experiment, run: Run, revision: int | list[int]) -> dict[str, Any]:
    """As :func:`passes`, of the engine's jobs."""
    settings = experiment.decoding_of(run.backbone)
    return passes(experiment, run, revision) | {
        "head_precision": "backbone" if settings.head_precision == settings.precision else settings.head_precision,
        "batch_invariant": settings.batch_invariant,
        "compile_layers": settings.compile_layers,
        "mask_token": settings.mask_token,
    }


def filling(experiment: Experiment, run: Run) -> dict[str, Any]:
    """As :func:`engine_passes`, of jobs that choose or fill canvases. A prompt that sees no canvas needs no cache."""
    sees = experiment.backbones[run.backbone].attention != PREFIX
    refresh = experiment.decoding_of(run.backbone).refresh if sees else 1
    return engine_passes(experiment, run, revisions.DECODING) | {"prompt_cache": refresh}


def _of_model(experiment: Experiment, run: Run, testsets: list[str], fitted: bool = False) -> dict[str, str]:
    """What a job is made from that runs a run's model, which has an adapter or is a bare checkpoint, on test sets;
    ``fitted``: also on training pairs."""
    if experiment.backbones[run.backbone].zero_shot:
        weights = {"backbone": checkpoint_digest(experiment, run.backbone, run.seed)}
    else:
        weights = {"adapter": digest(any_adapter(experiment, paths.adapter_run(experiment, run)))}
    pairs = corpus_digests(experiment, *[run.direction] * fitted)
    return weights | testset_digests(experiment, run.direction, testsets) | pairs


# --- Translations of a set, latency of a cell, diagnostics of a run.


@functools.cache
def translation(experiment: Experiment, cells: CellSet) -> str:
    """For the translations of a set."""
    settings = translating(experiment, cells)
    return _slice(**settings, made_from=_of_model(experiment, cells.run, cells.testsets, "fits" in settings))


@functools.cache
def translating(experiment: Experiment, cells: CellSet) -> dict[str, Any]:
    """The same without what the translations are made from, for whoever counts their work.

    ``cells`` lists (test set, length method, reveal order, step budget); ``methods`` and ``orders`` have the settings
    of those that occur; ``fits`` what is measured or trained on training pairs for them, where any needs it.
    """
    run, listed = cells.run, [[cell.testset, cell.method, cell.order, cell.steps] for cell in cells.cells]
    if cells.autoregressive:
        search = experiment.autoregressive.model_dump(exclude={"backbones"})
        return {**passes(experiment, run, revisions.GENERATION), **search, "cells": listed}
    shown = dict.fromkeys(cell.method for cell in cells.cells)
    methods = list(shown | dict.fromkeys(origin for name in shown for origin in origins(experiment, name)))
    fits = _fits(experiment, run, methods)
    return {
        **filling(experiment, run),
        "schedule": experiment.decoding_of(run.backbone).schedule,
        "cells": listed,
        "methods": {name: _settings(experiment, name, run.direction, run.backbone) for name in methods},
        "orders": {name: _order(experiment, name) for name in dict.fromkeys(cell.order for cell in cells.cells)},
        **({"fits": fits} if fits else {}),
    }


_settings = functools.cache(method_settings)  # once, not for each seed


def _order(experiment: Experiment, order: str) -> dict[str, Any]:
    """A reveal order and its settings; of one that looks at the SIG also a revision of its own, beside that of all."""
    revision = {"sig_revision": revisions.SOURCE_GUIDED} if source_guided(experiment, order) else {}
    return order_settings(experiment, order) | revision


def _fits(experiment: Experiment, run: Run, methods: list[str]) -> dict[str, Any]:
    """What is fitted to training pairs for these length methods, with its params."""
    # How many of the training pairs a job may read; of a run on all of them it says nothing.
    limit = {"limit": experiment.directions[run.direction].pools[run.pool]} if run.pool else {}
    fits = {}
    if parts := sorted({part for name in methods for part in declares(experiment, name, "uses_statistics")}):
        probing = {}
        if "confidence_bias" in parts:
            model = engine_passes(experiment, run, [revisions.DECODING, revisions.LENGTH_STATISTICS])
            probing = {**model, **dump(experiment.length_statistics)}
        fits["length_statistics"] = {"revision": revisions.LENGTH_STATISTICS, **probing, "parts": parts, **limit}
    if learning := [name for name in methods if declares(experiment, name, "learns")]:
        model = engine_passes(experiment, run, [revisions.DECODING, revisions.LEARNING])
        settings = {name: _settings(experiment, name, run.direction, run.backbone) for name in learning}
        fits["learned"] = {**model, "methods": settings}
    if any(declares(experiment, name, "uses_length_head") for name in methods):
        model = engine_passes(experiment, run, [revisions.DECODING, revisions.LENGTH_HEAD])
        trained = {"seed": run.seed, "training": dump(experiment.length_head_training)}
        fits["length_head"] = {**model, **trained, **limit}
    return fits


def latency(experiment: Experiment, cell: Cell) -> str:
    """A benchmark: the same spec twice gives other seconds."""
    run = cell.run
    fits = _fits(experiment, run, [cell.method])
    return _slice(
        **filling(experiment, run),
        method=cell.method,
        settings=_settings(experiment, cell.method, run.direction, run.backbone),
        schedule=experiment.decoding_of(run.backbone).schedule,
        **_order(experiment, cell.order),
        steps=cell.steps,
        seed=experiment.corpus.seed,
        **dump(experiment.latency),
        **({"fits": fits} if fits else {}),
        made_from=_of_model(experiment, run, [cell.testset], bool(fits)),
    )


def diagnostics(experiment: Experiment, run: Run) -> str:
    """For the all-mask canvases of a run's test sets that figures and tables show."""
    testsets, kinds = sets_of(experiment).diagnostics.get(run, {}), {"valley": _valley, "sig": _sig_concentration}
    names = list(dict.fromkeys(name for names in testsets.values() for name in names))
    return _slice(
        **engine_passes(experiment, run, revisions.DECODING),
        testsets=testsets,
        **{kind: kinds[kind](experiment, run) for kind in testsets},
        made_from=_of_model(experiment, run, names),
    )


def _valley(experiment: Experiment, run: Run) -> dict[str, Any]:
    """Entropies around the reference's length; the sentences are chosen as those of a test set's subset are."""
    settings = experiment.valley
    return dict(
        **engine_passes(experiment, run, [revisions.DECODING, revisions.VALLEY]),
        offset=settings.offset,
        ratios=settings.ratios_of.get(run.direction, settings.ratios),
        sentences=settings.sentences,
        seed=experiment.corpus.seed,
        subset=experiment.corpus.subset,
    )


def _sig_concentration(experiment: Experiment, run: Run) -> dict[str, Any]:
    revision = [revisions.DECODING, revisions.SIG_CONCENTRATION]
    return engine_passes(experiment, run, revision) | experiment.sig_concentration.model_dump()


# --- Scores.


@functools.cache
def scores(experiment: Experiment, cells: CellSet) -> str:
    """For the scores of a set. Of a COMET that is trained here they have a digest, of any other its name."""
    run, target = cells.run, cells.run.direction.split("-")[1]
    trained = {"comet": digest(comet_training(experiment))} if experiment.scoring.trains_comet else {}
    return _slice(
        direction=run.direction,
        target_language=target,
        revision=revisions.SCORING_INTO.get(target, revisions.SCORING),
        **scoring_params(experiment.scoring, run.direction, experiment.backbones[run.backbone].bleu),
        made_from={"translations": digest(translation(experiment, cells)), **trained},
    )


@functools.cache
def specs_behind(experiment: Experiment, cells: CellSet, name: str) -> dict[str, str]:
    """The params of what is behind the scores of a set in the test set ``name``, but for its checkpoint, by path."""
    run, root = cells.run, experiment.results
    corpora, adapter = f"{root}/corpus/{run.direction}", paths.adapter_folder(experiment, run)
    specs = {}
    if adapter and experiment.adapters == "trained":
        specs[f"{corpora}/train.jsonl"] = corpus(experiment, run.direction)
    specs[f"{corpora}/test/{name}.jsonl"] = testset(experiment, run.direction, name)
    if adapter:
        specs[f"{adapter}/{FACTS}"] = any_adapter(experiment, paths.adapter_run(experiment, run))
    specs[cells.translations(root)] = translation(experiment, cells)
    specs[cells.scores(root)] = scores(experiment, cells)
    return specs


def comet_training(experiment: Experiment) -> str:
    assert experiment.scoring.comet
    return _slice(
        revision=revisions.SCORING,
        **dump(experiment.scoring.comet.training),
        made_from=corpus_digests(experiment, *experiment.matrix.directions),
    )


def filled_forms(experiment: Experiment, direction: str) -> list[str]:
    """The filled forms of a direction: the files that are there now, or those of simulated annotators."""
    settings = experiment.human_evaluation
    if settings.simulated:
        place = f"{experiment.results}/human_evaluation/{direction}/simulated"
        return [f"{place}/{direction}.{annotator}.csv" for annotator in settings.annotators]
    files = Path(settings.forms).glob(f"{direction}.*")
    return sorted(str(path) for path in files if path.suffix.lower() in (".csv", ".xlsx"))


# --- By wildcards, as the rules of the workflow ask for them.

Wildcards = Mapping[str, str]


def spec_of(experiment: Experiment, spec: Callable[..., str], wildcards: Wildcards) -> str:
    """One of the functions above for a job: of its set, cell or run; for other rules it takes their wildcards.

    Raises InputError as :func:`set_of`.
    """
    if "set" in wildcards:
        return spec(experiment, set_of(experiment, wildcards))
    if "method" in wildcards:
        return spec(experiment, *cells_of(experiment, wildcards))
    if {"direction", "backbone", "seed"} <= wildcards.keys():
        return spec(experiment, run_of(wildcards))
    return spec(experiment, **wildcards)


def run_of(wildcards: Wildcards) -> Run:
    """The run that wildcards name."""
    return Run.named(wildcards["direction"], wildcards["backbone"], wildcards["seed"])


def set_of(experiment: Experiment, wildcards: Wildcards) -> CellSet:
    """The set that wildcards name; raises InputError for one that its run does not have."""
    return sets_of(experiment).named(run_of(wildcards), wildcards["set"])


def cells_of(experiment: Experiment, wildcards: Wildcards) -> tuple[Cell, ...]:
    """The cells that a job computes, those of its set or the one that it times; none for other jobs.

    Raises InputError as :func:`set_of`."""
    if "set" in wildcards:
        return set_of(experiment, wildcards).cells
    if "method" not in wildcards:
        return ()
    testset, method, order = (wildcards[name] for name in ("testset", "method", "order"))
    return (Cell(run_of(wildcards), testset, method, order, int(wildcards["steps"])),)
