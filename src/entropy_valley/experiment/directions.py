"""A translation direction of the config: its prompt, its data, and what of `corpus` and `training` it changes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, PositiveInt, model_validator

from entropy_valley.experiment.data import Corpus, LengthFilter
from entropy_valley.settings import Name, Names, Section, Share, Template
from entropy_valley.training.settings import Training

Pool = Annotated[str, Field(pattern=r"^[a-z0-9]+$")]  # part of a run's folder: seed1-50k
LENGTH = {"epochs", "max_steps"}  # of a training: one of them is null


class DirectionCorpus(Section):
    """What a direction has instead of the same key of `corpus`; null: as there."""

    train: PositiveInt | None = Field(None, description="training pairs")
    dev: PositiveInt | None = Field(None, description="development pairs")
    test_limit: PositiveInt | None = Field(None, description="as `limit` of every test set")
    filters: dict[str, LengthFilter] = Field({}, description="by language code; other languages as in `corpus`")


class DirectionTraining(Section):
    """What the adapters of a direction are trained with instead of `training`; null: as there."""

    epochs: PositiveInt | None = Field(None, description="passes over the training pairs, and no `max_steps`")
    max_steps: PositiveInt | None = Field(None, description="optimiser steps, and no `epochs`")
    learning_rate: float | None = Field(None, gt=0, description="of AdamW, at its highest")
    warmup: Share | None = Field(None, description="share of the steps")

    @model_validator(mode="after")
    def _one_length(self) -> DirectionTraining:
        if self.epochs and self.max_steps:
            raise ValueError("give either `epochs` or `max_steps`")
        return self


class DirectionSection(Section):
    """One translation direction: its prompt and its data; its name gives its languages."""

    prompt: Template = Field(description="the text before the target, as it is; {src} is where the source stands")
    train: Name = Field(description="the source of training and dev pairs, a key of `sources`")
    tests: Names = Field(description="test sets, keys of `sources`")
    corpus: DirectionCorpus = DirectionCorpus()
    training: DirectionTraining = DirectionTraining()
    pools: dict[Pool, PositiveInt] = Field(
        {}, description="smaller sets of training pairs, for studies: so many of the first ones, so they are nested"
    )

    def corpus_with(self, common: Corpus) -> Corpus:
        """The settings of its pairs: those for all directions, with its own laid over them."""
        own = {name: value for name, value in self.corpus if value is not None}
        return common.model_copy(update={**own, "filters": common.filters | self.corpus.filters})

    def training_with(self, common: Training) -> Training:
        """The settings of its trainings, likewise; a length of its own replaces the other kind of length, too."""
        own = {name: value for name, value in self.training if value is not None}
        length = dict.fromkeys(LENGTH) if own.keys() & LENGTH else {}
        return common.model_copy(update=length | own)
