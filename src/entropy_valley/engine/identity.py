"""A checkpoint without its weights: what a job needs that computes nothing, read in milliseconds."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.model.adapters import adapter_digest
from entropy_valley.model.checkpoint import checkpoint_digest, config_arguments
from entropy_valley.model.families import Family, find_family
from entropy_valley.model.prompt import BOTH_WAYS, Prompt
from entropy_valley.model.tokenizer import WHOLE, declared_tokens, load_tokenizer, readable


@dataclass(frozen=True)
class Identity:
    """A backbone's prompt and context, and the digests that name it and its adapter (None: the bare backbone).

    ``turn_end`` is the id of the token that ends a turn of its chats, ``mask`` that of the mask token; None: it has
    none.
    """

    prompt: Prompt
    context: int
    backbone_digest: str
    adapter_digest: str | None = None
    turn_end: int | None = None
    mask: int | None = None

    @property
    def digest(self) -> str:
        """One name of backbone and adapter together."""
        return files.digest([self.backbone_digest, self.adapter_digest])


def read_identity(
    backbone: Path, adapter: Path | None, family: str, template: str, bos: bool, attention: str = BOTH_WAYS
) -> Identity:
    """Read tokenizer, context and digests from the folders of a backbone and its adapter; no tensor is touched
    but those of an adapter that has no ``adapter.json``.

    Raises InputError for an adapter of another backbone or attention, and for a BOS that the tokenizer has not.
    """
    kind = find_family(family)
    digest = checkpoint_digest(backbone)
    context = config_arguments(backbone, kind)["max_position_embeddings"]
    tokenizer = read_tokenizer(backbone, kind)
    prompt = Prompt(template, tokenizer, _bos(tokenizer, kind, backbone) if bos else None)
    given = adapter_digest(adapter, kind, digest, attention) if adapter else None
    mask = tokenizer.get_vocab().get(kind.mask_token)
    return Identity(prompt, context, digest, given, turn_end_id(tokenizer, kind), mask)


def turn_end_id(tokenizer: Any, family: Family) -> int | None:
    """The id of the token that ends a turn of the family's chats; None for a family without chats."""
    return None if family.turn_end is None else tokenizer.get_vocab().get(family.turn_end)


class RustTokenizer:
    """``tokenizer.json`` under the calls that :class:`Prompt` makes, without importing transformers (2.5 s)."""

    def __init__(self, path: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(path))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def __call__(
        self,
        text: str,
        add_special_tokens: bool,
        split_special_tokens: bool = False,
        return_offsets_mapping: bool = False,
    ) -> dict[str, list[Any]]:
        self._tokenizer.encode_special_tokens = split_special_tokens
        encoded = self._tokenizer.encode(text, add_special_tokens=add_special_tokens)
        return {"input_ids": encoded.ids, **({"offset_mapping": encoded.offsets} if return_offsets_mapping else {})}

    def decode(self, tokens: list[int], skip_special_tokens: bool, clean_up_tokenization_spaces: bool) -> str:
        """The text of tokens; ``tokenizers`` never cleans up spaces."""
        return self._tokenizer.decode(tokens, skip_special_tokens=skip_special_tokens)

    @property
    def added_tokens_decoder(self) -> dict[int, Any]:
        """The added tokens by id."""
        return self._tokenizer.get_added_tokens_decoder()

    @functools.cached_property
    def _vocabulary(self) -> dict[str, int]:
        return self._tokenizer.get_vocab()

    def get_vocab(self) -> dict[str, int]:
        return self._vocabulary

    def has_added(self, tokens: list[str | dict[str, Any]]) -> bool:
        """Whether each of the declared tokens is an added one here, with the same flags."""
        added = {token.content: token for token in self.added_tokens_decoder.values()}
        flags = [token if isinstance(token, dict) else {"content": token} for token in tokens]
        return all(
            token["content"] in added
            and all(getattr(added[token["content"]], flag, value) == value for flag, value in token.items())
            for token in flags
        )


def read_tokenizer(folder: Path, family: Family) -> Any:
    """The checkpoint's tokenizer, which splits text as in training.

    Through transformers only where there is more to it than ``tokenizer.json``: DiffuLLaMA's mask token is declared
    beside it, and only then one token in a text too.
    """
    if (folder / WHOLE).exists():
        with readable(folder / WHOLE):
            light = RustTokenizer(folder / WHOLE)
            if light.has_added(declared_tokens(folder)):
                return light
    return load_tokenizer(folder, family)


def _bos(tokenizer: Any, family: Family, folder: Path) -> int:
    identifier = tokenizer.get_vocab().get(family.bos_token)
    if identifier is None:
        raise InputError(
            folder, f"the tokenizer has no BOS token {family.bos_token!r}", "Set the backbone's bos: false."
        )
    return identifier
