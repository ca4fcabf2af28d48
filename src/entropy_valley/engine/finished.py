"""How probable a finished text is: one pass over it, each token in its own place."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from entropy_valley import files
from entropy_valley.revisions import DECODING

if TYPE_CHECKING:
    from entropy_valley.engine.head import Head
    from entropy_valley.engine.queue import Decoded
    from entropy_valley.engine.requests import Canvases, Request
    from entropy_valley.model.load import Backbone
    from entropy_valley.model.prompt import Prompt


@dataclass(frozen=True)
class Texts:
    """The tokenizer of a prompt, and the ids of the tokens that end a turn and that are masks (None: it has none)."""

    prompt: Prompt
    turn_end: int | None = None
    mask: int | None = None

    def tokens(self, decoded: Decoded) -> list[int]:
        """The ids of a decoded canvas that are its text."""
        return text_tokens(decoded, self.turn_end, self.mask)

    def text(self, decoded: Decoded) -> str:
        """The text of a decoded canvas."""
        return self.prompt.text(self.tokens(decoded))

    def again(self, decoded: Decoded) -> list[int]:
        """The ids of a decoded canvas's text, tokenised anew."""
        return self.prompt.tokens(self.text(decoded))


def text_tokens(decoded: Decoded, turn_end: int | None, mask: int | None = None) -> list[int]:
    """The ids of a decoded canvas that are its text: of those before the first EOS the ones before ``turn_end``, but
    for slots that were revealed as a ``mask``."""
    before = itertools.takewhile(lambda token: token != turn_end, decoded.tokens[: decoded.text])
    return [token for token in before if token != mask]


@dataclass(frozen=True)
class Score:
    """Mean log-probability of a finished text's tokens and its first EOS (nats, six decimals)."""

    logprob: float

    def to_json(self) -> dict[str, Any]:
        return vars(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        return cls(**value)


@dataclass(frozen=True)
class Finished:
    """The request for the score of a text in a canvas of ``length`` slots behind a prompt, the rest of them EOS.

    A text that is longer than the canvas is cut, as in the authors' code. Its pass is its own: no company.
    """

    result: ClassVar[type] = Score

    prompt: Sequence[int]
    text: Sequence[int]
    length: int
    mask_token: bool = False

    @property
    def counts(self) -> dict[str, int]:
        """What is run, as a ledger counts it."""
        return {"passes": 1, "tokens": len(self.prompt) + self.length, "rows": self.length}

    def key(self, checkpoint: str, numerics: str) -> str:
        parts = [list(self.prompt), list(self.text), self.length]
        return files.digest(["finished", DECODING, checkpoint, numerics, *parts])

    def canvases(self, backbone: Backbone, known: Callable[[Request], Any]) -> Canvases:
        """None is left to the engine."""
        yield from ()
        tokens = [*self.text, *[backbone.eos_id] * self.length][: self.length]
        scored = min(len(self.text) + 1, self.length)
        logprobs = _token_logprobs(backbone, self.prompt, tokens, self.mask_token)[:scored]
        return Score(round(math.fsum(logprobs) / scored, 6))


def _token_logprobs(backbone: Backbone, prompt: Sequence[int], tokens: Sequence[int], mask_token: bool) -> list[float]:
    """The log-probability of each token of a canvas, all of them being seen."""
    import torch

    from entropy_valley.model.packing import hidden_states, pack

    with torch.inference_mode():
        packed = pack([[*prompt, *tokens]], backbone.device, [backbone.prefix(len(prompt))])
        first = len(prompt) - int(backbone.shifted)
        states = hidden_states(backbone.model, packed)[first : first + len(tokens)]
        head, count = _head(backbone.model.lm_head, backbone.float32_head), len(tokens)
        chunks = (torch.cat([logits for _, logits in head.blocks(chunk)], 1) for chunk in head.chunks(states))
        logits = torch.cat(list(chunks))[:count].double()
        if not mask_token:
            logits[:, backbone.mask_id] = -torch.inf
        ids = torch.tensor(tokens, device=logits.device)
        return logits.log_softmax(-1).gather(1, ids[:, None])[:, 0].tolist()


@functools.lru_cache(maxsize=1)
def _head(module: Any, float32: bool) -> Head:
    """One for all texts: with an adapter it may hold a float32 copy of the whole LM head."""
    from entropy_valley.engine.head import Head

    return Head(module, float32)
