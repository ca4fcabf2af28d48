"""The config's metrics: the main COMET, BLEU, chrF, and further ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel, ConfigDict, Discriminator, Field, PositiveInt, Tag, create_model, model_validator

from entropy_valley.demo.settings import Estimator
from entropy_valley.errors import InputError
from entropy_valley.scoring.bleu import Bleu, Chrf
from entropy_valley.scoring.comet import RELEASED, TOY, Comet, MainComet
from entropy_valley.scoring.metrics import METRICS, Metric, Scorer, describe, make_metric
from entropy_valley.settings import Name, Plugin, Section

OWN = "module:Class"
LABEL = Field(description="as tables print it")
RESERVED = ("comet", "id", "digests", "sentences", "signatures")  # keys of the scores' files, names of their folders


class CometSection(MainComet):
    """The COMET checkpoint of the main metric: a hub name, a local ``.ckpt``, or the toy COMET trained here."""

    label: str = LABEL
    batch_size: PositiveInt = Field(description="sentences per pass; with 1 no score depends on its neighbours")
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

    def scorer(self) -> Scorer:
        return make_metric(self.metric, self.model_extra or {})


def _section(name: str, settings: type[Section]) -> Any:
    """The block of a further metric of ours: its class's settings, its name and its label."""
    fields: Any = {"metric": (Literal[name], Field(description="one of ours")), "label": (str, LABEL)}
    return create_model(f"Further{settings.__name__}", __base__=settings, __doc__=settings.__doc__, **fields)


def _kind(value: Any) -> str:
    named = value.get("metric") if isinstance(value, Mapping) else getattr(value, "metric", None)
    return named if named in METRICS else OWN


_sections = {**{name: _section(name, settings) for name, settings in METRICS.items()}, OWN: OwnMetric}
Further = Annotated[
    Union[tuple(Annotated[section, Tag(name)] for name, section in _sections.items())],  # noqa: UP007 - of a registry
    Discriminator(_kind),
]


class Scoring(Section):
    """Metrics. All of a cell are computed in one job and written into one file."""

    comet: CometSection
    bleu: Bleu = Bleu()
    chrf: Chrf = Chrf()
    metrics: dict[Name, Further] = Field({}, description="further ones, by their key in files")


def metrics_of(scoring: Scoring) -> tuple[Metric, ...]:
    """All metrics of the config: the main one (that of ``scoring.comet``), BLEU, chrF, and the further ones."""
    return (
        describe(scoring.comet.key, scoring.comet.label, scoring.comet, scoring.comet.former_names),
        describe("bleu", "sacreBLEU", scoring.bleu),
        describe("chrf", "chrF", scoring.chrf),
        *(describe(name, one.label, _scorer(one)) for name, one in scoring.metrics.items()),
    )


def scoring_params(scoring: Scoring) -> dict[str, Any]:
    """The metrics with what their numbers depend on. What has its default is left out: old results stay valid."""
    comet = {"checkpoint": scoring.comet.checkpoint, "batch_size": scoring.comet.batch_size}
    comet |= scoring.comet.model_dump(include={"name", "reference_free"}, exclude_defaults=True)
    more = {
        "bleu": scoring.bleu.model_dump(exclude_defaults=True),
        "chrf": scoring.chrf.model_dump(exclude_defaults=True),
        "metrics": {
            name: one.model_dump(mode="json", exclude={"label"}, exclude_defaults=True)
            for name, one in scoring.metrics.items()
        },
    }
    return {"comet": comet, **{name: settings for name, settings in more.items() if settings}}


def checkpoints(scoring: Scoring) -> dict[str, Comet]:
    """The metrics that have a COMET checkpoint, by the name of its folder; the main one's is ``comet``."""
    return {"comet": scoring.comet} | {name: one for name, one in scoring.metrics.items() if isinstance(one, Comet)}


def metric_problems(merged: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """(path, message) of each further metric that is none or whose name is taken, and of each unknown one in
    ``tables.metrics``."""
    scoring = _mapping(merged.get("scoring"))
    comet, further = _mapping(scoring.get("comet")), _mapping(scoring.get("metrics"))
    known = [comet.get("name") or (TOY if comet.get("training") else RELEASED), "bleu", "chrf"]
    for name, section in further.items():
        if name in (*known, *RESERVED):
            yield ("scoring", "metrics", name), "this name is taken; give the metric another one"
        if problem := _refused(_mapping(section)):
            yield ("scoring", "metrics", name), problem
    asked = _mapping(merged.get("tables")).get("metrics")
    for name in asked if isinstance(asked, list) else ():
        if name not in (*known, *further):
            yield ("tables", "metrics"), f"{name!r} is no metric; there is {', '.join((*known, *further))}"


def _refused(section: Mapping[str, Any]) -> str | None:
    """What is wrong with a user's own metric; of ours the schema says it."""
    named = section.get("metric")
    if not isinstance(named, str) or named in METRICS:
        return None
    try:
        make_metric(named, {key: value for key, value in section.items() if key not in ("metric", "label")})
    except InputError as error:
        return str(error)
    return None


def _scorer(section: Any) -> Scorer:
    return section.scorer() if isinstance(section, OwnMetric) else section


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
