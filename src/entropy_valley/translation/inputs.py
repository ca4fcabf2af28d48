"""What a job knows without the model's weights: the checkpoint's digests and tokenizer, and the prompts of a test set.

It is read in milliseconds, so that a job with nothing to compute never imports torch.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenizers import Tokenizer

from entropy_valley import files
from entropy_valley.decoding.requests import SHORTEST
from entropy_valley.errors import InputError, SentenceError
from entropy_valley.model.adapters import adapter_digest
from entropy_valley.model.checkpoint import checkpoint_digest, config_arguments
from entropy_valley.model.families import find_family
from entropy_valley.model.families.base import Family
from entropy_valley.model.prompt import BOTH_WAYS, Prompt
from entropy_valley.model.tokenizer import REMEDY, WHOLE, declared_tokens, load_tokenizer

if TYPE_CHECKING:
    from entropy_valley.decoding.requests import Decoded


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
        self.name_or_path = str(path)
        self._tokenizer = Tokenizer.from_file(self.name_or_path)
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
        with files.readable(folder / WHOLE, "tokenizer", REMEDY):
            light = RustTokenizer(files.regular(folder / WHOLE, files.MOST))
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


@dataclass(frozen=True)
class Inputs:
    """The prompt tokens of each sentence, those of an empty source, and the context: the most tokens of a sequence.

    ``file`` and ``names`` tell an error which sentence it is about; ``sources`` are the texts, of which distractors are
    drawn; ``aligned`` has the slots of each reference that a gold alignment ties to its source, None where none is
    given; ``texts`` knows the text of a translation.
    """

    file: object
    names: Sequence[object]
    prompts: Sequence[Sequence[int]]
    sourceless: Sequence[int]
    context: int
    sources: Sequence[str] = ()
    aligned: Sequence[Sequence[int] | None] = ()
    texts: Texts | None = None

    def distractor(self, place: int) -> int:
        """The place of the sentence whose prompt a SIG compares with that at ``place``."""
        return self._distractors[place]

    @functools.cached_property
    def _distractors(self) -> list[int]:
        return distractors(self.sources)

    def anchors(self, place: int) -> Sequence[int]:
        """The slots that are aligned with the source; raise InputError where no alignment is given."""
        slots = self.aligned[place] if self.aligned else None
        if slots is None:
            problem = f"sentence {self.names[place]!r} has no `anchors`, which the order oracle_anchor reveals first"
            raise InputError(self.file, problem, "Give the test set's source a file of `anchors`.")
        return slots

    @property
    def rooms(self) -> list[int]:
        """The slots that the context leaves behind each prompt, at least the shortest canvas's: :meth:`check` says what
        is too long."""
        return [max(SHORTEST, self.context - len(prompt)) for prompt in self.prompts]

    def fits(self, place: int, slots: int) -> bool:
        """Whether a canvas of so many slots behind the prompt at ``place`` is within the context."""
        return len(self.prompts[place]) + slots <= self.context

    def check(self, place: int, slots: int) -> None:
        """Raise SentenceError if a canvas of so many slots behind the prompt at ``place`` exceeds the context."""
        if not self.fits(place, slots):
            prompt = len(self.prompts[place])
            raise SentenceError(
                self.file,
                f"sentence {self.names[place]!r}: prompt {prompt} + canvas {slots} = {prompt + slots} tokens, "
                f"but the backbone's context is {self.context}",
                "Split or drop the sentence, or choose smaller ratios.",
            )

    def room(self, place: int) -> int:
        """The tokens of the context behind the prompt at ``place``; raise SentenceError where there are none."""
        prompt = len(self.prompts[place])
        if prompt >= self.context:
            raise SentenceError(
                self.file,
                f"sentence {self.names[place]!r}: prompt of {prompt} tokens, but the backbone's context is "
                f"{self.context} and must hold the translation too",
                "Split or drop the sentence.",
            )
        return self.context - prompt


def distractors(sources: Sequence[str]) -> list[int]:
    """The place of each source's distractor: one of its length, drawn by its own place; any other source where none has
    that length; itself where all are the same.

    A text without spaces is one word.
    """
    import numpy as np

    words = np.array([len(source.split()) for source in sources])
    _, text = np.unique(np.array(sources), return_inverse=True)
    places = []
    for place, count in enumerate(words.tolist()):
        another = text != text[place]
        near = another & (words >= 4 * count // 5) & (words <= 6 * count // 5)
        candidates = np.flatnonzero(near if near.any() else another).tolist()
        places.append(random.Random(place).choice(candidates) if candidates else place)
    return places


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
