"""The params of the rules that compute: what each job's result depends on, as canonical JSON.

Every slice has ``made_from``: a digest of the params of each result that the job reads. So a change anywhere changes
the params of all that follows, and Snakemake repeats exactly that, also after a failure or a kill.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from entropy_valley import revisions
from entropy_valley.config import matrix, param_parts
from entropy_valley.config.matrix import DEV, Cell, CellSet, Run, remembered, sets_of
from entropy_valley.config.param_parts import (
    dump,
    needs_length_head,
    needs_statistics,
    order_settings,
    reassigned_methods,
    sees_reference,
    selector_settings,
    source_guided,
    training_settings,
)
from entropy_valley.config.paths import adapter_run, checkpoint_of, released_adapter
from entropy_valley.config.schema import Experiment, checkpoints, metrics_of, scoring_params
from entropy_valley.files import canonical, text_digest
from entropy_valley.model.families import find_family

SHORT = 16  # hex digits of a digest in `made_from`


def digest(spec: str) -> str:
    """What `made_from` has of the params of a result that a job reads."""
    return text_digest(spec)[:SHORT]


def backbone(experiment: Experiment, name: str) -> str:
    """The params of whatever makes a checkpoint: variants share it."""
    origin = checkpoint_of(experiment, name)
    return (pretraining if experiment.backbones[origin].pretraining else hub)(experiment, origin)


def weights(experiment: Experiment, run: Run) -> dict[str, str]:
    """What a run's model is made from: its adapter, or a bare checkpoint."""
    if experiment.backbones[run.backbone].zero_shot:
        return {"backbone": digest(backbone(experiment, run.backbone))}
    return {"adapter": digest(any_adapter(experiment, adapter_run(experiment, run)))}


def any_adapter(experiment: Experiment, run: Run) -> str:
    """The params of a run's adapter, which is trained or given."""
    kind = adapter if experiment.adapters == "released" else training
    return remembered(experiment, (kind.__name__, run), lambda: kind(experiment, run))


def tests(experiment: Experiment, direction: str, testsets: list[str]) -> dict[str, str]:
    """What test sets are made from."""
    return {f"testset {name}": digest(any_testset(experiment, direction, name)) for name in testsets}


def _of_model(experiment: Experiment, run: Run, testsets: list[str], fitted: bool = False) -> dict[str, str]:
    """What a job is made from that runs a run's model on test sets; ``fitted``: also on training pairs."""
    fits = pairs(experiment, run.direction) if fitted else {}
    return {**weights(experiment, run), **tests(experiment, run.direction, testsets), **fits}


def any_testset(experiment: Experiment, direction: str, name: str) -> str:
    """The params of a test set; the development pairs are a copy."""
    if name == DEV:
        return _slice(made_from={"corpus": digest(param_parts.corpus(experiment, direction))})
    return remembered(
        experiment, ("testset", direction, name), lambda: param_parts.testset(experiment, direction, name)
    )


def pairs(experiment: Experiment, *directions: str) -> dict[str, str]:
    """What the training and development pairs of directions are made from."""
    specs = {
        name: remembered(experiment, ("corpus", name), lambda name=name: param_parts.corpus(experiment, name))
        for name in directions
    }
    return {f"corpus {name}": digest(spec) for name, spec in specs.items()}


def pretraining(experiment: Experiment, backbone: str) -> str:
    section = experiment.backbones[backbone]
    settings = section.pretraining.model_dump(mode="json", exclude={"directions", "seed"})
    return _slice(
        revision=revisions.PRETRAINING,
        family=section.family,
        bos=section.bos,
        seed=section.pretraining.seed,
        pretraining=settings,
        prompts={
            direction: param_parts.prompt(experiment, backbone, direction)
            for direction in pretraining_directions(experiment, backbone)
        },
        made_from=pairs(experiment, *pretraining_directions(experiment, backbone)),
    )


def pretraining_directions(experiment: Experiment, backbone: str) -> list[str]:
    """The directions whose corpora a backbone is pre-trained on."""
    return experiment.backbones[backbone].pretraining.directions or experiment.matrix.directions


def hub(experiment: Experiment, backbone: str) -> str:
    section = experiment.backbones[backbone]
    known = {"backbone": backbone, "family": section.family}
    if section.hub is None:
        return _slice(**known)
    repository, released = section.hub.repository, find_family(section.family).release(section.hub.repository)
    return _slice(
        **known,
        repository=repository,
        revision=section.hub.revision or (released and released.revision),
        licence=section.hub.licence or (released and released.licence),
        gated=bool(released and released.gated),
    )


def training(experiment: Experiment, run: Run) -> str:
    section = experiment.backbones[run.backbone]
    params = {
        **param_parts.of(experiment, run),
        "bos": section.bos if section.training.bos is None else section.training.bos,
        "revision": revisions.TRAINING,
        "seed": run.seed,
        "precision": experiment.training.precision,
        "training": training_settings(experiment, run),
        "made_from": {**pairs(experiment, run.direction), "backbone": digest(backbone(experiment, run.backbone))},
    }
    return _slice(**params)


def adapter(experiment: Experiment, run: Run) -> str:
    """For a given adapter. Its folder is no part of it: the digest of what is in it is."""
    given = released_adapter(experiment, run)
    section = experiment.backbones[run.backbone]
    return _slice(
        backbone=run.backbone,
        family=section.family,
        direction=run.direction,
        seed=run.seed,
        revision=revisions.ADOPTION,
        source=given.model_dump(mode="json", include={"repository", "revision", "subfolder"}),
        attention=section.attention,
        made_from={"backbone": digest(backbone(experiment, run.backbone))},
    )


def tokens(experiment: Experiment, direction: str, name: str, testset: str) -> str:
    """For the token counts of a test set, which depend on the tokenizer alone."""
    return _slice(
        backbone=name,
        family=experiment.backbones[name].family,
        revision=revisions.TOKENS,
        made_from={
            "backbone": digest(backbone(experiment, name)),
            **tests(experiment, direction, [testset]),
        },
    )


def overlap(experiment: Experiment, direction: str, testset: str) -> str:
    """For the counts of test sentences that occur in training."""
    train = pairs(experiment, direction) if direction in param_parts.trained(experiment) else {}
    return _slice(revision=revisions.OVERLAP, made_from={**tests(experiment, direction, [testset]), **train})


def length_ratios(experiment: Experiment, direction: str) -> str:
    """For the ratios of lengths under each tokenizer of a direction."""
    names = param_parts.tokenizers(experiment, direction)
    return _slice(
        revision=revisions.LENGTH_RATIOS,
        tokenizers={name: experiment.backbones[name].family for name in names},
        made_from={
            **pairs(experiment, direction),
            **{f"backbone {name}": digest(backbone(experiment, name)) for name in names},
        },
    )


def translation(experiment: Experiment, cells: CellSet) -> str:
    """For the translations of a set.

    ``cells`` lists (test set, length method, reveal order, step budget); ``methods`` and ``orders`` have the settings
    of those that occur; ``fits`` what is measured or trained on training pairs for them, where any needs it.
    """
    compute = _generation if cells.autoregressive else _denoising
    return remembered(experiment, ("translation", cells), lambda: compute(experiment, cells))


def _denoising(experiment: Experiment, cells: CellSet) -> str:
    run, own = cells.run, experiment.of(cells.run.backbone)
    methods = _with_origins(own, dict.fromkeys(cell.method for cell in cells.cells))
    fits = _fits(own, run, methods)
    return _slice(
        **param_parts.filling(own, run),
        schedule=own.decoding.schedule,
        cells=[_system(cell) for cell in cells.cells],
        methods={name: selector_settings(own, name, run.direction) for name in methods},
        orders={name: _order(own, name) for name in dict.fromkeys(cell.order for cell in cells.cells)},
        **({"fits": fits} if fits else {}),
        made_from=_of_model(experiment, run, cells.testsets, bool(fits)),
    )


def _with_origins(experiment: Experiment, methods: dict[str, None]) -> list[str]:
    """Length methods, and those whose canvases some of them reassign."""
    dealt = set(reassigned_methods(experiment))
    origins = [getattr(experiment.length_methods, name).of for name in methods if name in dealt]
    return list(methods | dict.fromkeys(origins))


def _fits(experiment: Experiment, run: Run, methods: list[str]) -> dict[str, Any]:
    """What is fitted to training pairs for these length methods, with its params."""
    statistics = any(needs_statistics(experiment, name) for name in methods)
    head = any(needs_length_head(experiment, name) for name in methods)
    return {
        **({"length_statistics": _length_statistics(experiment, run)} if statistics else {}),
        **({"length_head": _length_head(experiment, run)} if head else {}),
    }


def _system(cell: Cell) -> list[str | int]:
    return [cell.testset, cell.method, cell.order, cell.steps]


def _generation(experiment: Experiment, cells: CellSet) -> str:
    """For the translations of an autoregressive backbone."""
    return _slice(
        **param_parts.passes(experiment, cells.run, revisions.GENERATION),
        **experiment.autoregressive.model_dump(exclude={"backbones"}),
        cells=[_system(cell) for cell in cells.cells],
        made_from=_of_model(experiment, cells.run, cells.testsets),
    )


def measured_by_references(experiment: Experiment, run: Run) -> list[str]:
    """The test sets of a run on which a length method takes canvases as long as the references."""
    cells = [cell for one in sets_of(experiment).of_run(run) for cell in one.cells if cell.order]
    return list(dict.fromkeys(cell.testset for cell in cells if sees_reference(experiment, cell.method)))


def _length_statistics(experiment: Experiment, run: Run) -> dict[str, Any]:
    return dict(
        **param_parts.engine_passes(experiment, run, [revisions.DECODING, revisions.LENGTH_STATISTICS]),
        **dump(experiment.length_statistics),
        **_pool(experiment, run),
    )


def diagnostics(experiment: Experiment, run: Run) -> str:
    """For the all-mask canvases of a run's test sets that figures and tables show."""
    testsets, kinds = sets_of(experiment).diagnostics(run), {"valley": _valley, "sig": _sig_concentration}
    asked = list(dict.fromkeys(name for names in testsets.values() for name in names))
    return _slice(
        **param_parts.engine_passes(experiment, run, revisions.DECODING),
        testsets=testsets,
        **{kind: kinds[kind](experiment, run) for kind in testsets},
        made_from=_of_model(experiment, run, asked),
    )


def _valley(experiment: Experiment, run: Run) -> dict[str, Any]:
    """Entropies around the reference's length; the sentences are chosen as those of a test set's subset are."""
    settings = experiment.valley
    return dict(
        **param_parts.engine_passes(experiment, run, [revisions.DECODING, revisions.VALLEY]),
        offset=settings.offset,
        ratios=settings.ratios_of.get(run.direction, settings.ratios),
        sentences=settings.sentences,
        seed=experiment.corpus.seed,
        subset=experiment.corpus.subset,
    )


def _length_head(experiment: Experiment, run: Run) -> dict[str, Any]:
    return dict(
        **param_parts.engine_passes(experiment, run, [revisions.DECODING, revisions.LENGTH_HEAD]),
        seed=run.seed,
        training=dump(experiment.length_head_training),
        **_pool(experiment, run),
    )


def _pool(experiment: Experiment, run: Run) -> dict[str, int]:
    """How many of the training pairs a job may read; of a run on all of them it says nothing."""
    return {"limit": experiment.directions[run.direction].pools[run.pool]} if run.pool else {}


def _sig_concentration(experiment: Experiment, run: Run) -> dict[str, Any]:
    settings = experiment.sig_concentration
    unused = set() if settings.measure == "top_share" else {"share"}
    revision = [revisions.DECODING, revisions.SIG_CONCENTRATION]
    return dict(**param_parts.engine_passes(experiment, run, revision), **settings.model_dump(exclude=unused))


def _order(experiment: Experiment, order: str) -> dict[str, Any]:
    """A reveal order and its settings; of one that looks at the SIG also a revision of its own, beside that of all."""
    revision = {"sig_revision": revisions.SOURCE_GUIDED} if source_guided(experiment, order) else {}
    return order_settings(experiment, order) | revision


def latency(experiment: Experiment, cell: Cell) -> str:
    """A benchmark: the same spec twice gives other seconds."""
    run, own = cell.run, experiment.of(cell.run.backbone)
    fits = _fits(own, run, [cell.method])
    return _slice(
        **param_parts.filling(own, run),
        method=cell.method,
        selector=selector_settings(own, cell.method, run.direction),
        schedule=own.decoding.schedule,
        **_order(own, cell.order),
        steps=cell.steps,
        seed=experiment.corpus.seed,
        **experiment.latency.model_dump(exclude={"minutes"}, exclude_none=True),
        **({"fits": fits} if fits else {}),
        made_from=_of_model(experiment, run, [cell.testset], bool(fits)),
    )


def scores(experiment: Experiment, cells: CellSet) -> str:
    """For the scores of a set."""
    made_from = {"translations": digest(translation(experiment, cells)), **comets(experiment)}
    return _slice(**_scoring(experiment, cells.run.direction), made_from=made_from)


def _scoring(experiment: Experiment, direction: str) -> dict[str, Any]:
    target = direction.split("-")[1]
    return {
        "direction": direction,
        "target_language": target,
        "revision": revisions.SCORING_INTO.get(target, revisions.SCORING),
        **scoring_params(experiment.scoring),
    }


def comet(experiment: Experiment, metric: str) -> str:
    """For the download of a metric's COMET checkpoint."""
    section = checkpoints(experiment.scoring)[metric]
    return _slice(repository=section.checkpoint, revision=section.revision)


def comets(experiment: Experiment) -> dict[str, str]:
    """What the COMET checkpoint is made from, where it is trained here; the params of scores name any other."""
    trained = experiment.scoring.comet.training
    return {"comet": digest(comet_training(experiment))} if trained else {}


def comet_training(experiment: Experiment) -> str:
    return _slice(
        revision=revisions.SCORING,
        **dump(experiment.scoring.comet.training),
        made_from=pairs(experiment, *experiment.matrix.directions),
    )


def _slice(**settings: Any) -> str:
    return canonical(settings)


# --- The params of the human evaluation's rules, and the files of its forms.


def folder(experiment: Experiment, direction: str) -> str:
    """Where the pack of a direction is."""
    return f"{experiment.results}/human_evaluation/{direction}"


def pack(experiment: Experiment, direction: str) -> dict[str, Any]:
    """What a pack depends on: the two systems, the metric that chooses sentences, how many of each bucket, the seed."""
    settings = experiment.human_evaluation
    cells = matrix.evaluated_cells(experiment, direction)
    return {
        "revision": revisions.HUMAN_EVALUATION,
        "cells": [{**cell.key(), "path": sets_of(experiment).folder(cell)} for cell in cells],
        "metrics": [dataclasses.asdict(metrics_of(experiment.scoring)[0])],
        "sentences": settings.sentences.model_dump(),
        "pack_seed": settings.seed,
    }


def inputs(experiment: Experiment, direction: str) -> list[str]:
    """What a pack is made of: the test set, and the translations and scores of the two systems."""
    cells = matrix.evaluated_cells(experiment, direction)
    homes = dict.fromkeys(sets_of(experiment).home[cell] for cell in cells)
    root = experiment.results
    tests = [f"{root}/corpus/{direction}/test/{cell.testset}.jsonl" for cell in cells[:1]]
    return [*tests, *(path for one in homes for path in one.files(root))]


def ratings(experiment: Experiment) -> dict[str, Any]:
    """What ratings depend on beside the forms: the annotators."""
    return {"revision": revisions.HUMAN_EVALUATION, "annotators": experiment.human_evaluation.annotators}


def simulation(experiment: Experiment) -> dict[str, Any]:
    """What a simulated form depends on."""
    return {"revision": revisions.HUMAN_EVALUATION, "seed": experiment.human_evaluation.seed}


def forms(experiment: Experiment, direction: str) -> list[str]:
    """The filled forms of a direction: the files that are there now, or those of simulated annotators."""
    settings = experiment.human_evaluation
    if settings.simulated:
        place = f"{folder(experiment, direction)}/simulated"
        return [f"{place}/{direction}.{annotator}.csv" for annotator in settings.annotators]
    found = Path(settings.forms).glob(f"{direction}.*")
    return sorted(str(path) for path in found if path.suffix.lower() in (".csv", ".xlsx"))
