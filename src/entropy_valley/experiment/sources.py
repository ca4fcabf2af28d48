"""Where sentence pairs come from; see ``entropy_valley.corpus.sources`` for what each one reads."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveInt


class _Source(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    limit: PositiveInt | None = Field(None, description="as a test set: its keyed-hash subset of so many sentences")
    challenge: PositiveInt | None = Field(
        None,
        description="as a test set: so many of these whose sources have dates, lists, names or numbers, stratified",
    )


class Embedded(_Source):
    """The synchronous grammar of this project."""

    name: Literal["embedded"] = Field(description="the kind of source")
    seed: int = Field(0, description="another one gives other sentences")


class HuggingFace(_Source):
    """A translation data set of the hub, streamed."""

    name: Literal["huggingface"] = Field(description="the kind of source")
    dataset: str = Field(description="its name on the hub, owner/name")
    subset: str = Field(description="its configuration there")
    split: str = Field("train", description="its split there")
    columns: dict[str, str] = Field({}, description="column of each language, where a row has no `translation`")
    revision: str | None = Field(None, description="a commit or tag of the data set; null: the newest")
    folder: str | None = Field(None, description="a local copy, for machines without a network")


class Wmt22(_Source):
    """The WMT22 general test set through sacreBLEU, reference A."""

    name: Literal["wmt22"] = Field(description="the kind of source")
    folder: str | None = Field(None, description="holds generaltest2022.en-zh.src.en and the like")


class Tatoeba(_Source):
    """Tatoeba pairs, held out by source sentence."""

    name: Literal["tatoeba"] = Field(description="the kind of source")
    folder: str | None = Field(None, description="holds en-de.tsv and the like")
    held_out: float = Field(0.02, gt=0, lt=0.5, description="share of sources in dev, and in test")


class Files(_Source):
    """Two text files of the user's own, one sentence a line."""

    name: Literal["files"] = Field(description="the kind of source")
    source: str = Field(description="the file of source sentences, UTF-8")
    target: str = Field(description="the file of target sentences, with as many lines")


Source = Annotated[Embedded | HuggingFace | Wmt22 | Tatoeba | Files, Field(discriminator="name")]
