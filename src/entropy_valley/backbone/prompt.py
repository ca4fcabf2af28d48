"""The model's input around the canvas: prompt and target, tokenised apart and concatenated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from entropy_valley.errors import InputError

PLACE = "{src}"


@dataclass(frozen=True)
class Prompt:
    """A prompt template with one ``{src}``, under one tokenizer; ``bos`` is the id put in front, if any."""

    template: str
    tokenizer: Any
    bos: int | None = None

    def __post_init__(self) -> None:
        if self.template.count(PLACE) != 1:
            raise InputError(
                "prompt",
                f"{self.template!r} holds {PLACE} {self.template.count(PLACE)} times",
                f"A template names the source exactly once, as {PLACE}.",
            )

    def encode(self, source: str) -> list[int]:
        """Token ids of prompt(x), the BOS in front where the backbone uses one."""
        return ([] if self.bos is None else [self.bos]) + self.tokens(self.template.replace(PLACE, source))

    def tokens(self, text: str) -> list[int]:
        """Token ids of a bare text, no special tokens; its length is |x| for a source and |y| for a target."""
        return self.tokenizer(text, add_special_tokens=False)["input_ids"]

    def text(self, tokens: list[int]) -> str:
        """The stripped text of tokens, special tokens left out."""
        return self.tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False).strip()
