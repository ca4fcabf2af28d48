"""The settings of training pairs and test sets: the keys of `corpus`."""

from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from entropy_valley.data.sampling import Subset
from entropy_valley.settings import BY_DIRECTION, Direction, Language, Limits, RandomSeed, Section

Sampling = Literal["keyed_hash", "shuffle", "shuffle_rows"]


class LengthFilter(Section):
    """Limits of a text of one language, both ends included; words are split at white space."""

    words: Limits | None = Field(None, description="fewest and most words; null: no limit")
    characters: Limits | None = Field(None, description="fewest and most characters; null: no limit")
    hidden: Limits | None = Field(
        None,
        description="fewest and most control and formatting characters, such as zero-width spaces; [0, 0] allows none, "
        "and the table `corpus` counts what it drops as too long; null: no limit",
    )


class CorpusSection(Section):
    """How many pairs are sampled, and which are let in."""

    seed: RandomSeed = Field(
        description="of the keyed hash and of shuffling, which draw pairs, test subsets and sentences of diagnostics"
    )
    train: PositiveInt = Field(description="training pairs per direction, at most")
    dev: PositiveInt = Field(description="development pairs per direction, at most")
    filters: dict[Language, LengthFilter] = Field(description="by language code; one that is left out has no limits")
    sampling: Annotated[Sampling | dict[Direction, Sampling], BY_DIRECTION] = Field(
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
    challenge: Literal["first"] = Field(
        "first",
        description="the sentences that `challenge` of a source takes: always the first with a category by the rules "
        "of the authors' code, for English",
    )

    def filter_of(self, language: str) -> LengthFilter:
        """The length limits of a language: none where the config has none."""
        return self.filters.get(language, LengthFilter())

    def sampling_of(self, direction: str) -> Sampling:
        """How the pairs of a direction are drawn."""
        return self.sampling.get(direction, "keyed_hash") if isinstance(self.sampling, dict) else self.sampling


class DirectionCorpus(Section):
    """What a direction has instead of the same key of `corpus`; null: as there."""

    train: PositiveInt | None = Field(None, description="training pairs")
    dev: PositiveInt | None = Field(None, description="development pairs")
    test_limit: PositiveInt | None = Field(None, description="as `limit` of every test set")
    filters: dict[Language, LengthFilter] = Field({}, description="by language code; other languages as in `corpus`")
