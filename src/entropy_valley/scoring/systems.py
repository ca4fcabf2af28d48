"""Scores many systems' translations of one test set with a model that is loaded once, into the store."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from entropy_valley.scoring.alignment import Outputs
from entropy_valley.scoring.comet import Comet
from entropy_valley.scoring.job import Job
from entropy_valley.scoring.metrics import require_numbers


def fill_store(name: str, metric: Comet, job: Job, systems: Mapping[str, Outputs]) -> None:
    """Score every sentence of ``systems``, by their files, that the store of ``job`` does not have.

    Raises InputError that names metric, file and sentence for a score that is no number; all others are in the store
    by then. In padded batches, where a score depends on its neighbours in the file, each file is scored for itself.
    """
    metric.prepare(job)
    if metric.batch_size == 1:
        metric.segment_scores(
            list(chain.from_iterable(one.sources for one in systems.values())),
            list(chain.from_iterable(one.hypotheses for one in systems.values())),
            list(chain.from_iterable(one.references for one in systems.values())),
        )
    for path, one in systems.items():
        scores = metric.segment_scores(one.sources, one.hypotheses, one.references)
        require_numbers(name, scores, len(one.ids), f" of {path}")
