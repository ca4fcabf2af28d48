"""The slices of the rules that make corpora and test sets."""

from __future__ import annotations

from typing import Any

from entropy_valley import revisions
from entropy_valley.data.sources.base import reverse
from entropy_valley.experiment.matrix import DEV, all_cells
from entropy_valley.experiment.params.methods import dump
from entropy_valley.experiment.paths import checkpoint_of, downloaded_datasets
from entropy_valley.experiment.schema import Experiment
from entropy_valley.files import canonical

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
