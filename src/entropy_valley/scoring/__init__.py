"""The metrics by name. A metric is a class (:mod:`.metrics`, with BLEU and chrF; :mod:`.comet`); :mod:`.sets` has each
score the translations of a set."""

from collections.abc import Mapping

from entropy_valley import plugins
from entropy_valley.errors import InputError
from entropy_valley.scoring.comet import Comet, MainComet
from entropy_valley.scoring.metrics import Bleu, Chrf, Scorer, scores_segments, scores_systems
from entropy_valley.settings import JsonObject

METRICS: Mapping[str, type] = {"comet": Comet, "bleu": Bleu, "chrf": Chrf}
"""Ours by the name that the config has for them; a user's own is ``module:Class``."""

_FITS = 'docs/extending.md, "A metric of your own", shows what such a class has.'


def make_metric(name: str, settings: JsonObject) -> Scorer:
    """The metric that ``name`` says, with its settings; InputError if there is none or its class does not fit."""
    metric = plugins.make("metric", METRICS, name, settings, ("decimals",))
    name = plugins.without_code(name)
    if not (scores_segments(metric) or scores_systems(metric)):
        raise InputError(f"metric {name!r}", "has neither segment_scores nor system_score", _FITS)
    if not (hasattr(type(metric), "signature") or hasattr(metric, "signature") or hasattr(metric, "prepare")):
        raise InputError(f"metric {name!r}", "has no `signature`, the line that says what its numbers depend on", _FITS)
    return metric


def from_params(params: JsonObject) -> dict[str, Scorer]:
    """The metrics that a ``score`` job's params name, by their keys in files, in the order of the files' keys."""
    scorers: dict[str, Scorer] = {}
    if "comet" in params:
        comet = MainComet(**params["comet"])
        scorers[comet.key] = comet
    scorers |= {"bleu": Bleu(**params.get("bleu", {})), "chrf": Chrf(**params.get("chrf", {}))}
    for name, settings in params.get("metrics", {}).items():
        own = {key: value for key, value in settings.items() if key != "metric"}
        scorers[name] = make_metric(settings["metric"], own)
    return scorers
