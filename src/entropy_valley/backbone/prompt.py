"""The prompt before the canvas. Prompt and target are tokenised separately and concatenated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from entropy_valley.errors import InputError

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

    def text(self, tokens: list[int], first_line: bool = False) -> str:
        """The stripped text of tokens, without special tokens; with ``first_line``, what is before its first break."""
        text = self.tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return (text.partition("\n")[0] if first_line else text).strip()
