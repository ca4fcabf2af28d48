"""The config's metrics: the main COMET, BLEU, chrF, and further ones."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, create_model, model_validator

from entropy_valley import plugins
from entropy_valley.demo.settings import Estimator
from entropy_valley.experiment.blocks import one_of
from entropy_valley.scoring.bleu import Bleu, Chrf
from entropy_valley.scoring.comet import Comet, MainComet
from entropy_valley.scoring.metrics import METRICS, Metric, Scorer, describe, make_metric
from entropy_valley.settings import Name, Plugin, Section

LABEL = Field(description="as tables print it")


class CometSection(MainComet):
    """The COMET checkpoint of the main metric: a hub name, a local ``.ckpt``, or the toy COMET trained here."""

    label: str = LABEL
    batch_size: PositiveInt = Field(description="sentences of a padded pass; 1: no score depends on its neighbours")
    training: Estimator | None = Field(None, description="trains the toy COMET (demo only)")

    @model_validator(mode="after")
    def _one_origin(self) -> CometSection:
        if (self.checkpoint is None) == (self.training is None):
            raise ValueError("give either `checkpoint` or `training`")
        return self


class OwnMetric(BaseModel):
    """A metric of the user's own, ``module:Class``; the other keys are handed to the class."""

    model_config = ConfigDict(extra="allow", frozen=True)
    metric: Plugin = Field(description="module:Class")
    label: str = LABEL


def _section(name: str, settings: type[Section]) -> Any:
    """The block of a further metric of ours: its class's settings, its name and its label."""
    fields: Any = {"metric": (Literal[name], Field(description="one of ours")), "label": (str, LABEL)}
    return create_model(f"Further{settings.__name__}", __base__=settings, __doc__=settings.__doc__, **fields)


Further = one_of("metric", {name: _section(name, settings) for name, settings in METRICS.items()}, OwnMetric)


class Scoring(Section):
    """Metrics. All of a cell are computed in one job and written into one file."""

    comet: CometSection
    bleu: Bleu = Bleu()
    chrf: Chrf = Chrf()
    metrics: dict[Name, Further] = Field({}, description="further ones, by their key in files")


def metrics_of(scoring: Scoring) -> tuple[Metric, ...]:
    """All metrics of the config: the main one (that of ``scoring.comet``), BLEU, chrF, and the further ones."""
    return (
        describe(scoring.comet.key, scoring.comet.label, scoring.comet),
        describe("bleu", "sacreBLEU", scoring.bleu),
        describe("chrf", "chrF", scoring.chrf),
        *(describe(name, one.label, _scorer(one)) for name, one in scoring.metrics.items()),
    )


def scoring_params(scoring: Scoring) -> dict[str, Any]:
    """The metrics with what their numbers depend on."""
    return {
        "comet": scoring.comet.model_dump(include={"checkpoint", "batch_size", "name", "reference_free", "revision"}),
        "bleu": scoring.bleu.model_dump(),
        "chrf": scoring.chrf.model_dump(),
        "metrics": {name: _params(one) for name, one in scoring.metrics.items()},
    }


def _params(section: Any) -> dict[str, Any]:
    """Of a further metric; that of a user's own class also has its code."""
    said = section.model_dump(mode="json", exclude={"label"})
    return said | {"metric": plugins.with_code(said["metric"])}


def checkpoints(scoring: Scoring) -> dict[str, Comet]:
    """The metrics that have a COMET checkpoint, by the name of its folder; the main one's is ``comet``."""
    return {"comet": scoring.comet} | {name: one for name, one in scoring.metrics.items() if isinstance(one, Comet)}


def _scorer(section: Any) -> Scorer:
    return make_metric(section.metric, section.model_extra or {}) if isinstance(section, OwnMetric) else section
