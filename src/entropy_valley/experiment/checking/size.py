"""How large a backbone is, and what its passes take: bytes of memory, and operations of the weights' products."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

BYTES = {"float32": 4, "bfloat16": 2, "nf4": 2}  # of a state, and of a weight that is not in 4 bits
RELEASED = BYTES["bfloat16"]  # of a released weight
HEAD_ROWS = 1024  # whose logits a GPU holds at once: decoding/head.py
_LOGIT_BYTES = 16  # of a logit: in bfloat16, in float32, its exp, and one of the two in float64


@dataclass(frozen=True)
class Size:
    """A backbone's dimensions; ``head``: the width of a head; ``tied``: the LM head has the embeddings' weights."""

    width: int
    ffn: int
    layers: int
    vocabulary: int
    heads: int
    kv_heads: int
    head: int
    tied: bool = False

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Size:
        """From the arguments of a stock config class."""
        names = ("hidden_size", "intermediate_size", "num_hidden_layers", "vocab_size", "num_attention_heads")
        width, ffn, layers, vocabulary, heads = (arguments[name] for name in names)
        ffn = ffn or 4 * width  # as GPT-2, which names none
        kv_heads, head = arguments.get("num_key_value_heads") or heads, arguments.get("head_dim") or width // heads
        return cls(width, ffn, layers, vocabulary, heads, kv_heads, head, arguments.get("tie_word_embeddings", False))

    @property
    def queries(self) -> int:
        """The width of all heads of q."""
        return self.heads * self.head

    @property
    def keys(self) -> int:
        """The width of all heads of k; that of v is the same."""
        return self.kv_heads * self.head

    @property
    def layer(self) -> int:
        """Weights of a layer's products."""
        return 2 * self.width * (self.queries + self.keys) + 3 * self.width * self.ffn

    @property
    def parameters(self) -> int:
        """All weights but norms and biases, which are less than a thousandth."""
        return self.layers * self.layer + (1 if self.tied else 2) * self.width * self.vocabulary

    def weights(self, precision: str) -> int:
        """Bytes of all weights. In nf4 those of the layers have 4 bits each, and a float32 scale for every 64."""
        of_layers = self.layers * self.layer
        rest = (self.parameters - of_layers) * BYTES[precision]
        return rest + (of_layers * 9 // 16 if precision == "nf4" else of_layers * BYTES[precision])

    def adapter(self, rank: int) -> int:
        """Parameters of LoRA on the seven matrices of each layer: rank × (in + out) of each."""
        attention = 4 * self.width + 2 * (self.queries + self.keys)
        return rank * self.layers * (attention + 3 * (self.width + self.ffn))

    def pass_bytes(self, tokens: int, item: int, rows: int = HEAD_ROWS) -> int:
        """At most what a decoding pass holds beside the weights: a layer's states, or the logits of so many ``rows``.

        Compared with what a pass really holds in tests/decoding/test_memory.py.
        """
        layer = tokens * (3 * self.ffn + 4 * self.width + 2 * self.queries) * item
        head = min(rows, tokens) * self.vocabulary * _LOGIT_BYTES + 2 * tokens * self.width * item
        return max(layer, head)

    def pass_work(self, tokens: float, rows: float) -> float:
        """Additions and multiplications of the weights' products in passes over so many tokens, ``rows`` of them read;
        the last layer makes keys and values of the other rows alone."""
        keys = 2 * self.width * self.keys
        last = tokens * keys + rows * (self.layer - keys)
        return 2.0 * (tokens * (self.layers - 1) * self.layer + last + rows * self.width * self.vocabulary)
