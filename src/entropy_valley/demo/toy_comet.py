"""The toy COMET: a quality estimator of a few hundred thousand parameters, in COMET's own checkpoint layout.

    <folder>/hparams.yaml              what comet.load_from_checkpoint reads first, two folders above …
    <folder>/checkpoints/model.ckpt    … the weights, the hyper-parameters and Lightning's version
    <folder>/encoder/                  tokenizer and configuration of the XLM-R encoder

The encoder's path is stored relative to the folder: a moved folder still loads, and the digest of the checkpoint does
not depend on where it was made. It is a toy: it knows only sentences like those it was trained on.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from entropy_valley import files
from entropy_valley.demo.settings import Estimator
from entropy_valley.scoring.comet_checkpoint import CHECKPOINT, HPARAMS, comet_models

ENCODER = "encoder"
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")  # XLM-R's, in its order: ids 0 to 4


def train_tokenizer(texts: Iterable[str], config: Estimator) -> Any:
    """A tokenizer with XLM-R's special tokens and interface; Chinese characters and punctuation marks stand alone.

    BPE instead of XLM-R's Unigram: it is trained on integer counts, so that the same text gives the same tokenizer.
    """
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import XLMRobertaTokenizerFast

    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.NFKC()
    alone = (pre_tokenizers.Split(Regex(r"\p{Han}"), "isolated"), pre_tokenizers.Punctuation("isolated"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace(), *alone])
    trainer = trainers.BpeTrainer(vocab_size=config.vocabulary, special_tokens=list(SPECIAL), show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[(token, SPECIAL.index(token)) for token in ("<s>", "</s>")],
    )
    return XLMRobertaTokenizerFast(tokenizer_object=tokenizer, model_max_length=config.context)


def new_model(folder: Path, tokenizer: Any, config: Estimator) -> Any:
    """A ``comet.models.RegressionMetric`` with seeded random weights; writes its encoder's files into ``folder``."""
    import torch
    from transformers import XLMRobertaConfig

    tokenizer.save_pretrained(folder / ENCODER)
    XLMRobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=config.width,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        intermediate_size=2 * config.width,
        max_position_embeddings=config.context + 4,  # COMET cuts a sentence at max_position_embeddings - 4 tokens
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        type_vocab_size=1,
        layer_norm_eps=1e-5,
        pad_token_id=SPECIAL.index("<pad>"),
        bos_token_id=SPECIAL.index("<s>"),
        eos_token_id=SPECIAL.index("</s>"),
    ).save_pretrained(folder / ENCODER)
    torch.manual_seed(config.seed)
    with contextlib.chdir(folder):
        return comet_models().RegressionMetric(
            nr_frozen_epochs=0,
            keep_embeddings_frozen=False,
            encoder_model="XLM-RoBERTa",
            pretrained_model=ENCODER,
            pool="avg",
            layer="mix",
            layer_transformation="sparsemax",
            layer_norm=False,
            dropout=0.0,
            hidden_sizes=[3 * config.width, config.width],
            load_pretrained_weights=False,
            local_files_only=True,
        )


def write_checkpoint(model: Any, folder: Path) -> Path:
    """Write ``model`` beside its encoder's files so that ``comet.load_from_checkpoint`` finds both; its path."""
    import pytorch_lightning
    import torch
    import yaml

    hparams = dict(model.hparams)
    files.write_text(folder / HPARAMS, yaml.safe_dump(hparams))
    checkpoint = {
        "state_dict": model.state_dict(),
        "hyper_parameters": hparams,
        "pytorch-lightning_version": pytorch_lightning.__version__,
    }
    buffer = io.BytesIO()  # torch.save writes a file's name into the archive, and so into its digest
    torch.save(checkpoint, buffer)
    with files.atomic(folder / CHECKPOINT) as temporary:
        temporary.write_bytes(buffer.getvalue())
    return folder / CHECKPOINT
