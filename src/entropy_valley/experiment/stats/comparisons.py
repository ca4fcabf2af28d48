"""The paired tests of systems: every run by itself, or the mean of several runs, sentence by sentence.

The sentences of two runs are the same ones: a mean over runs has no more of them than a run. The functions take the
frame of sentences, see :mod:`.frames`, or scores with a row for each sentence and a column for each system.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from entropy_valley.errors import InputError
from entropy_valley.experiment.frames import PLACE
from entropy_valley.experiment.stats.significance import LEVELS, Analysis, bootstrap_means, paired_test
from entropy_valley.experiment.stats.summary import closure, run_by_run

COMPARISONS = (("ev", "ratio"), ("ev", "ratio_eos"), ("oracle", "ev"), ("oracle", "ratio"), ("oracle", "ratio_eos"))


def compare(sentences: pd.DataFrame, metric: str, how: Analysis) -> pd.DataFrame:
    """The COMPARISONS in every run, one row each: the columns of MATCHED, the methods ``first`` and ``second``, the
    ``metric``, the values of :func:`paired_test` and ``bootstrap_seed``.

    Runs are tested one by one: the sentences of two seeds are the same sentences, never a larger sample.
    """
    rows = []
    for run, scores in run_by_run(sentences, metric):
        # Seeds share their sentences: pooled, they would only look like a larger sample.
        for first, second in COMPARISONS:
            if second in scores:  # a run without the ratio with an EOS slot goes without its comparisons
                rows.append(_tested(run, scores[first], scores[second], metric, how))
    return pd.DataFrame(rows)


def compare_autoregressive(sentences: pd.DataFrame, metric: str, how: Analysis) -> pd.DataFrame:
    """EV against every autoregressive system (no steps) in every run that both have, one row each.

    Runs are paired by direction, test set and seed; a run without a partner is left out. Columns as :func:`compare`
    gives them, and ``second_backbone``. Raises :class:`InputError` when nothing pairs up.
    """
    # A system that writes from left to right has no step budget.
    beams = list(run_by_run(sentences[sentences["steps"] == 0], metric))
    rows = []
    for run, scores in run_by_run(sentences[sentences["steps"] > 0], metric):
        for other, others in beams:
            if all(run[key] == other[key] for key in (*PLACE, "seed")):
                # The sentences of both in one order: a paired test never looks at ids.
                for name in others:
                    test = _tested(run, scores["ev"], others[name].loc[scores.index], metric, how)
                    rows.append(test | {"second_backbone": other["backbone"]})
    if not rows:
        remedy = "Name an autoregressive backbone that has a seed of the main backbone."
        raise InputError("autoregressive.backbones", "no run of theirs has the seed of a run of the main one", remedy)
    return pd.DataFrame(rows)


def _tested(run: Mapping[str, Any], first: pd.Series, second: pd.Series, metric: str, how: Analysis) -> dict[str, Any]:
    named = {"first": first.name, "second": second.name, "metric": metric}
    return {**run, **named, **paired_test(first, second, how), "bootstrap_seed": how.seed}


def of_shared_seeds(cells: pd.DataFrame) -> pd.DataFrame:
    """The rows of the seeds that all backbones have in a direction and test set; all of them where no seed is shared.

    So the means of two backbones differ by just the mean of their differences run by run.
    """
    backbones = cells.groupby(PLACE)["backbone"].transform("nunique")
    shared = cells.groupby([*PLACE, "seed"])["backbone"].transform("nunique") == backbones
    # In a place where no seed is shared, each backbone keeps its own.
    has_shared = shared.groupby([cells[key] for key in PLACE]).transform("any")
    return cells[shared | ~has_shared]


LIMITS = ("closure_low", "closure_high")


def closure_limits(method: pd.Series, ratio: pd.Series, oracle: pd.Series, how: Analysis) -> dict[str, float]:
    """Limits of the share of Oracle's lead over Ratio that a method's mean closes, by the percentile bootstrap.

    Each has the mean score over runs of every sentence. The values of LIMITS are NaN where one resample in 40 has no
    gap.
    """
    scores = np.column_stack([method, ratio, oracle])
    # All three are drawn together: a resample is one set of sentences for all systems.
    drawn = bootstrap_means(scores, how.resamples, how.seed, how.generator)
    closures = closure(*(pd.Series(means) for means in drawn.T))
    # More resamples without a gap than lie beyond a limit: then the limit is not known.
    if closures.isna().mean() > LEVELS[0]:
        return dict.fromkeys(LIMITS, math.nan)
    return dict(zip(LIMITS, closures.quantile(list(LEVELS)), strict=True))
