"""The config's metrics: what each is, the main one first."""

from __future__ import annotations

from pydantic import Field, PositiveInt, model_validator

from entropy_valley.demo.settings import Estimator
from entropy_valley.scoring.metrics import Metric
from entropy_valley.settings import Name, Section

RELEASED, TOY = "comet22", "toy_comet"


class Comet(Section):
    """The COMET checkpoint of the main metric: a hub name, a local ``.ckpt``, or the toy estimator trained here."""

    label: str = Field(description="as tables print it")
    name: Name | None = Field(None, description=f"its key in files; null: {RELEASED}, or {TOY} with `training`")
    checkpoint: str | None = Field(None, description="owner/name on the hub, or a .ckpt file; null with `training`")
    batch_size: PositiveInt = Field(description="sentences per pass; with 1 no score depends on its neighbours")
    training: Estimator | None = Field(None, description="trains the toy estimator (demo only)")

    @model_validator(mode="after")
    def _one_origin(self) -> Comet:
        if (self.checkpoint is None) == (self.training is None):
            raise ValueError("give either `checkpoint` or `training`")
        return self

    @property
    def metric(self) -> Metric:
        """What the rest of the project knows of it. Earlier versions wrote the toy's scores under COMET-22's name."""
        name = self.name or (TOY if self.training else RELEASED)
        former = (RELEASED,) if self.training and name != RELEASED else ()
        return Metric(name, self.label, decimals=4, former_names=former)


class Scoring(Section):
    """Metrics."""

    comet: Comet


def metrics_of(scoring: Scoring) -> tuple[Metric, ...]:
    """All metrics of the config: the main one (that of ``scoring.comet``), BLEU, chrF."""
    return (
        scoring.comet.metric,
        Metric("bleu", "sacreBLEU", decimals=2, segments=False, by_direction=True),
        Metric("chrf", "chrF", decimals=2),
    )
