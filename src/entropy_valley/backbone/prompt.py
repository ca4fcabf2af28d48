"""The prompt before the canvas. Prompt and target are tokenised separately and concatenated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from entropy_valley.errors import InputError, listed

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
        return ([] if self.bos is None else [self.bos]) + self.tokens(self.template.replace(PLACE, source))

    def tokens(self, text: str) -> list[int]:
        """Token ids of a text without special tokens: |x| of a source, |y| of a target."""
        return self.tokenizer(text, add_special_tokens=False)["input_ids"]

    def slots_of(self, text: str, spans: Iterable[Sequence[int]]) -> list[int]:
        """The tokens of a text, from 0, that share a character with one of the ``spans`` (start, end) of it."""
        said = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
        parts = list(spans)
        return [
            place
            for place, (first, last) in enumerate(said)
            if any(first < end and start < last for start, end in parts)
        ]

    def text(self, tokens: list[int], first_line: bool = False) -> str:
        """The stripped text of tokens, without special tokens; with ``first_line``, what is before its first break."""
        text = self.tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return (text.partition("\n")[0] if first_line else text).strip()


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
