"""The models of the config: every key, its type, its bounds, its meaning. Unknown keys are errors.

Each section is with what it sets up: `training` in :mod:`entropy_valley.training.settings`, a length method in its
class. Here are the others, and the whole config.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PositiveInt,
    Strict,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)

from entropy_valley import plugins, shipped
from entropy_valley.data.settings import CorpusSection, DirectionCorpus
from entropy_valley.decoding.orders import Order
from entropy_valley.decoding.requests import KNOWN, make_denoiser
from entropy_valley.decoding.settings import Decoding, OwnDecoding
from entropy_valley.errors import question, refusal
from entropy_valley.experiment.demo.grammar import AnySource
from entropy_valley.experiment.demo.settings import Estimator, Pretraining
from entropy_valley.experiment.human_evaluation.settings import HumanEvaluation
from entropy_valley.experiment.stats.significance import Analysis
from entropy_valley.lengths import LENGTH_METHODS
from entropy_valley.lengths.base import LengthMethod
from entropy_valley.lengths.baselines import Reassigned
from entropy_valley.lengths.settings import LengthHeadTraining, LengthStatisticsSection, SigConcentration, Valley
from entropy_valley.model.families import FAMILIES, find_family
from entropy_valley.model.prompt import BOTH_WAYS, Attention
from entropy_valley.scoring import METRICS, make_metric
from entropy_valley.scoring.comet import Comet, MainComet
from entropy_valley.scoring.metrics import Bleu, Chrf, Metric, describe
from entropy_valley.settings import (
    BY_DIRECTION,
    AnyNames,
    Budgets,
    Commit,
    Direction,
    Directions,
    Folder,
    JsonObject,
    Name,
    Names,
    Numbers,
    Plugin,
    Pool,
    Printed,
    Ratios,
    Refers,
    Repository,
    Runtime,
    Section,
    SectionOf,
    Template,
    numbers_of,
    one_of,
)
from entropy_valley.training.settings import AdapterTraining, DirectionTraining, EosPadding, Training
from entropy_valley.translation.settings import Autoregressive, Latency, SystemSection

LENGTH = {"epochs", "max_steps"}  # of a training: one of them is null
ALL, DEV = "all", "dev"  # in the place of a test set
Seed = Annotated[PositiveInt, Strict(False)]  # as a key: jobs on a cluster get the config as JSON, whose keys are text


# --- Length methods, reveal orders and metrics: a block sets up one of ours, or a class of the user's.


class UserClass(BaseModel):
    """Sets up a class of the user's own, ``module:Class``. The other keys are its settings."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True)
    KIND: ClassVar[str]  # what such a class is, in errors
    KEY: ClassVar[str]  # the key that names the class
    OURS: ClassVar[Mapping[str, type]]  # the classes of this package that the key may name instead
    MAKE: ClassVar[Callable[[str, JsonObject], object]] = lambda name, settings: None  # where it needs no direction

    @field_validator("method", "order", "metric", check_fields=False)
    @classmethod
    def _is_there(cls, name: str) -> str:
        if not re.fullmatch(r"[\w.]+:\w+", name):
            raise ValueError(f"{question(name, cls.OURS).lower()}give module:Class, or one of {', '.join(cls.OURS)}")
        if problem := refusal(plugins.find, cls.KIND, cls.OURS, name):
            raise ValueError(problem)
        return name

    @model_validator(mode="after")
    def _settings_fit(self, info: ValidationInfo) -> Self:
        """Where the class has fields, as ours do, the settings are checked as those of ours."""
        name = getattr(self, self.KEY)
        kind = plugins.find(self.KIND, self.OURS, name)
        if isinstance(kind, type) and issubclass(kind, Section):
            if missing := sorted(getattr(kind, "__abstractmethods__", ())):
                raise ValueError(f"{name} has no method {' and no '.join(missing)}. {plugins.GUIDE.rstrip('.')}")
            kind.model_validate(self.model_extra, context=info.context)
        if problem := refusal(type(self).MAKE, name, self.model_extra or {}):
            raise ValueError(problem)
        return self


USERS = Field(description="module:Class, or the name of one of ours", json_schema_extra={"pattern": ":"})
BLOCKS: dict[str, type[BaseModel]] = {**LENGTH_METHODS, "reassigned": Reassigned}


class UserMethod(UserClass):
    """A length method of the user's own. The other keys are its settings."""

    KIND, KEY, OURS = "length method", "method", BLOCKS
    method: str = USERS
    label: Printed[str | None] = Field(None, description="its printed name in tables and figures")
    short: Printed[str | None] = Field(None, description="the same where there is little room")


if TYPE_CHECKING:
    MethodBlock = LengthMethod | Reassigned | UserMethod
else:
    MethodBlock = one_of("method", BLOCKS, UserMethod)


class OtherMethods(BaseModel):
    """How the canvas length is chosen. In a block of another name, ``method`` says which of these it sets up. It may
    also be a user's own ``module:Class``."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True)
    __pydantic_extra__: dict[str, MethodBlock]


_OF_OURS: dict[str, Any] = {name: (method | None, None) for name, method in LENGTH_METHODS.items()}
LengthMethods = create_model("LengthMethods", __base__=OtherMethods, __doc__=OtherMethods.__doc__, **_OF_OURS)


class UserOrder(UserClass):
    """A reveal order or a variable-length decoder of the user's own. The other keys are its settings."""

    KIND, KEY, OURS, MAKE = "reveal order", "order", KNOWN, make_denoiser
    order: str = USERS


METRIC_LABEL = Field(description="as tables print it")


class FurtherComet(Comet):
    """Another COMET checkpoint."""

    metric: Literal["comet"]
    label: Printed[str] = METRIC_LABEL


class FurtherBleu(Bleu):
    """BLEU of another tokenizer."""

    metric: Literal["bleu"]
    label: Printed[str] = METRIC_LABEL


class FurtherChrf(Chrf):
    """chrF of other n-grams."""

    metric: Literal["chrf"]
    label: Printed[str] = METRIC_LABEL


class UserMetric(UserClass):
    """A metric of the user's own. The other keys are its settings."""

    KIND, KEY, OURS, MAKE = "metric", "metric", METRICS, make_metric
    metric: str = USERS
    label: Printed[str] = METRIC_LABEL


FURTHER: dict[str, type[BaseModel]] = {"comet": FurtherComet, "bleu": FurtherBleu, "chrf": FurtherChrf}
if TYPE_CHECKING:
    MetricBlock = FurtherComet | FurtherBleu | FurtherChrf | UserMetric
    OrderBlock = Any  # KNOWN has classes of two protocols, which say nothing of settings
else:
    MetricBlock, OrderBlock = one_of("metric", FURTHER, UserMetric), one_of("order", KNOWN, UserOrder)


# --- Metrics.


class CometSection(MainComet):
    """The COMET checkpoint of the main metric: a hub name, a local ``.ckpt``, or the toy COMET trained here."""

    ONE_OF = ("checkpoint", "training")
    label: Printed[str] = METRIC_LABEL
    training: Estimator | None = Field(None, description="trains the toy COMET (demo only)")


class Scoring(Section):
    """Metrics. All of a cell are computed in one job and written into one file."""

    comet: CometSection | None = Field(description="the main metric; null: none, and chrF takes its place beside BLEU")
    bleu: Bleu = Bleu()
    chrf: Chrf = Chrf()
    metrics: dict[Name, MetricBlock] = Field({}, description="further ones, by their key in files")

    @property
    def trains_comet(self) -> bool:
        """Whether the main metric is a toy COMET that is trained here."""
        return self.comet is not None and self.comet.training is not None


def metrics_of(scoring: Scoring) -> tuple[Metric, ...]:
    """All metrics of the config, the main one first: that of ``scoring.comet``, BLEU, chrF, and the further ones.
    Without a COMET the main one is chrF, since BLEU scores no single sentence."""
    bleu, chrf = describe("bleu", "sacreBLEU", scoring.bleu), describe("chrf", "chrF", scoring.chrf)
    metrics = [chrf, bleu]
    if scoring.comet:
        metrics = [describe(scoring.comet.key, scoring.comet.label, scoring.comet), bleu, chrf]
    for name, block in scoring.metrics.items():
        made = make_metric(block.metric, block.model_extra or {}) if isinstance(block, UserMetric) else block
        metrics.append(describe(name, block.label, made))
    return tuple(metrics)


def scoring_params(scoring: Scoring, direction: str, bleu: Bleu | None = None) -> dict[str, Any]:
    """The metrics of a direction with what their numbers depend on; ``bleu`` goes before that of ``scoring``. Those of
    a user's own class also have its code. How the toy COMET is trained is not among them."""
    params, further = {}, {}
    if scoring.comet:
        params["comet"] = numbers_of(scoring.comet)
        del params["comet"]["training"]
    for name, block in scoring.metrics.items():
        numbers = numbers_of(block.of(direction) if isinstance(block, Bleu) else block)
        further[name] = numbers | {"metric": plugins.with_code(numbers["metric"])}
    return {
        **params,
        "bleu": numbers_of((bleu or scoring.bleu).of(direction)),
        "chrf": numbers_of(scoring.chrf),
        "metrics": further,
    }


def checkpoints(scoring: Scoring) -> dict[str, Comet]:
    """The metrics that have a COMET checkpoint, by the name of its folder; the main one's is ``comet``."""
    main: dict[str, Comet] = {"comet": scoring.comet} if scoring.comet else {}
    return main | {name: one for name, one in scoring.metrics.items() if isinstance(one, Comet)}


# --- Backbones, directions, and which of them the matrix, the tables and the studies have.


class CoverageSection(Section):
    """Groups of sentences by r, the tokens of the reference over those of the source: tables `coverage` and
    `faithfulness_summary`."""

    eos: bool = Field(False, description="count the EOS of the reference in r")
    buckets: Annotated[dict[Direction, Ratios], BY_DIRECTION] = Field(
        {"en-zh": [0.6, 0.8]}, description="by direction the values of r at which a group ends and the next one begins"
    )


class DirectionSection(Section):
    """One translation direction: its prompt and its data; its name gives its languages."""

    prompt: Template = Field(description="the text before the target, as it is; {src} is where the source stands")
    train: Annotated[Name, Refers("sources")] = Field(
        description="the source of training and dev pairs, a key of `sources`"
    )
    tests: Annotated[Names, Refers("sources")] = Field(description="test sets, keys of `sources`")
    corpus: DirectionCorpus = DirectionCorpus()
    training: DirectionTraining = DirectionTraining()
    pools: dict[Pool, PositiveInt] = Field(
        {}, description="smaller sets of training pairs, for studies: so many of the first ones, so they are nested"
    )


class Study(Section):
    """Systems that are compared with each other: a product of their own, and single ones. Its name is its table's."""

    AT_LEAST_ONE = ("methods", "others")
    layout: Name = Field(
        "systems",
        description="systems: a row each; transfer: a row for each test set and pool of training pairs, a column for "
        "each method; orders: reveal orders and their span; categories: SIG-first against MED by what a source "
        "contains; budgets: rows of T; checks: what stands behind EV's choices; reproduction: beside the paper's "
        "numbers of LLaDA-8B-Base; readings: variants of backbones, a row each; pooled: length methods over all runs; "
        "ceiling: what lies above the reference's length",
    )
    backbones: Annotated[Names | Literal["all"] | None, Refers("backbones", also=(ALL,))] = Field(
        None, description="keys of `backbones`; all: the matrix's; null: that of `tables`"
    )
    directions: Annotated[Directions | None, Refers("directions")] = Field(
        None, description="of these, those that the matrix has (where it has none, no table); null: the matrix's"
    )
    beyond_matrix: bool = Field(False, description="all of its `directions`, also those that the matrix does not have")
    pools: list[Pool] | None = Field(
        None, description="`pools` of its directions, a training run for each; null: runs with all training pairs"
    )
    seeds: Numbers | Literal["all"] | None = Field(
        None, description="all: those that the matrix gives the backbone; null: the first of them"
    )
    testset: Annotated[Name | dict[Direction, Name] | None, Refers("sources", also=(ALL, DEV)), BY_DIRECTION] = Field(
        None, description="null: the first of each direction; all: all of each; dev: its development pairs"
    )
    methods: Annotated[AnyNames | dict[Direction, AnyNames], Refers("length_methods"), BY_DIRECTION] = Field(
        [], description="keys of `length_methods`"
    )
    orders: Annotated[Names | None, Refers("reveal_orders")] = Field(None, description="null: that of `tables`")
    steps: Budgets | None = Field(None, description="null: that of `tables`")
    others: list[SystemSection] = Field([], description="systems beside the product")
    against: Annotated[Name, Refers("length_methods")] = Field(
        "ev", description="the method whose lead over each system is tested, under order and T of `tables`"
    )
    figure: bool | Name = Field(
        False, description="of the layout `systems`: draw COMET over passes, too; a name: the file of the figure"
    )
    columns: Names = Field(
        ["comet", "bleu", "closure", "lead", "calls", "passes"],
        description='of the layout `systems`; docs/extending.md, "A comparison", says what each is',
    )


class Hub(Section):
    """A repository of the Hugging Face hub."""

    repository: Repository = Field(description="owner/name")
    revision: Commit | None = Field(
        None, description="null: the family's pinned one, else the newest, written to the results"
    )
    licence: str | None = Field(None, description="of a repository that the family does not know")


def _family(name: str) -> str:
    if name not in FAMILIES and (problem := refusal(find_family, name)):
        raise ValueError(problem)
    return name


class BackboneSection(Section):
    """One backbone: a family, and a checkpoint from the hub, from a folder, or pre-trained here."""

    AT_LEAST_ONE = ("hub", "folder", "pretraining", "pretrained")
    label: Printed[str] = METRIC_LABEL
    family: Annotated[Plugin, AfterValidator(_family)] = Field(
        description="docs/models_and_data.md lists ours; a user's own is module:NAME"
    )
    bos: bool = Field(description="whether the prompt starts with the BOS token")
    hub: Hub | None = None
    folder: Runtime[str | None] = Field(None, description="a local copy of the checkpoint")
    pretraining: Pretraining | None = None
    pretrained: Literal["llada-tiny", "llada-tiny-human"] | None = Field(
        None, description="a checkpoint that comes with this package, made by its `pretraining`; null: make it here"
    )
    variant_of: Annotated[Name | None, Refers("backbones")] = Field(
        None, description="another backbone, whose checkpoint this one is and whose other keys it takes over"
    )
    eos_padding: EosPadding | None = Field(
        None, description="`training.loss.eos_padding` of its adapters, where that is to be another one"
    )
    training: AdapterTraining = AdapterTraining()
    adapter_of: Annotated[Name | None, Refers("backbones")] = Field(
        None, description="another backbone, of the same checkpoint, whose adapters it decodes with: it trains none"
    )
    decoding: OwnDecoding = OwnDecoding()
    chat: bool = Field(False, description="put prompts into the chat template of the family")
    shifted: bool | None = Field(
        None, description="read slot i from row i - 1 (true) or row i (false); null: as the family was trained"
    )
    attention: Attention = Field(
        BOTH_WAYS,
        description="in its LoRA-SFT and in decoding; prefix: the prompt attends to itself alone, the canvas to both, "
        "so that a sentence's prompt is computed once",
    )
    decoding_prompt_of: Annotated[Direction | None, Refers("directions")] = Field(
        None, description="decode behind the prompt of this direction, whatever the direction; null: of its own"
    )
    zero_shot: bool = Field(False, description="decode the bare checkpoint: no adapter is trained")
    bleu: Bleu | None = Field(None, description="BLEU of its translations; null: as in `scoring.bleu`")

    @property
    def is_pretrained_here(self) -> bool:
        return bool(self.pretraining and not self.pretrained)

    @property
    def own_folder(self) -> str | None:
        """The folder of a checkpoint that is neither downloaded nor made here."""
        return str(shipped.MODELS[self.pretrained].checkpoint) if self.pretrained else self.folder


class AdapterSection(Section):
    """A finished adapter: a folder, or a repository of the hub, in our layout or the backbone's released one."""

    ONE_OF = ("folder", "repository")
    folder: Runtime[str | None] = Field(None, description="has adapter_config.json and adapter_model.safetensors")
    repository: Repository | None = Field(None, description="owner/name on the Hugging Face hub")
    revision: Commit | None = Field(None, description="null is resolved once and written to the results")
    subfolder: str | None = Field(None, description="of the repository")


class Pages(Section):
    """A page for each direction and test set: every sentence with the outputs of these systems, see docs/results.md."""

    methods: Annotated[Names | None, Refers("length_methods")] = Field(
        None, description="length methods under the order and steps of the main tables; null: those of the matrix"
    )
    backbones: Annotated[Names | None, Refers("backbones")] = Field(
        None, description="each with its first seed; null: those of the matrix and of `autoregressive`"
    )


class PaperComparisonSection(Section):
    """The table of the paper's numbers beside ours."""

    compare: Literal["values", "signs"] | None = Field(
        "values",
        description="signs: other models, data or metrics, so only signs of differences and orders of systems can be "
        "compared; null: no such table",
    )
    names: dict[Name, Name] = Field(
        {},
        description="what stands here for backbones, sources and pools of the paper's config: {llada-8b: llada-tiny}",
    )


class MatrixSection(Section):
    """The experiment matrix: one cell for each combination."""

    backbones: Annotated[Names, Refers("backbones")] = Field(description="keys of `backbones`")
    directions: Annotated[Directions, Refers("directions")] = Field(description="keys of `directions`")
    seeds: Numbers = Field(description="one training run each")
    seeds_of: Annotated[dict[Name, Numbers], Refers("backbones", keys=True)] = Field(
        {}, description="fewer (or other) seeds for a backbone"
    )
    methods: Annotated[Names, Refers("length_methods")] = Field(description="keys of `length_methods`")
    orders: Annotated[Names, Refers("reveal_orders")] = Field(
        description="reveal orders or variable-length decoders: ours that need no settings, or keys of `reveal_orders`"
    )
    steps: Budgets = Field(description="denoising step budgets T")


class Instruct(Section):
    """Does an instruction-tuned backbone translate under this protocol? Its variants, on one direction.

    Without that direction in the matrix there is no such table.
    """

    backbones: Annotated[AnyNames, Refers("backbones")] = Field(description="keys of `backbones`; none: no such table")
    direction: Annotated[Direction, Refers("directions")] = Field(description="a key of `directions`")
    testset: Annotated[Name, Refers("sources")] = Field(description="a key of `sources`")
    seed: PositiveInt = Field(description="the training run of each variant")


class Tables(Section):
    """What the main tables and figures show, and which studies are made beside them."""

    backbone: Annotated[Name, Refers("matrix.backbones")] = Field(
        description="the main backbone, one of `matrix.backbones`"
    )
    order: Annotated[Name, Refers("matrix.orders")] = Field(
        description="the reveal order of the main tables, one of `matrix.orders`"
    )
    steps: Annotated[PositiveInt, Refers("matrix.steps")] = Field(
        description="the step budget T of the main tables, one of `matrix.steps`"
    )
    studies: Annotated[AnyNames, Refers("studies")] = Field(
        [], description="keys of `studies`; the others are not looked at"
    )
    metrics: Annotated[Names | None, Refers("scoring")] = Field(
        None, description="of the main table, by name; null: the main COMET and BLEU"
    )
    cases: list[str] = Field(
        [], description="ids of the test sentences that the table `cases` shows; none: three, chosen by rule"
    )
    matplotlibrc: str | None = Field(
        None, description="a file of matplotlib's settings (font.family, font.size, savefig.dpi, ...) for all figures"
    )


class Experiment(Section):
    """The whole config."""

    extends: Runtime[str | list[str]] = Field(
        [],
        description="a file or files that this one is laid over, as if they stood before it on the command line; "
        "their paths are from the folder of this file",
    )
    results: Runtime[Folder] = Field("results", description="the folder of everything that is computed")
    models: Runtime[Folder] = Field("models", description="the folder that released checkpoints are downloaded into")
    device: Runtime[Literal["cpu", "cuda"]] = Field(
        description="where models run; with cuda, jobs that run one ask for GPUs"
    )
    confirm: Runtime[bool] = Field(
        False, description="download what a run needs and is not there, however large: `--config confirm=yes`"
    )
    check: Runtime[bool] = Field(
        True,
        description="with cuda: check each kind of GPU (`entropy-valley check`) before the first job on it",
    )
    store: Runtime[bool] = Field(
        True, description="share finished canvases and scores between jobs; false: compute all anew"
    )
    adapters: Literal["trained", "released"] = Field("trained", description="train them, or take those of `released`")
    matrix: MatrixSection
    tables: Tables
    studies: dict[Name, Study] = Field({}, description="comparisons, each with a table of its own")
    sources: dict[Name, AnySource] = Field(description="where training pairs and test sets come from")
    directions: dict[Direction, DirectionSection] = Field(description="source-target, as language codes: en-zh")
    backbones: dict[Name, BackboneSection] = Field(description="those that other keys may name")
    released: dict[Name, dict[Direction, dict[Seed, AdapterSection]]] = Field(
        {}, description="finished adapters by backbone, direction and seed; read only with `adapters: released`"
    )
    autoregressive: Autoregressive
    instruct: Instruct
    corpus: CorpusSection
    training: Training
    length_methods: LengthMethods = Field(
        description="`same_ratios_as` names the method whose `ratios` a block takes where it has none itself"
    )
    length_statistics: LengthStatisticsSection = LengthStatisticsSection()
    length_head_training: LengthHeadTraining = LengthHeadTraining()
    reveal_orders: dict[Name, OrderBlock] = Field(
        {}, description="reveal orders, and variable-length decoders in their place, with their settings"
    )
    decoding: Decoding
    latency: Latency = Latency()
    scoring: Scoring
    analysis: Analysis
    coverage: CoverageSection = CoverageSection()
    paper_comparison: PaperComparisonSection = PaperComparisonSection()
    valley: Valley = Valley()
    sig_concentration: SigConcentration = SigConcentration()
    human_evaluation: HumanEvaluation = HumanEvaluation()
    pages: Pages = Pages()

    __hash__ = object.__hash__  # so that what follows from a config is worked out once: functools.cache

    def decoding_of(self, backbone: str) -> Decoding:
        """`decoding` with what a backbone changes."""
        return _changed(self.decoding, self.backbones[backbone].decoding)

    def corpus_of(self, direction: str) -> CorpusSection:
        """`corpus` with what a direction changes."""
        own = self.directions[direction].corpus
        filters = {"filters": self.corpus.filters | own.filters}
        return _changed(self.corpus, own).model_copy(update=filters)

    def training_of(self, direction: str) -> Training:
        """`training` with what a direction changes; a length of its own replaces the other kind of length, too."""
        own = self.directions[direction].training
        has_length = any(getattr(own, key) is not None for key in LENGTH)
        training = self.training.model_copy(update=dict.fromkeys(LENGTH)) if has_length else self.training
        return _changed(training, own)


def order_class(experiment: Experiment, name: str) -> type:
    """The class of a reveal order: of a block of ``reveal_orders``, or of ours that needs none."""
    block = experiment.reveal_orders.get(name)
    return plugins.find("reveal order", KNOWN, block.order if block else name)


def needs_anchors(experiment: Experiment, name: str) -> bool:
    """Whether the reveal order that a name of the config stands for looks at a gold alignment."""
    kind = order_class(experiment, name)
    return issubclass(kind, Order) and kind.anchored


def _changed(section: SectionOf, own: Section) -> SectionOf:
    """A section with the values of ``own``, which has some of its keys; null leaves a key as it is."""
    return section.model_copy(update={name: value for name, value in own if value is not None})
