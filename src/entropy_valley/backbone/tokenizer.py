"""Tokenizers: the released one of a checkpoint, or a byte-level BPE trained for an embedded backbone."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from entropy_valley.backbone.families import Family
from entropy_valley.errors import InputError

TOKENIZER_FILES = ("tokenizer.json", "vocab.json", "tokenizer.model")


def load_tokenizer(folder: str | Path, family: Family) -> Any:
    """The checkpoint's own fast tokenizer, never through remote code."""
    import transformers

    folder = Path(folder)
    if not any((folder / file).exists() for file in TOKENIZER_FILES):
        raise InputError(
            folder,
            f"no tokenizer, none of {', '.join(TOKENIZER_FILES)}",
            "Copy the released tokenizer files into this folder.",
        )
    name = "PreTrainedTokenizerFast" if (folder / TOKENIZER_FILES[0]).exists() else family.tokenizer_class
    return getattr(transformers, name).from_pretrained(folder, local_files_only=True)


def train_tokenizer(texts: Iterable[str], vocabulary: int, family: Family) -> Any:
    """A byte-level BPE of at most ``vocabulary`` entries, the family's special tokens first."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    named = (family.pad_token, family.eos_token, family.bos_token, family.mask_token, *family.chat_tokens)
    special = list(dict.fromkeys(token for token in named if token))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=family.eos_token,
        pad_token=family.pad_token,
        bos_token=family.bos_token,
        mask_token=family.mask_token,
        additional_special_tokens=list(family.chat_tokens),
        clean_up_tokenization_spaces=False,
    )
