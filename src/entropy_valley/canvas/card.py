"""A checkpoint without its weights: what a job needs that computes nothing, read in milliseconds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from entropy_valley import files
from entropy_valley.backbone.adapters import adapter_digest
from entropy_valley.backbone.checkpoint import checkpoint_digest
from entropy_valley.backbone.families import Family, find_family
from entropy_valley.backbone.prompt import Prompt
from entropy_valley.backbone.released import config_arguments
from entropy_valley.backbone.tokenizer import load_tokenizer
from entropy_valley.errors import InputError


@dataclass(frozen=True)
class Card:
    """A backbone's prompt and context, and the digests that name it and its adapter (None: the bare backbone)."""

    prompt: Prompt
    context: int
    backbone_digest: str
    adapter_digest: str | None = None

    @property
    def digest(self) -> str:
        """One name of backbone and adapter together."""
        return files.digest([self.backbone_digest, self.adapter_digest])

    def check(self, place: object, sentence: str, prompt: int, slots: int) -> None:
        """Raise InputError if a prompt of so many tokens and a canvas of so many slots do not fit the context."""
        if prompt + slots > self.context:
            raise InputError(
                place,
                f"sentence {sentence!r}: prompt {prompt} + canvas {slots} = {prompt + slots} tokens, "
                f"but the backbone's context is {self.context}",
                "Split or drop the sentence, or choose smaller ratios.",
            )


def read_card(backbone: Path, adapter: Path | None, family: str, template: str, bos: bool) -> Card:
    """Read tokenizer, context and digests from the folders of a backbone and its adapter; no tensor is touched
    but those of an adapter that has no ``adapter.json``.

    Raises InputError for an adapter of another backbone and for a BOS that the tokenizer has not.
    """
    kind = find_family(family)
    digest = checkpoint_digest(backbone)
    context = config_arguments(backbone, kind)["max_position_embeddings"]
    tokenizer = read_tokenizer(backbone, kind)
    prompt = Prompt(template, tokenizer, _bos(tokenizer, kind, backbone) if bos else None)
    return Card(prompt, context, digest, adapter_digest(adapter, kind, digest) if adapter else None)


class RustTokenizer:
    """``tokenizer.json`` under the two calls that :class:`Prompt` makes, without importing transformers (2.5 s)."""

    def __init__(self, path: Path) -> None:
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(path))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def __call__(self, text: str, add_special_tokens: bool) -> dict[str, list[int]]:
        return {"input_ids": self._tokenizer.encode(text, add_special_tokens=add_special_tokens).ids}

    def decode(self, tokens: list[int], skip_special_tokens: bool, clean_up_tokenization_spaces: bool) -> str:
        """The text of tokens; ``tokenizers`` never cleans up spaces."""
        return self._tokenizer.decode(tokens, skip_special_tokens=skip_special_tokens)

    def get_vocab(self) -> dict[str, int]:
        return self._tokenizer.get_vocab()


def read_tokenizer(folder: Path, family: Family) -> Any:
    """The checkpoint's tokenizer; through transformers only where it was released without ``tokenizer.json``."""
    path = folder / "tokenizer.json"
    return RustTokenizer(path) if path.exists() else load_tokenizer(folder, family)


def _bos(tokenizer: Any, family: Family, folder: Path) -> int:
    identifier = tokenizer.get_vocab().get(family.bos_token)
    if identifier is None:
        raise InputError(
            folder, f"the tokenizer has no BOS token {family.bos_token!r}", "Set the backbone's bos: false."
        )
    return identifier
