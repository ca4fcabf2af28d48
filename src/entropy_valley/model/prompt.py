"""The prompt before the canvas, and what attends to it."""

import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.settings import JsonObject, check_template

# --- The prompt before the canvas. Prompt and target are tokenised separately and concatenated.

PLACE = "{src}"


def bos_of(wanted: bool, bos: int | None) -> int | None:
    """The BOS token that prompts begin with: ``bos`` of the tokenizer where it is ``wanted``, else None. Raises
    InputError where the tokenizer has none."""
    if wanted and bos is None:
        raise InputError("bos", "the tokenizer has no BOS token", "Set `bos: false`, in Python bos=False.")
    return bos if wanted else None


@dataclass(frozen=True)
class Prompt:
    """A prompt template with one ``{src}``, and its tokenizer; ``bos`` is the id of a BOS token in front, or None."""

    template: str
    tokenizer: Any = field(repr=False)
    bos: int | None = None

    def __post_init__(self) -> None:
        check_template(self.template)

    def encode(self, source: str) -> list[int]:
        """Token ids of prompt(x), with the BOS in front if there is one.

        Only the template gives special tokens: what is between those nearest to the source is text, whatever the source
        spells.
        """
        first, before, behind, last = self._cut
        tokens = [*first, *self.tokens(before + source + behind), *last]
        return tokens if self.bos is None else [self.bos, *tokens]

    def tokens(self, text: str) -> list[int]:
        """Token ids of a text without special tokens: |x| of a source, |y| of a target."""
        return self._tokenized(text, split_special_tokens=True)["input_ids"]

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

    def _tokenized(self, text: str, **how: bool) -> JsonObject:
        try:
            return self.tokenizer(text, add_special_tokens=False, **how)
        except BaseException as error:  # as of one with a pattern that takes too long
            place = getattr(self.tokenizer, "name_or_path", "tokenizer")
            remedy = "Use the one that was released with the checkpoint."
            raise files.unreadable(place, "tokenizer", error, remedy) from None

    @functools.cached_property
    def _cut(self) -> tuple[list[int], str, str, list[int]]:
        """The template before and behind the source, cut at the special tokens nearest to it: ids, text, text, ids."""
        added = self.tokenizer.added_tokens_decoder.values()
        names = sorted((token.content for token in added if token.special), key=len, reverse=True)
        special = re.compile("|".join(map(re.escape, names)) or "(?!)")
        before, behind = self.template.split(PLACE)
        begin = max((match.end() for match in special.finditer(before)), default=0)
        end = next((match.start() for match in special.finditer(behind)), len(behind))
        first, last = (self._tokenized(part, split_special_tokens=False) for part in (before[:begin], behind[end:]))
        return first["input_ids"], before[begin:], behind[:end], last["input_ids"]


# --- What the rows of a prompt attend to, in training and in decoding: the choices, and the one of a model's params.

Attention = Literal["bidirectional", "prefix"]
BOTH_WAYS: Attention = "bidirectional"  # all rows attend to one another, as the checkpoints were trained
PREFIX: Attention = "prefix"  # the rows of the prompt attend to the prompt alone, those of the canvas to everything


def attention_of(spec: JsonObject) -> str:
    """That of a model's params, or of the params in an ``adapter.json``: they name it where it is not the usual one."""
    return spec.get("attention", BOTH_WAYS)
