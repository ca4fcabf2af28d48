"""The models of the config: every key, its type, its bounds, its meaning. Unknown keys are errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from entropy_valley.demo.source import AnySource
from entropy_valley.experiment.backbones import Adapter, BackboneSection
from entropy_valley.experiment.data import Analysis, Corpus, Coverage
from entropy_valley.experiment.decoding import Decoding
from entropy_valley.experiment.directions import DirectionSection
from entropy_valley.experiment.human_evaluation import HumanEvaluation
from entropy_valley.experiment.length_methods import LengthHeadTraining, LengthMethods, LengthStatistics
from entropy_valley.experiment.orders import RevealOrder
from entropy_valley.experiment.pages import Pages
from entropy_valley.experiment.published import PaperComparison
from entropy_valley.experiment.scoring import Scoring
from entropy_valley.experiment.studies import Study
from entropy_valley.settings import (
    AnyNames,
    Direction,
    Directions,
    Folder,
    Name,
    Names,
    Numbers,
    Ratios,
    Section,
    Share,
)
from entropy_valley.training.settings import Training


class Matrix(Section):
    """The experiment matrix: one cell for each combination."""

    backbones: Names = Field(description="keys of `backbones`")
    directions: Directions = Field(description="keys of `directions`")
    seeds: Numbers = Field(description="one training run each")
    seeds_of: dict[Name, Numbers] = Field({}, description="fewer (or other) seeds for a backbone")
    methods: Names = Field(description="keys of `length_methods`")
    orders: Names = Field(
        description="reveal orders or variable-length decoders: ours that need no settings, or keys of `reveal_orders`"
    )
    steps: Numbers = Field(description="denoising step budgets T")


class Autoregressive(Section):
    """Backbones that write from left to right: same pairs, same prompts, beam search until EOS."""

    backbones: AnyNames = Field(description="keys of `backbones`, of a causal family; none: no such systems")
    beams: PositiveInt = Field(description="beams of the search")
    length_penalty: Annotated[float, Field(allow_inf_nan=False)] = Field(
        description="log-probability / tokens ** penalty ranks finished beams"
    )
    max_new_tokens: PositiveInt = Field(description="a beam that has no EOS by then is cut and counted")
    early_stopping: bool = Field(
        True, description="stop with the first `beams` finished hypotheses; false: when no other can be better"
    )
    first_line: bool = Field(False, description="a translation ends at its first line break, not only at the EOS")


class Instruct(Section):
    """Does an instruction-tuned backbone translate under this protocol? Its variants, on one direction.

    Without that direction in the matrix there is no such table.
    """

    backbones: AnyNames = Field(description="keys of `backbones`; none: no such table")
    direction: Direction = Field(description="a key of `directions`")
    testset: Name = Field(description="a key of `sources`")
    seed: PositiveInt = Field(description="the training run of each variant")


class Latency(Section):
    """The benchmark of a cell's speed: its method alone, on a few sentences of its test set, without the store."""

    sentences: PositiveInt = Field(32, description="drawn by the keyed hash, the same for all methods")
    repeats: PositiveInt = Field(3, description="after one round that warms up; the table has their median")
    batch: PositiveInt | None = Field(None, description="sentences of a batch in the batched timing; null: all of them")
    minutes: PositiveFloat = Field(
        60, description="at most for each of its two timings: one that would take longer ends with an estimate"
    )


class Valley(Section):
    """All-mask canvases of test sentences, around the reference's length and on a dense grid: what figures show of a
    backbone, no length method."""

    backbones: AnyNames | None = Field(
        None, description="of the figure entropy_valley, in the matrix or not; null: those of it; none: no such figure"
    )
    offset: PositiveInt = Field(6, description="slots on either side of the reference's length")
    ratios: Ratios = Field(
        [round(0.40 + 0.05 * step, 2) for step in range(23)], description="the dense grid; a canvas of each, as EV's"
    )
    ratios_of: dict[Direction, Ratios] = Field({}, description="another grid for a direction")
    sentences: PositiveInt = Field(500, description="of each test set, see `corpus.subset`")


class SigConcentration(Section):
    """How much of a sentence's dependence on its source sits in few slots of the canvas of the reference's length."""

    sig: Literal["distractor", "stepwise_kl"] = Field("distractor", description="as `sig` of a reveal order")
    measure: Literal["gini", "top_share"] = Field(
        "gini", description="the Gini coefficient of max(SIG, 0), or the share of its sum that the largest have"
    )
    share: Share = Field(0.2, description="with top_share, the share of the slots that are the largest")


class Tables(Section):
    """What the main tables and figures show, and which studies are made beside them."""

    backbone: Name = Field(description="the main backbone, one of `matrix.backbones`")
    order: Name = Field(description="the reveal order of the main tables, one of `matrix.orders`")
    steps: PositiveInt = Field(description="the step budget T of the main tables, one of `matrix.steps`")
    studies: AnyNames = Field([], description="keys of `studies`; the others are not looked at")
    metrics: Names | None = Field(None, description="of the main table, by name; null: the main COMET and BLEU")


class Experiment(Section):
    """The whole config."""

    results: Folder = Field("results", description="the folder of everything that is computed")
    models: Folder = Field("models", description="the folder that released checkpoints are downloaded into")
    device: Literal["cpu", "cuda"] = Field(description="where models run; with cuda, jobs that run one ask for GPUs")
    confirm: bool = Field(
        False, description="download what a run needs and is not there, however large: `--config confirm=yes`"
    )
    check: bool = Field(
        True,
        description="refuse a run for which disk, memory or GPUs do not suffice; with cuda: check the GPUs "
        "(`entropy-valley check`) before the jobs on them",
    )
    store: bool = Field(True, description="share finished canvases and scores between jobs; false: compute all anew")
    adapters: Literal["trained", "released"] = Field("trained", description="train them, or take those of `released`")
    matrix: Matrix
    tables: Tables
    studies: dict[Name, Study] = Field({}, description="comparisons, each with a table of its own")
    sources: dict[Name, AnySource] = Field(description="where training pairs and test sets come from")
    directions: dict[Direction, DirectionSection] = Field(description="source-target, as language codes: en-zh")
    backbones: dict[Name, BackboneSection] = Field(description="those that other keys may name")
    released: dict[Name, dict[Direction, dict[PositiveInt, Adapter]]] = Field(
        {}, description="finished adapters by backbone, direction and seed; read only with `adapters: released`"
    )
    autoregressive: Autoregressive
    instruct: Instruct
    corpus: Corpus
    training: Training
    length_methods: LengthMethods = Field(
        description="A block with `each: {key: [values]}` makes a method of each value. Its name holds the value, as "
        "in `ratio_{ratios:.2f}`, and stands for all these methods in `matrix.methods` and in studies. "
        "`same_ratios_as` names the method whose `ratios` a block takes where it has none itself"
    )
    length_statistics: LengthStatistics = LengthStatistics()
    length_head_training: LengthHeadTraining = LengthHeadTraining()
    reveal_orders: dict[Name, RevealOrder] = Field(
        {}, description="reveal orders, and variable-length decoders in their place, with their settings"
    )
    decoding: Decoding
    latency: Latency = Latency()
    scoring: Scoring
    analysis: Analysis
    coverage: Coverage = Coverage()
    paper_comparison: PaperComparison = PaperComparison()
    valley: Valley = Valley()
    sig_concentration: SigConcentration = SigConcentration()
    human_evaluation: HumanEvaluation = HumanEvaluation()
    pages: Pages = Pages()

    def of(self, backbone: str) -> Experiment:
        """The config as a backbone has it: with the keys of `decoding` that it changes."""
        own = {name: value for name, value in self.backbones[backbone].decoding if value is not None}
        return self.model_copy(update={"decoding": self.decoding.model_copy(update=own)}) if own else self

    def corpus_of(self, direction: str) -> Corpus:
        """`corpus` with what a direction changes."""
        return self.directions[direction].corpus_with(self.corpus)

    def training_of(self, direction: str) -> Training:
        """`training` with what a direction changes."""
        return self.directions[direction].training_with(self.training)


def json_schema(known: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """The JSON schema of the config, as ``docs/config.schema.json`` holds it.

    ``known`` adds, by model and field, what only the rooms above this one know of a field's values.
    """
    schema = Experiment.model_json_schema()
    for model, fields in known.items():
        for name, values in fields.items():
            schema["$defs"][model]["properties"][name] |= values
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
