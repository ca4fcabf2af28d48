"""The models of the config: every key, its type, its bounds, its meaning. Unknown keys are errors."""

from __future__ import annotations

import functools
import inspect
import json
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    Tag,
    WrapValidator,
    create_model,
    model_validator,
)
from pydantic.fields import FieldInfo

from entropy_valley import errors, plugins
from entropy_valley.data.categories import ChallengeRules
from entropy_valley.data.sampling import Subset
from entropy_valley.decoding.orders import KNOWN, make_denoiser
from entropy_valley.demo import shipped
from entropy_valley.demo.grammar import AnySource
from entropy_valley.demo.settings import Estimator, Pretraining
from entropy_valley.errors import refusal
from entropy_valley.lengths import LENGTH_METHODS
from entropy_valley.lengths.baselines import Reassigned
from entropy_valley.model.families import find_family
from entropy_valley.model.prompt import BOTH_WAYS, Attention
from entropy_valley.scoring import METRICS, make_metric
from entropy_valley.scoring.comet import Comet, MainComet
from entropy_valley.scoring.metrics import Bleu, Chrf, Metric, Scorer, describe
from entropy_valley.settings import (
    BY_DIRECTION,
    AnyNames,
    Commit,
    Direction,
    Directions,
    Folder,
    Limits,
    Name,
    Names,
    Numbers,
    Plugin,
    Rate,
    Ratios,
    Repository,
    Section,
    Share,
    Template,
    unique,
)
from entropy_valley.stats.significance import Deviation, Generator, Zeros
from entropy_valley.training.settings import AdapterTraining, EosPadding, Training

OTHER = "user"


def block(cls: type[Section], key: str, name: str, description: str | None = None, title: str = "") -> type[Section]:
    """The model of a block that sets up ``cls``: its fields and checks, and ``key``, whose value is ``name``.

    With a ``description`` the key may be left out.
    """
    named = Literal[name]
    if description:
        naming = (named | None, Field(None, description=description))
    else:
        naming = (named, Field(description="one of ours"))
    fields = {field: _by_direction(info) for field, info in cls.model_fields.items() if BY_DIRECTION in info.metadata}
    doc = inspect.cleandoc(cls.__doc__ or "").partition("\n\n")[0]
    return create_model(title or cls.__name__, __base__=cls, __doc__=doc, **{**fields, key: naming})


def one_of(key: str, blocks: Mapping[str, Any], other: Any) -> Any:
    """Any of the blocks, known by what their ``key`` says, or the ``other`` one."""

    def kind(value: Any) -> str:
        named = value.get(key) if isinstance(value, Mapping) else getattr(value, key, None)
        return named if isinstance(named, str) and named in blocks else OTHER

    tagged = [Annotated[one, Tag(name)] for name, one in {**blocks, OTHER: other}.items()]
    return Annotated[functools.reduce(operator.or_, tagged), Discriminator(kind)]


def users(
    kind: str, key: str, ours: Mapping[str, type], make_block: Callable[..., type[Section]] = block
) -> tuple[AfterValidator, WrapValidator]:
    """The checks of a user's own class: of its name, which a block has under ``key``, and of the whole block.

    Where the class has fields, as ours do, the block is checked as one of ours, by the model of ``make_block``.
    """

    def check_name(name: str) -> str:
        if not re.fullmatch(r"[\w.]+:\w+", name):
            hint = errors.question(name, ours).lower()
            raise ValueError(f"{hint}give module:Class, or one of {', '.join(ours)}")
        if problem := refusal(plugins.find, kind, ours, name):
            raise ValueError(problem)
        return name

    def check_block(value: Any, check: Callable[[Any], BaseModel]) -> BaseModel:
        plain = check(value)
        name = getattr(plain, key)
        cls = plugins.find(kind, ours, name)
        has_fields = isinstance(cls, type) and issubclass(cls, Section)
        return make_block(cls, key, name).model_validate(value) if has_fields else plain

    return AfterValidator(check_name), WrapValidator(check_block)


def _by_direction(info: FieldInfo) -> tuple[Any, Any]:
    """A field whose values may be given by direction, or as one for all."""
    metadata = [one for one in info.metadata if one is not BY_DIRECTION]
    plain = Annotated[info.annotation, *metadata] if metadata else info.annotation
    # A discriminator, so that a bad value is one problem and not two.
    kind = Annotated[
        Annotated[dict[Direction, plain], Tag("by direction")] | Annotated[plain, Tag("one")],
        Discriminator(lambda value: "by direction" if isinstance(value, Mapping) else "one"),
    ]
    default = {"default_factory": info.default_factory} if info.default_factory else {"default": info.default}
    return kind, Field(**default, description=info.description)


Sampling = Literal["keyed_hash", "shuffle", "shuffle_rows"]


class LengthFilter(Section):
    """Monolingual length limits, both ends included; words are split at white space."""

    words: Limits | None = Field(None, description="fewest and most words; null: no limit")
    characters: Limits | None = Field(None, description="fewest and most characters; null: no limit")


class CorpusSection(Section):
    """How many pairs are sampled, and which are let in."""

    seed: int = Field(
        description="of the keyed hash and of shuffling, which draw pairs, test subsets and sentences of diagnostics"
    )
    train: PositiveInt = Field(description="training pairs per direction, at most")
    dev: PositiveInt = Field(description="development pairs per direction, at most")
    filters: dict[str, LengthFilter] = Field(description="by language code; one that is left out has no limits")
    sampling: Sampling | dict[Direction, Sampling] = Field(
        "keyed_hash",
        description="how train and dev pairs are drawn from a source that does not keep them apart, one for all or by "
        "direction: by a keyed hash; or as the scripts of the paper's authors do, `shuffle` that for Chinese, "
        "`shuffle_rows` that for German. docs/protocol.md",
    )
    test_limit: PositiveInt | None = Field(None, description="as `limit` of every test set; null takes all")
    subset: Subset = Field(
        "first",
        description="the sentences that `limit`, `test_limit` and `valley.sentences` take: those at the "
        "beginning of the file, or a keyed-hash subset",
    )
    challenge: ChallengeRules = Field(
        "first",
        description="the sentences that `challenge` of a source takes, and their categories: the first with a "
        "category by the rules of the authors' code, for English; or stratified by a keyed hash, by our rules",
    )

    def filter_of(self, language: str) -> LengthFilter:
        """The length limits of a language: none where the config has none."""
        return self.filters.get(language, LengthFilter())

    def sampling_of(self, direction: str) -> Sampling:
        """How the pairs of a direction are drawn."""
        return self.sampling.get(direction, "keyed_hash") if isinstance(self.sampling, dict) else self.sampling


class CoverageSection(Section):
    """Groups of sentences by r, the tokens of the reference over those of the source: tables `coverage` and
    `faithfulness_summary`."""

    eos: bool = Field(False, description="count the EOS of the reference in r")
    buckets: dict[Direction, Ratios] = Field(
        {"en-zh": [0.6, 0.8]}, description="by direction the values of r at which a group ends and the next one begins"
    )


class Analysis(Section):
    """Statistics."""

    resamples: PositiveInt = Field(le=1_000_000, description="of the paired bootstrap")
    seed: int = Field(description="of its draws")
    generator: Generator = Field(
        "pcg64", description="of its draws: NumPy's default, or that of `RandomState`, as in the authors' code"
    )
    wilcoxon_zeros: Zeros = Field(
        "pratt", description="sentences on which two systems are equal: ranked, then dropped (Pratt), or left out"
    )
    cohen: Deviation = Field(
        "sample", description="standard deviation in Cohen's d: of a sample, or of the population, as in their code"
    )

    @property
    def params(self) -> dict[str, Any]:
        """Its part of a report's params."""
        return self.model_dump()


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

    AT_MOST_ONE = ("epochs", "max_steps")
    epochs: PositiveInt | None = Field(None, description="passes over the training pairs, and no `max_steps`")
    max_steps: PositiveInt | None = Field(None, description="optimiser steps, and no `epochs`")
    learning_rate: float | None = Field(None, gt=0, description="of AdamW, at its highest")
    warmup: Share | None = Field(None, description="share of the steps")


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

    def corpus_with(self, common: CorpusSection) -> CorpusSection:
        """The settings of its pairs: those for all directions, with its own laid over them."""
        own = {name: value for name, value in self.corpus if value is not None}
        return common.model_copy(update={**own, "filters": common.filters | self.corpus.filters})

    def training_with(self, common: Training) -> Training:
        """The settings of its trainings, likewise; a length of its own replaces the other kind of length, too."""
        own = {name: value for name, value in self.training if value is not None}
        length = dict.fromkeys(LENGTH) if own.keys() & LENGTH else {}
        return common.model_copy(update=length | own)


Schedule = Literal["llada", "floors"]
MaskToken = Literal["never", "may_be_revealed"]


class PromptCache(Section):
    """Passes that take the keys and values of the prompt from an earlier one: approximate."""

    refresh: PositiveInt | Literal["never"] = Field(
        description="compute the prompt in every so many passes over a sentence, from the first on; 1: in all, as "
        "without this key; never: in the first alone"
    )


class Decoding(Section):
    """Denoising."""

    precision: Literal["float32", "bfloat16"] = Field(description="of the model; softmax and entropy are in float32")
    head_precision: Literal["float32", "backbone"] = Field(
        "float32", description="of the LM head's logits: float32, or rounded to `precision`. With float32 both are one"
    )
    batch_invariant: bool | Literal["auto"] = Field(
        "auto", description="pad passes, so that no canvas depends on those beside it; auto: on GPUs. A CPU needs none"
    )
    compile_layers: bool = Field(
        False,
        description="compile the decoder layers of padded passes: fewer kernels, and other last bits. Without padding "
        "(`batch_invariant`) it changes nothing",
    )
    schedule: Schedule = Field(
        "llada",
        description="slots revealed at a step: ⌊L/T⌋, and one more in the first L mod T steps; floors: "
        "⌊L(t+1)/T⌋ - ⌊Lt/T⌋ at step t from 0, as in the authors' code",
    )
    mask_token: MaskToken = Field(
        "never", description="whether the mask token is in the distributions of slots; in a text it is left out"
    )
    exact_products: bool = Field(
        True, description="ratio times |x| by the ratio's decimals; false: in binary floating point, for all methods"
    )
    merge_adapter: bool = Field(True, description="false: adapters run beside the weights, in float32, as in training")
    prompt_cache: PromptCache | None = Field(
        None,
        description="approximate: probes and denoising steps take the prompt's keys and values from earlier ones of "
        "the sentence; null: exact. For checkpoints whose prompt attends to the canvas",
    )
    shards: PositiveInt | Literal["auto"] = Field(
        "auto",
        description="jobs, each with a model of its own, that share the sentences of a set; auto: on GPUs so many that "
        "each is expected to take about two hours",
    )

    @property
    def refresh(self) -> int | Literal["never"]:
        """Of `prompt_cache`; 1 of an exact decoder."""
        return self.prompt_cache.refresh if self.prompt_cache else 1


class OwnDecoding(Section):
    """What one backbone is decoded with instead of `decoding`; null: as there."""

    schedule: Schedule | None = Field(None, description="`decoding.schedule`")
    mask_token: MaskToken | None = Field(None, description="`decoding.mask_token`")
    exact_products: bool | None = Field(None, description="`decoding.exact_products`")
    prompt_cache: PromptCache | None = Field(None, description="`decoding.prompt_cache`")


ALL = "all"


class SystemSection(Section):
    """A way to decode that is not of the product."""

    method: Name = Field(description="a key of `length_methods`")
    order: Name | None = Field(None, description="null: that of `tables`")
    steps: PositiveInt | None = Field(None, description="null: that of `tables`")


class Study(Section):
    """Systems that are compared with each other: a product of their own, and single ones. Its name is its table's."""

    layout: Name = Field(
        "systems",
        description="systems: a row each; transfer: a row for each test set and pool of training pairs, a column for "
        "each method; orders: reveal orders and their span; categories: SIG-first against MED by what a source "
        "contains; budgets: rows of T; checks: what stands behind EV's choices; reproduction: beside the paper's "
        "numbers of LLaDA-8B-Base; readings: variants of backbones, a row each",
    )
    backbones: Names | Literal["all"] | None = Field(
        None, description="keys of `backbones`; all: the matrix's; null: that of `tables`"
    )
    directions: Directions | None = Field(
        None, description="of these, those that the matrix has (where it has none, no table); null: the matrix's"
    )
    beyond_matrix: bool = Field(False, description="all of its `directions`, also those that the matrix does not have")
    pools: list[Pool] | None = Field(
        None, description="`pools` of its directions, a training run for each; null: runs with all training pairs"
    )
    seeds: Numbers | Literal["all"] | None = Field(
        None, description="all: those that the matrix gives the backbone; null: the first of them"
    )
    testset: Name | dict[Direction, Name] | None = Field(
        None, description="null: the first of each direction; all: all of each; dev: its development pairs"
    )
    methods: AnyNames | dict[Direction, AnyNames] = Field([], description="keys of `length_methods`")
    orders: Names | None = Field(None, description="null: that of `tables`")
    steps: Numbers | None = Field(None, description="null: that of `tables`")
    others: list[SystemSection] = Field([], description="systems beside the product")
    against: Name = Field(
        "ev", description="the method whose lead over each system is tested, under order and T of `tables`"
    )
    figure: bool | Name = Field(
        False, description="of the layout `systems`: draw COMET over passes, too; a name: the file of the figure"
    )
    columns: Names = Field(
        ["comet", "bleu", "closure", "lead", "calls", "passes"],
        description='of the layout `systems`; docs/extending.md, "A comparison", says what each is',
    )

    @model_validator(mode="after")
    def _some_system(self) -> Self:
        if not (self.methods or self.others):
            raise ValueError("compares nothing; give `methods` or `others`")
        return self

    def methods_of(self, direction: str) -> list[str]:
        """The methods of the product in a direction."""
        return self.methods.get(direction, []) if isinstance(self.methods, Mapping) else self.methods

    def testsets_of(self, direction: str, tests: Sequence[str]) -> Sequence[str]:
        """The test sets that it looks at, of a direction that has ``tests``."""
        named = self.testset.get(direction) if isinstance(self.testset, Mapping) else self.testset
        return tests if named == ALL else [named or tests[0]]


class Hub(Section):
    """A repository of the Hugging Face hub."""

    repository: Repository = Field(description="owner/name")
    revision: Commit | None = Field(
        None, description="null: the family's pinned one, else the newest, written to the results"
    )
    licence: str | None = Field(None, description="of a repository that the family does not know")


def _family(name: str) -> str:
    if problem := refusal(find_family, name):
        raise ValueError(problem)
    return name


class BackboneSection(Section):
    """One backbone: a family, and a checkpoint from the hub, from a folder, or pre-trained here."""

    label: str = Field(description="as tables print it")
    family: Annotated[Plugin, AfterValidator(_family)] = Field(
        description="docs/models_and_data.md lists ours; a user's own is module:NAME"
    )
    bos: bool = Field(description="whether the prompt starts with the BOS token")
    hub: Hub | None = None
    folder: str | None = Field(None, description="a local copy of the checkpoint")
    pretraining: Pretraining | None = None
    pretrained: Literal["llada-tiny"] | None = Field(
        None, description="a checkpoint that comes with this package, made by its `pretraining`; null: make it here"
    )
    variant_of: Name | None = Field(
        None, description="another backbone, whose checkpoint this one is and whose other keys it takes over"
    )
    eos_padding: EosPadding | None = Field(
        None, description="`training.loss.eos_padding` of its adapters, where that is to be another one"
    )
    training: AdapterTraining = AdapterTraining()
    adapter_of: Name | None = Field(
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
    decoding_prompt_of: Direction | None = Field(
        None, description="decode behind the prompt of this direction, whatever the direction; null: of its own"
    )
    zero_shot: bool = Field(False, description="decode the bare checkpoint: no adapter is trained")
    bleu: Bleu | None = Field(None, description="BLEU of its translations; null: as in `scoring.bleu`")

    @model_validator(mode="after")
    def _one_origin(self) -> BackboneSection:
        if (self.pretraining or self.pretrained) and (self.hub or self.folder):
            raise ValueError("`pretraining` and `pretrained` exclude `hub` and `folder`")
        if not (self.hub or self.folder or self.pretraining or self.pretrained):
            raise ValueError("needs one of `hub`, `folder`, `pretraining`, `pretrained`")
        return self

    @property
    def is_pretrained_here(self) -> bool:
        return bool(self.pretraining and not self.pretrained)

    @property
    def own_folder(self) -> str | None:
        """The folder of a checkpoint that is neither downloaded nor made here."""
        return str(shipped.CHECKPOINT) if self.pretrained else self.folder


class AdapterSection(Section):
    """A finished adapter: a folder, or a repository of the hub, in our layout or the backbone's released one."""

    ONE_OF = ("folder", "repository")
    folder: str | None = Field(None, description="has adapter_config.json and adapter_model.safetensors")
    repository: Repository | None = Field(None, description="owner/name on the Hugging Face hub")
    revision: Commit | None = Field(None, description="null is resolved once and written to the results")
    subfolder: str | None = Field(None, description="of the repository")


Annotator = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]  # names files
Annotators = Annotated[list[Annotator], Field(min_length=1), AfterValidator(unique)]


class Shown(SystemSection):
    """One of the two systems that annotators compare."""

    backbone: Name | None = Field(None, description="null: that of `tables`")
    seed: PositiveInt | None = Field(None, description="the training run; null: the first of the backbone")


class Buckets(Section):
    """Sentences of a pack, by why they are in it. The scores are those of the main metric in the run that is shown."""

    first_best: NonNegativeInt = Field(25, description="the first system leads most")
    second_best: NonNegativeInt = Field(25, description="the second system leads most")
    tied: NonNegativeInt = Field(25, description="the smallest differences that are not zero")
    random: NonNegativeInt = Field(25, description="drawn of the others by a keyed hash")


class HumanEvaluation(Section):
    """Packs for annotators, and the tables of their filled forms. docs/human_evaluation.md."""

    directions: Annotated[list[Direction], AfterValidator(unique)] = Field(
        [], description="of these, those that the matrix has; none: no packs"
    )
    testset: Name | None = Field(None, description="null: the first of each direction")
    first: Shown = Field(Shown(method="ev"), description="differences are of this system …")
    second: Shown = Field(Shown(method="ratio"), description="… minus this one")
    sentences: Buckets = Buckets()
    seed: int = Field(1, description="of the random sentences, the order of rows, and the system in each slot")
    annotators: Annotators = Field(["A", "B", "C"], description="each gets forms under this name")
    forms: str = Field(
        "human_evaluation", description="the folder of filled forms: a folder for each direction, in it A.xlsx or A.csv"
    )
    simulated: bool = Field(
        False, description="instead of filled forms, those of simulated annotators: to try the whole way"
    )

    @model_validator(mode="after")
    def _two_systems(self) -> HumanEvaluation:
        if self.first == self.second:
            raise ValueError("`second` is the first system; name another one")
        return self


ELSEWHERE = "in a block of another name: this length method, set up as the block says"
METHOD_LABEL = Field(None, description="its printed name in tables and figures, for a method of your own")


def _labelled(cls: type[BaseModel], key: str, name: str, description: str | None = None) -> type[Section]:
    """The block of a length method, with its printed name."""
    base = block(cls, key, name, description)
    return create_model(base.__name__, __base__=base, __doc__=base.__doc__, label=(str | None, METHOD_LABEL))


METHOD_BLOCKS = {name: _labelled(cls, "method", name, ELSEWHERE) for name, cls in LENGTH_METHODS.items()}
METHOD_NAMED, METHOD_CHECKED = users("length method", "method", LENGTH_METHODS, _labelled)


class UserMethod(BaseModel):
    """A length method of the user's own. The other keys are its settings."""

    model_config = ConfigDict(extra="allow", frozen=True)
    method: Annotated[str, METHOD_NAMED] = Field(description="module:Class, or the name of one of ours")
    label: str | None = METHOD_LABEL


DEALT = {"reassigned": _labelled(Reassigned, "method", "reassigned")}
Another = one_of("method", METHOD_BLOCKS | DEALT, Annotated[UserMethod, METHOD_CHECKED])


class OtherMethods(BaseModel):
    """How the canvas length is chosen. In a block of another name, ``method`` says which of these it sets up. It may
    also be a user's own ``module:Class``."""

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, Another]


LengthMethods = create_model(
    "LengthMethods",
    __base__=OtherMethods,
    __doc__=OtherMethods.__doc__,
    **{name: (one | None, None) for name, one in METHOD_BLOCKS.items()},
)


class LengthStatisticsSection(Section):
    """What methods that are fitted to training pairs measure by all-mask canvases of the first ones of the corpus, a
    random sample. Ratios and the length line count tokens of all pairs."""

    pairs: PositiveInt = Field(1000, description="all-mask canvases at their true length: the entropy expected there")
    bias_pairs: PositiveInt = Field(200, description="pairs probed at each of twelve lengths: CAL's bias curve")


class LengthHeadTraining(Section):
    """How length_head's layer is trained on training pairs, the first of the corpus: a random sample."""

    pairs: PositiveInt = Field(50_000, description="most training pairs")
    epochs: PositiveInt = Field(10, description="passes over them")
    learning_rate: Rate = Field(1.0e-3, description="of Adam, on standardised states")
    batch: PositiveInt = Field(256, description="pairs per step")
    longest: int = Field(256, ge=2, description="slots; pairs with longer targets count as this length")


ORDER_NAMED, ORDER_CHECKED = users("reveal order", "order", KNOWN)


class UserOrder(BaseModel):
    """A reveal order or a variable-length decoder of the user's own. The other keys are its settings."""

    model_config = ConfigDict(extra="allow", frozen=True)
    order: Annotated[str, ORDER_NAMED] = Field(description="module:Class, or the name of one of ours")


def _as_given(value: Mapping[str, Any], check: Callable[[Any], BaseModel]) -> UserOrder:
    """The checked block as the config has it, without defaults: the store identifies results by these settings."""
    check(value)
    settings = {key: setting for key, setting in value.items() if key != "order"}
    if ":" in value["order"] and (problem := refusal(make_denoiser, value["order"], settings)):
        raise ValueError(problem)
    return UserOrder.model_construct(**value)


ORDER_BLOCKS = {name: block(cls, "order", name, title=f"{cls.__name__}Order") for name, cls in KNOWN.items()}
RevealOrder = Annotated[one_of("order", ORDER_BLOCKS, Annotated[UserOrder, ORDER_CHECKED]), WrapValidator(_as_given)]


class Pages(Section):
    """A page for each direction and test set: every sentence with the outputs of these systems, see docs/results.md."""

    methods: Names | None = Field(
        None, description="length methods under the order and steps of the main tables; null: those of the matrix"
    )
    backbones: Names | None = Field(
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


METRIC_LABEL = Field(description="as tables print it")


class CometSection(MainComet):
    """The COMET checkpoint of the main metric: a hub name, a local ``.ckpt``, or the toy COMET trained here."""

    ONE_OF = ("checkpoint", "training")
    label: str = METRIC_LABEL
    batch_size: PositiveInt = Field(description="sentences of a padded pass; 1: no score depends on its neighbours")
    training: Estimator | None = Field(None, description="trains the toy COMET (demo only)")


METRIC_NAMED, _ = users("metric", "metric", METRICS)


class OwnMetric(BaseModel):
    """A metric of the user's own, ``module:Class``; the other keys are handed to the class."""

    model_config = ConfigDict(extra="allow", frozen=True)
    metric: Annotated[Plugin, METRIC_NAMED] = Field(description="module:Class, or the name of one of this package")
    label: str = METRIC_LABEL

    @model_validator(mode="after")
    def _can_be_made(self) -> OwnMetric:
        if problem := refusal(make_metric, self.metric, self.model_extra):
            raise ValueError(problem)
        return self


def _metric_section(name: str, settings: type[Section]) -> Any:
    """The block of a further metric of ours: its class's settings, its name and its label."""
    fields: Any = {"metric": (Literal[name], Field(description="one of ours")), "label": (str, METRIC_LABEL)}
    return create_model(f"Further{settings.__name__}", __base__=settings, __doc__=settings.__doc__, **fields)


FurtherMetric = one_of(
    "metric", {name: _metric_section(name, settings) for name, settings in METRICS.items()}, OwnMetric
)


class Scoring(Section):
    """Metrics. All of a cell are computed in one job and written into one file."""

    comet: CometSection
    bleu: Bleu = Bleu()
    chrf: Chrf = Chrf()
    metrics: dict[Name, FurtherMetric] = Field({}, description="further ones, by their key in files")


def metrics_of(scoring: Scoring) -> tuple[Metric, ...]:
    """All metrics of the config: the main one (that of ``scoring.comet``), BLEU, chrF, and the further ones."""
    return (
        describe(scoring.comet.key, scoring.comet.label, scoring.comet),
        describe("bleu", "sacreBLEU", scoring.bleu),
        describe("chrf", "chrF", scoring.chrf),
        *(describe(name, one.label, _scorer(one)) for name, one in scoring.metrics.items()),
    )


def scoring_params(scoring: Scoring, bleu: Bleu | None = None) -> dict[str, Any]:
    """The metrics with what their numbers depend on; ``bleu`` goes before that of ``scoring``."""
    return {
        "comet": scoring.comet.model_dump(include={"checkpoint", "batch_size", "name", "reference_free", "revision"}),
        "bleu": (bleu or scoring.bleu).model_dump(),
        "chrf": scoring.chrf.model_dump(),
        "metrics": {name: _params(one) for name, one in scoring.metrics.items()},
    }


def _params(section: Any) -> dict[str, Any]:
    """Of a further metric; that of a user's own class also has its code."""
    settings = section.model_dump(mode="json", exclude={"label"})
    return settings | {"metric": plugins.with_code(settings["metric"])}


def checkpoints(scoring: Scoring) -> dict[str, Comet]:
    """The metrics that have a COMET checkpoint, by the name of its folder; the main one's is ``comet``."""
    return {"comet": scoring.comet} | {name: one for name, one in scoring.metrics.items() if isinstance(one, Comet)}


def _scorer(section: Any) -> Scorer:
    return make_metric(section.metric, section.model_extra or {}) if isinstance(section, OwnMetric) else section


class MatrixSection(Section):
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
    seeds: list[int] | None = Field(None, description="the training runs; null: all of a backbone")
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

    extends: str | list[str] = Field(
        [],
        description="a file or files that this one is laid over, as if they stood before it on the command line; "
        "their paths are from the folder of this file",
    )
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
    max_runtime: Annotated[int, Field(ge=60)] = Field(
        240, description="the longest time limit, in minutes, that a job on a GPU requests of a cluster"
    )
    store: bool = Field(True, description="share finished canvases and scores between jobs; false: compute all anew")
    adapters: Literal["trained", "released"] = Field("trained", description="train them, or take those of `released`")
    matrix: MatrixSection
    tables: Tables
    studies: dict[Name, Study] = Field({}, description="comparisons, each with a table of its own")
    sources: dict[Name, AnySource] = Field(description="where training pairs and test sets come from")
    directions: dict[Direction, DirectionSection] = Field(description="source-target, as language codes: en-zh")
    backbones: dict[Name, BackboneSection] = Field(description="those that other keys may name")
    released: dict[Name, dict[Direction, dict[PositiveInt, AdapterSection]]] = Field(
        {}, description="finished adapters by backbone, direction and seed; read only with `adapters: released`"
    )
    autoregressive: Autoregressive
    instruct: Instruct
    corpus: CorpusSection
    training: Training
    length_methods: LengthMethods = Field(
        description="A block with `each: {key: [values]}` makes a method of each value. Its name holds the value, as "
        "in `ratio_{ratios:.2f}`, and stands for all these methods in `matrix.methods` and in studies. "
        "`same_ratios_as` names the method whose `ratios` a block takes where it has none itself"
    )
    length_statistics: LengthStatisticsSection = LengthStatisticsSection()
    length_head_training: LengthHeadTraining = LengthHeadTraining()
    reveal_orders: dict[Name, RevealOrder] = Field(
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

    def of(self, backbone: str) -> Experiment:
        """The config as a backbone has it: with the keys of `decoding` that it changes."""
        own = {name: value for name, value in self.backbones[backbone].decoding if value is not None}
        return self.model_copy(update={"decoding": self.decoding.model_copy(update=own)}) if own else self

    def corpus_of(self, direction: str) -> CorpusSection:
        """`corpus` with what a direction changes."""
        return self.directions[direction].corpus_with(self.corpus)

    def training_of(self, direction: str) -> Training:
        """`training` with what a direction changes."""
        return self.directions[direction].training_with(self.training)


def json_schema(additions: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """The JSON schema of the config, as `entropy-valley schema` prints it.

    ``known`` adds, by model and field, what only the packages above this one know of a field's values.
    """
    schema = Experiment.model_json_schema()
    for model, fields in additions.items():
        for name, values in fields.items():
            schema["$defs"][model]["properties"][name] |= values
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
