"""The slices of the rules that compute: models, canvases, hypotheses, scores."""

from __future__ import annotations

from typing import Any

from entropy_valley import revisions
from entropy_valley.backbone.families import find_family
from entropy_valley.experiment.matrix import Run
from entropy_valley.experiment.params import models
from entropy_valley.experiment.params.corpora import other
from entropy_valley.experiment.params.methods import dump, order_settings, selector_settings, source_guided
from entropy_valley.experiment.params.training import as_trained, training_settings
from entropy_valley.experiment.paths import released_adapter
from entropy_valley.experiment.schema import Experiment
from entropy_valley.experiment.scoring import scoring_params
from entropy_valley.files import canonical


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
            direction: models.prompt(experiment, backbone, direction)
            for direction in pretraining_directions(experiment, backbone)
        },
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
        **models.of(experiment, run),
        "bos": section.bos if section.training.bos is None else section.training.bos,
        "revision": revisions.TRAINING,
        "seed": run.seed,
        "precision": experiment.training.precision,
        "processes": experiment.training.processes,
        "training": training_settings(experiment, run),
    }
    return _slice(**as_trained(params, f"{run.folder(experiment.results)}/adapter"))


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
        **models.attention(section),
    )


def tokens(experiment: Experiment, backbone: str) -> str:
    """For the token counts of a test set, which depend on the tokenizer alone."""
    return _slice(backbone=backbone, family=experiment.backbones[backbone].family, revision=revisions.TOKENS)


def canvas(experiment: Experiment, run: Run, method: str) -> str:
    experiment = experiment.of(run.backbone)
    return _slice(
        **models.filling(experiment, run),
        method=method,
        selector=selector_settings(experiment, method, run.direction),
    )


def inference(experiment: Experiment, run: Run) -> str:
    """For the job that loads the model of a run; what is asked of it is handed over beside this."""
    return _slice(**models.filling(experiment, run))


def length_statistics(experiment: Experiment, run: Run) -> str:
    return _slice(
        **models.engine_passes(experiment, run, [revisions.DECODING, revisions.LENGTH_STATISTICS]),
        **dump(experiment.length_statistics),
        **_pool(experiment, run),
    )


def valley(experiment: Experiment, run: Run) -> str:
    """For the diagnostic of all-mask canvases; its sentences are chosen as those of a test set's subset are."""
    settings = experiment.valley
    return _slice(
        **models.engine_passes(experiment, run, [revisions.DECODING, revisions.VALLEY]),
        offset=settings.offset,
        ratios=settings.ratios_of.get(run.direction, settings.ratios),
        sentences=settings.sentences,
        seed=experiment.corpus.seed,
        **other(subset=(experiment.corpus.subset, "keyed_hash")),
    )


def length_head(experiment: Experiment, run: Run) -> str:
    return _slice(
        **models.engine_passes(experiment, run, [revisions.DECODING, revisions.LENGTH_HEAD]),
        seed=run.seed,
        training=dump(experiment.length_head_training),
        **_pool(experiment, run),
    )


def _pool(experiment: Experiment, run: Run) -> dict[str, int]:
    """How many of the training pairs a job may read; of a run on all of them it says nothing."""
    return {"limit": experiment.directions[run.direction].pools[run.pool]} if run.pool else {}


def sig_concentration(experiment: Experiment, run: Run) -> str:
    settings = experiment.sig_concentration
    unused = set() if settings.measure == "top_share" else {"share"}
    revision = [revisions.DECODING, revisions.SIG_CONCENTRATION]
    return _slice(**models.engine_passes(experiment, run, revision), **settings.model_dump(exclude=unused))


def decoding(experiment: Experiment, run: Run, order: str, steps: int) -> str:
    return _slice(
        **models.filling(experiment, run),
        schedule=experiment.of(run.backbone).decoding.schedule,
        **_order(experiment, order),
        steps=steps,
    )


def _order(experiment: Experiment, order: str) -> dict[str, Any]:
    """A reveal order and its settings; of one that looks at the SIG also a revision of its own, beside that of all."""
    revision = {"sig_revision": revisions.SOURCE_GUIDED} if source_guided(experiment, order) else {}
    return order_settings(experiment, order) | revision


def latency(experiment: Experiment, run: Run, method: str, order: str, steps: int) -> str:
    """A benchmark: the same spec twice gives other seconds."""
    experiment = experiment.of(run.backbone)
    return _slice(
        **models.filling(experiment, run),
        method=method,
        selector=selector_settings(experiment, method, run.direction),
        schedule=experiment.decoding.schedule,
        **_order(experiment, order),
        steps=steps,
        seed=experiment.corpus.seed,
        **experiment.latency.model_dump(exclude={"minutes"}, exclude_none=True),
    )


def generation(experiment: Experiment, run: Run) -> str:
    # Usual values of later settings are left out so that old results stay valid.
    settings = experiment.autoregressive.model_dump(exclude={"backbones"}, exclude_defaults=True)
    return _slice(**models.passes(experiment, run, revisions.GENERATION), **settings)


def scoring(experiment: Experiment, direction: str) -> str:
    target = direction.split("-")[1]
    return _slice(
        direction=direction,
        target_language=target,
        revision=revisions.SCORING_INTO.get(target, revisions.SCORING),
        **scoring_params(experiment.scoring),
    )


def comet_training(experiment: Experiment) -> str:
    return _slice(revision=revisions.SCORING, **dump(experiment.scoring.comet.training))


def _slice(**settings: Any) -> str:
    return canonical(settings)
