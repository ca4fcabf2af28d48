"""The config's readings of data and of statistics: how pairs and test sentences are chosen, how systems are tested."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, PositiveInt

from entropy_valley.analysis.significance import Deviation, Generator, Zeros
from entropy_valley.data.categories import Reading as Challenge
from entropy_valley.data.sampling import Subset
from entropy_valley.settings import Direction, Limits, Ratios, Section

Sampling = Literal["keyed_hash", "shuffle", "shuffle_rows"]


class LengthFilter(Section):
    """Monolingual length limits, both ends included; words are split at white space."""

    words: Limits | None = Field(None, description="fewest and most words; null: no limit")
    characters: Limits | None = Field(None, description="fewest and most characters; null: no limit")


class Corpus(Section):
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
    challenge: Challenge = Field(
        "first",
        description="the sentences that `challenge` of a source takes, and their categories: the first with a "
        "category by the rules of the authors' code, for English; or stratified by a keyed hash, by our rules",
    )
    on_cluster: bool = Field(
        False,
        description="draw training pairs in a CPU job of the cluster: its nodes have a network, or a source a folder",
    )

    def filter_of(self, language: str) -> LengthFilter:
        """The length limits of a language: none where the config has none."""
        return self.filters.get(language, LengthFilter())

    def sampling_of(self, direction: str) -> Sampling:
        """How the pairs of a direction are drawn."""
        return self.sampling.get(direction, "keyed_hash") if isinstance(self.sampling, dict) else self.sampling


class Coverage(Section):
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
