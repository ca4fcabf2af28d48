"""The settings of translation: the keys of `autoregressive` and `latency`, and a system of other tables."""

from typing import Annotated

from pydantic import Field, PositiveInt

from entropy_valley.settings import AnyNames, Name, Refers, Section, Steps


class SystemSection(Section):
    """A way to decode that is not of the product."""

    method: Annotated[Name, Refers("length_methods")] = Field(description="a key of `length_methods`")
    order: Annotated[Name | None, Refers("reveal_orders")] = Field(None, description="null: that of `tables`")
    steps: Steps | None = Field(None, description="null: that of `tables`")


class Search(Section):
    """A beam search. It ends with the first ``beams`` finished hypotheses, or after ``max_new_tokens`` tokens. Without
    ``early_stopping`` it goes on while the best unfinished one scores more than the worst finished one."""

    beams: PositiveInt = Field(description="beams of the search")
    length_penalty: Annotated[float, Field(allow_inf_nan=False)] = Field(
        description="log-probability / tokens ** penalty ranks finished beams"
    )
    max_new_tokens: PositiveInt = Field(description="a beam that has no EOS by then is cut and counted")
    early_stopping: bool = Field(
        True, description="stop with the first `beams` finished hypotheses; false: when no other can be better"
    )
    first_line: bool = Field(False, description="a translation ends at its first line break, not only at the EOS")


class Autoregressive(Search):
    """Backbones that write from left to right: same pairs, same prompts, beam search until EOS."""

    backbones: Annotated[AnyNames, Refers("backbones")] = Field(
        description="keys of `backbones`, of a causal family; none: no such systems"
    )


class Latency(Section):
    """The benchmark of a cell's speed: its method alone, on a few sentences of its test set, without the store."""

    sentences: PositiveInt = Field(32, description="drawn by the keyed hash, the same for all methods")
    repeats: PositiveInt = Field(3, description="after one round that warms up; the table has their median")
    batch: PositiveInt | None = Field(None, description="sentences of a batch in the batched timing; null: all of them")
