"""The prompt before the canvas, and how long translations are for their sources in the tokens of a backbone."""

from __future__ import annotations

import functools
import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from entropy_valley import files
from entropy_valley.errors import InputError, listed

# --- The prompt before the canvas. Prompt and target are tokenised separately and concatenated.
#
# What a source or target spells is text: only the template gives special tokens, such as mask and EOS.

PLACE = "{src}"


@dataclass(frozen=True)
class Prompt:
    """A prompt template with one ``{src}``, and its tokenizer; ``bos`` is the id of a BOS token in front, or None."""

    template: str
    tokenizer: Any
    bos: int | None = None

    def __post_init__(self) -> None:
        if self.template.count(PLACE) != 1:
            raise InputError(
                "prompt",
                f"{self.template!r} has {PLACE} {self.template.count(PLACE)} times",
                f"Write {PLACE} exactly once, where the source goes.",
            )

    def encode(self, source: str) -> list[int]:
        """Token ids of prompt(x), with the BOS in front if there is one."""
        return [*self._front, *(self._around(source) or self._parsed(self.template.replace(PLACE, source)))]

    def encode_all(self, sources: Sequence[str]) -> list[list[int]]:
        """:meth:`encode` of many sources in one call of a tokenizer of transformers."""
        texts = [self.template.replace(PLACE, source) for source in sources]
        parsed = self._tokenized(texts, return_attention_mask=False)["input_ids"]
        return [[*self._front, *(self._around(one) or ids)] for one, ids in zip(sources, parsed, strict=True)]

    def tokens(self, text: str) -> list[int]:
        """Token ids of a text without special tokens: |x| of a source, |y| of a target."""
        return self._tokenized(text, split_special_tokens=True)["input_ids"]

    def tokens_of_all(self, texts: list[str]) -> list[list[int]]:
        """:meth:`tokens` of many texts in one call of a tokenizer of transformers."""
        return self._tokenized(texts, split_special_tokens=True, return_attention_mask=False)["input_ids"]

    def slots_of(self, text: str, spans: Iterable[Sequence[int]]) -> list[int]:
        """The tokens of a text, from 0, that share a character with one of the ``spans`` (start, end) of it."""
        offsets = self._tokenized(text, split_special_tokens=True, return_offsets_mapping=True)["offset_mapping"]
        parts = list(spans)
        return [
            place
            for place, (first, last) in enumerate(offsets)
            if any(first < end and start < last for start, end in parts)
        ]

    def text(self, tokens: list[int], first_line: bool = False) -> str:
        """The stripped text of tokens, without special tokens; with ``first_line``, what is before its first break."""
        text = self.tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return (text.partition("\n")[0] if first_line else text).strip()

    def _tokenized(self, text: str | list[str], **how: bool) -> Mapping[str, Any]:
        """What the tokenizer says of a text, or of each of several. Raises InputError where it fails on it, as one with
        a pattern that takes too long does."""
        place = getattr(self.tokenizer, "name_or_path", "tokenizer")
        with files.readable(place, "tokenizer", "Use the one that was released with the checkpoint."):
            return self.tokenizer(text, add_special_tokens=False, **how)

    @property
    def _front(self) -> list[int]:
        return [] if self.bos is None else [self.bos]

    @functools.cached_property
    def _special(self) -> re.Pattern[str]:
        """Finds the special tokens of the tokenizer in a text."""
        added = self.tokenizer.added_tokens_decoder.values()
        names = sorted((token.content for token in added if token.special), key=len, reverse=True)
        return re.compile("|".join(map(re.escape, names)) or "(?!)")

    def _parsed(self, text: str) -> list[int]:
        """Token ids of a text with its special tokens."""
        return self._tokenized(text)["input_ids"] if text else []

    def _around(self, source: str) -> list[int] | None:
        """The prompt of a source that spells special tokens; None for any other.

        The template is cut at its own special tokens that are nearest to the source: what is between them is text.
        """
        if not self._special.search(source):
            return None
        before, behind = self.template.split(PLACE)
        begin = max((match.end() for match in self._special.finditer(before)), default=0)
        end = next((match.start() for match in self._special.finditer(behind)), len(behind))
        text = self.tokens(before[begin:] + source + behind[:end])
        return [*self._parsed(before[:begin]), *text, *self._parsed(behind[end:])]


def require_room(path: object, rows: Iterable[Mapping[str, Any]], prompt: Prompt, context: int) -> None:
    """Raise InputError that names the sentences of a test set whose prompt, reference and EOS exceed the context."""
    needed = {row["id"]: len(prompt.encode(row["source"])) + len(prompt.tokens(row["target"])) + 1 for row in rows}
    beyond = [name for name, tokens in needed.items() if tokens > context]
    if beyond:
        raise InputError(
            path,
            f"prompt, reference and EOS of {len(beyond)} of {len(needed)} sentences need up to {max(needed.values())} "
            f"tokens, but the backbone's context is {context}: {listed(beyond, 8)}",
            "Split or drop these sentences.",
        )


# --- How long translations are for their sources, in the tokens of a backbone.

PERCENTILES = (10, 30, 50, 70, 90)  # five ratios for the grid of EV: the ends, the middle and two between


def length_ratios(pairs: Iterable[Mapping[str, str]], tokenizer: Any) -> dict[str, float]:
    """The :func:`moments` of |y|/|x| over pairs ``{source, target}``, in tokens without special ones.

    Raises InputError where no source has a token.
    """
    tokens = Prompt(PLACE, tokenizer).tokens
    counts = ((len(tokens(pair["source"])), len(tokens(pair["target"]))) for pair in pairs)
    return moments([target / source for source, target in counts if source])


def moments(ratios: Sequence[float]) -> dict[str, float]:
    """Median, mean and number of ratios, and their :data:`PERCENTILES`: ``p10`` and so on."""
    if not ratios:
        raise InputError("length ratios", "no training pair has a source", "Give a corpus of sentence pairs.")
    ratio = {"median": statistics.median(ratios), "mean": math.fsum(ratios) / len(ratios), "pairs": len(ratios)}
    values = np.percentile(ratios, PERCENTILES).tolist()
    return ratio | {f"p{percent}": value for percent, value in zip(PERCENTILES, values, strict=True)}


# --- What the rows of a prompt attend to, in training and in decoding: the choices, and the one of a model's params.

BOTH_WAYS, PREFIX = "bidirectional", "prefix"
Attention = Literal["bidirectional", "prefix"]
ATTENTIONS: dict[Attention, str] = {
    BOTH_WAYS: "all rows attend to one another, as the checkpoints were trained",
    PREFIX: "the rows of the prompt attend to the prompt alone, those of the canvas to everything",
}


def attention_of(spec: Mapping[str, Any]) -> str:
    """That of a model's params, or of the params in an ``adapter.json``: they name it where it is not the usual one."""
    return spec.get("attention", BOTH_WAYS)
