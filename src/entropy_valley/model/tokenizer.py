"""Tokenizers: the released one of a checkpoint, or a byte-level BPE trained for a backbone of the demo."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.model.checkpoint import TOKENIZER
from entropy_valley.model.families.base import Family
from entropy_valley.settings import read_object

WHOLE = "tokenizer.json"
# Files beside it that declare more tokens; transformers adds these to the tokenizer.
DECLARATIONS = ("tokenizer_config.json", "special_tokens_map.json")
REMEDY = "Copy the tokenizer files of the checkpoint again, or make the checkpoint again."


def load_tokenizer(folder: str | Path, family: Family) -> Any:
    """The checkpoint's own fast tokenizer, without remote code.

    Raises InputError if there is no ``tokenizer.json`` and not all files of the family's tokenizer class, and for files
    of which no tokenizer can be made.
    """
    import transformers

    folder = Path(folder)
    for pattern in (*TOKENIZER, "config.json", "chat_template*"):  # transformers reads these
        for path in folder.glob(pattern):
            files.regular(path, files.MOST)
    if (folder / WHOLE).exists():
        with files.readable(folder / WHOLE, "tokenizer", REMEDY):
            return transformers.PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)
    released = family.tokenizer_class and getattr(transformers, family.tokenizer_class)
    parts = [file for file in released.vocab_files_names.values() if file != WHOLE] if released else []
    if not parts or not all((folder / file).exists() for file in parts):
        wanted = " and no ".join([WHOLE, " + ".join(parts)] if parts else [WHOLE])
        raise InputError(folder, f"no tokenizer: no {wanted}", "Copy the released tokenizer files into this folder.")
    with files.readable(folder / parts[0], "tokenizer", REMEDY):
        return released.from_pretrained(folder, local_files_only=True)


def declared_tokens(folder: Path) -> list[str | dict[str, Any]]:
    """The tokens declared beside ``tokenizer.json``: strings, or mappings with ``content`` and flags."""
    declarations = [read_object(folder / name) for name in DECLARATIONS if (folder / name).exists()]
    tokens = [token for one in declarations for key, token in one.items() if key.endswith("_token")]
    for one in declarations:
        tokens += [*(one.get("additional_special_tokens") or ()), *one.get("added_tokens_decoder", {}).values()]
    return [token for token in tokens if isinstance(token, str | dict)]  # `add_bos_token` is a switch


def train_tokenizer(texts: Iterable[str], vocabulary: int, family: Family) -> Any:
    """A byte-level BPE of at most ``vocabulary`` entries; the family's special tokens come first."""
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
