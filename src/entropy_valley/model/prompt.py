"""The prompt before the canvas, what attends to it, and the tokenizers."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from entropy_valley import files
from entropy_valley.errors import InputError, listed
from entropy_valley.model.checkpoint import TOKENIZER
from entropy_valley.model.families import Family
from entropy_valley.settings import Foreign, check_template, read_object

# --- The prompt before the canvas. Prompt and target are tokenised separately and concatenated.

PLACE = "{src}"


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

    def _tokenized(self, text: str, **how: bool) -> Mapping[str, Any]:
        """Raises InputError where the tokenizer fails on a text, as one with a pattern that takes too long does."""
        place = getattr(self.tokenizer, "name_or_path", "tokenizer")
        with files.readable(place, "tokenizer", "Use the one that was released with the checkpoint."):
            return self.tokenizer(text, add_special_tokens=False, **how)

    @functools.cached_property
    def _special(self) -> re.Pattern[str]:
        """Finds the special tokens of the tokenizer in a text."""
        added = self.tokenizer.added_tokens_decoder.values()
        names = sorted((token.content for token in added if token.special), key=len, reverse=True)
        return re.compile("|".join(map(re.escape, names)) or "(?!)")

    @functools.cached_property
    def _cut(self) -> tuple[list[int], str, str, list[int]]:
        """The template before and behind the source, cut at the special tokens nearest to it: ids, text, text, ids."""
        before, behind = self.template.split(PLACE)
        begin = max((match.end() for match in self._special.finditer(before)), default=0)
        end = next((match.start() for match in self._special.finditer(behind)), len(behind))
        return self._parsed(before[:begin]), before[begin:], behind[:end], self._parsed(behind[end:])

    def _parsed(self, text: str) -> list[int]:
        """Token ids of a part of the template, with its special tokens."""
        return self._tokenized(text)["input_ids"] if text else []


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


# --- What the rows of a prompt attend to, in training and in decoding: the choices, and the one of a model's params.

Attention = Literal["bidirectional", "prefix"]
BOTH_WAYS: Attention = "bidirectional"
PREFIX: Attention = "prefix"
ATTENTIONS: dict[Attention, str] = {
    BOTH_WAYS: "all rows attend to one another, as the checkpoints were trained",
    PREFIX: "the rows of the prompt attend to the prompt alone, those of the canvas to everything",
}


def attention_of(spec: Mapping[str, Any]) -> str:
    """That of a model's params, or of the params in an ``adapter.json``: they name it where it is not the usual one."""
    return spec.get("attention", BOTH_WAYS)


# --- Tokenizers.

WHOLE = "tokenizer.json"
# Files beside it that declare more tokens; transformers adds these to the tokenizer.
DECLARATIONS = ("tokenizer_config.json", "special_tokens_map.json")
REMEDY = "Copy the tokenizer files of the checkpoint again, or make the checkpoint again."


class Declarations(Foreign):
    """What a tokenizer's files declare: a token is a text or a block of its content and its flags."""

    added_tokens_decoder: dict[str, dict[str, Any]] = Field({})
    additional_special_tokens: list[str | dict[str, Any]] | None = None


class Tokenizer:
    """One of ``tokenizers`` under the calls of transformers that are made here; transformers takes 1.3 s to import.

    ``declared`` has the special tokens by their kinds, such as ``mask_token``; ``place`` is for errors.
    """

    def __init__(self, rust: Any, place: object = "tokenizer", declared: Mapping[str, str] | None = None) -> None:
        self._rust, self.name_or_path, self._declared = rust, str(place), declared or {}
        rust.no_padding()
        rust.no_truncation()

    def __call__(
        self,
        text: str,
        add_special_tokens: bool = True,
        split_special_tokens: bool = False,
        return_offsets_mapping: bool = False,
    ) -> dict[str, list[Any]]:
        self._rust.encode_special_tokens = split_special_tokens
        encoded = self._rust.encode(text, add_special_tokens=add_special_tokens)
        return {"input_ids": encoded.ids, **({"offset_mapping": encoded.offsets} if return_offsets_mapping else {})}

    def __len__(self) -> int:
        return self._rust.get_vocab_size()

    def decode(
        self, tokens: list[int], skip_special_tokens: bool = False, clean_up_tokenization_spaces: bool = False
    ) -> str:
        """The text of tokens; ``tokenizers`` never cleans up spaces."""
        return self._rust.decode(tokens, skip_special_tokens=skip_special_tokens)

    @property
    def added_tokens_decoder(self) -> dict[int, Any]:
        return self._rust.get_added_tokens_decoder()

    def get_vocab(self) -> dict[str, int]:
        return self._rust.get_vocab()

    @property
    def mask_token(self) -> str | None:
        return self._declared.get("mask_token")

    @property
    def eos_token(self) -> str | None:
        return self._declared.get("eos_token")

    @property
    def unk_token_id(self) -> int | None:
        return self._rust.token_to_id(self._declared.get("unk_token") or "")


def load_tokenizer(folder: str | Path, family: Family) -> Tokenizer:
    """The checkpoint's own tokenizer, without remote code.

    ``tokenizer.json`` is read without transformers where that would add nothing to it. Raises InputError if there is
    none and not all files of the family's tokenizer class, and for files of which no tokenizer can be made.
    """
    from tokenizers import Tokenizer as Rust

    folder = Path(folder)
    for pattern in (*TOKENIZER, "config.json", "chat_template*"):  # transformers reads these
        for path in folder.glob(pattern):
            files.regular(path, files.MOST)
    paths = [folder / name for name in DECLARATIONS]
    declarations = [read_object(path, Declarations) for path in paths if path.exists()]
    if (folder / WHOLE).exists():
        with files.readable(folder / WHOLE, "tokenizer", REMEDY):
            rust = Rust.from_file(str(folder / WHOLE))
            rust = rust if _is_complete(rust, declarations) else _of_transformers("PreTrainedTokenizerFast", folder)
    else:
        rust = _from_parts(folder, family)
    kinds = {key: token for one in declarations for key, token in one.items() if key.endswith("_token")}
    declared = {key: token["content"] if isinstance(token, dict) else token for key, token in kinds.items()}
    return Tokenizer(rust, folder, declared)


def _of_transformers(name: str, folder: Path) -> Any:
    import transformers

    return getattr(transformers, name).from_pretrained(folder, local_files_only=True).backend_tokenizer


def _from_parts(folder: Path, family: Family) -> Any:
    """By the family's tokenizer class, from other files than ``tokenizer.json``."""
    import transformers

    name = family.tokenizer_class
    released = getattr(transformers, name).vocab_files_names.values() if name else ()
    parts = [file for file in released if file != WHOLE]
    if not name or not parts or not all((folder / file).exists() for file in parts):
        wanted = " and no ".join([WHOLE, " + ".join(parts)] if parts else [WHOLE])
        raise InputError(folder, f"no tokenizer: no {wanted}", "Copy the released tokenizer files into this folder.")
    with files.readable(folder / parts[0], "tokenizer", REMEDY):
        return _of_transformers(name, folder)


def _is_complete(rust: Any, declarations: Iterable[Mapping[str, Any]]) -> bool:
    """Whether transformers would leave a ``tokenizer.json`` as it is: it has all declared tokens, with their flags, as
    added ones, and the declared ``add_prefix_space``. DiffuLLaMA's mask token is declared beside it."""
    added = {token.content: token for token in rust.get_added_tokens_decoder().values()}
    tokens, prefix_space = [], False
    for one in declarations:
        tokens += [token for key, token in one.items() if key.endswith("_token")]  # `add_bos_token` is a switch
        tokens += [*(one.get("additional_special_tokens") or ()), *one.get("added_tokens_decoder", {}).values()]
        prefix_space = one.get("add_prefix_space", prefix_space)
    flags = [{"content": token} if isinstance(token, str) else token for token in tokens]
    first = json.loads(rust.pre_tokenizer.__getstate__()) if rust.pre_tokenizer else {}
    return first.get("add_prefix_space", prefix_space) == prefix_space and all(
        token["content"] in added
        and all(getattr(added[token["content"]], flag, value) == value for flag, value in token.items())
        for token in flags
        if isinstance(token, dict)
    )


def turn_end_id(tokenizer: Any, family: Family) -> int | None:
    """The id of the token that ends a turn of the family's chats; None for a family without chats."""
    return None if family.turn_end is None else tokenizer.get_vocab().get(family.turn_end)
