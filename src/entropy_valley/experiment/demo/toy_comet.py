"""The demo's COMET: a tiny model in COMET's real format, trained on corrupted references."""

from __future__ import annotations

import contextlib
import io
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.experiment.demo.settings import Estimator
from entropy_valley.progress import progress
from entropy_valley.scoring.comet import batch_scores
from entropy_valley.scoring.comet_checkpoint import CHECKPOINT, HPARAMS, MANIFEST, comet_models
from entropy_valley.training.log import require_finite

if TYPE_CHECKING:
    import torch

# --- The model: a few hundred thousand parameters, in COMET's own checkpoint layout.
#
# <folder>/hparams.yaml              what comet.load_from_checkpoint reads first, two folders above …
# <folder>/checkpoints/model.ckpt    … the weights, the hyper-parameters and Lightning's version
# <folder>/encoder/                  tokenizer and configuration of the XLM-R encoder
#
# The encoder's path is stored relative to the folder: a moved folder still loads, and the digest of the checkpoint
# does not depend on where it was made. It is a toy: it knows only sentences like those it was trained on.

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


def new_model(folder: Path, tokenizer: Any, config: Estimator, **encoder: Any) -> Any:
    """A ``comet.models.RegressionMetric`` with seeded random weights; writes its encoder's files into ``folder``.

    ``encoder``: fields of the encoder's config that are not the toy's.
    """
    import torch
    from transformers import XLMRobertaConfig

    tokenizer.save_pretrained(folder / ENCODER)
    shape = {"vocab_size": len(tokenizer), "intermediate_size": 2 * config.width, **encoder}
    XLMRobertaConfig(
        **shape,
        hidden_size=config.width,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        max_position_embeddings=config.context + 4,  # COMET cuts a sentence at max_position_embeddings - 4 tokens
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        type_vocab_size=1,
        layer_norm_eps=1e-5,
    ).save_pretrained(folder / ENCODER)
    torch.manual_seed(config.seed)
    with contextlib.chdir(folder):
        return comet_models().RegressionMetric(
            nr_frozen_epochs=0,
            keep_embeddings_frozen=False,
            pretrained_model=ENCODER,
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


# --- References corrupted by a known amount.
#
# A sentence is a list of units: words and punctuation marks, in Chinese single characters. Each unit gets at most one
# operation, so the number of wrong units is exact, and quality is a function of it.

KINDS = ("drop", "repeat", "insert", "replace", "swap")
MIXED = "mixed"
LOWEST, HIGHEST = 0.30, 0.95  # about COMET-22's scores of an unrelated and of a perfect translation
DISPLACED = 0.5  # edits of a correct word in a wrong position

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_UNIT = re.compile(rf"\s*(?:[{_HAN}]|(?:[#%'’_-]|(?![{_HAN}])\w)+|[^\w\s])")
_SPACED = re.compile(rf"(?![{_HAN}])[\w#]")


def units(text: str) -> list[str]:
    """Words, punctuation marks and Chinese characters of ``text``, each with the whitespace before it.

    The first word gets a leading space, so that units can be exchanged: strip the text that they join to.
    """
    parts = _UNIT.findall(text)
    if parts and _SPACED.match(parts[0]):
        parts[0] = " " + parts[0]
    return parts


def corrupt(
    reference: Sequence[str], operations: Mapping[int, str], vocabulary: Sequence[str], generator: random.Random
) -> tuple[list[str], float]:
    """Apply one of :data:`KINDS` at each position of ``operations``; returns the new units and the number of edits.

    A missing, extra or wrong unit is one edit, a displaced one :data:`DISPLACED`.
    Units to swap are rotated by one. Inserted and replacing units are drawn from ``vocabulary``.
    """
    swapped = sorted(position for position, kind in operations.items() if kind == "swap")
    moved = dict(zip(swapped, swapped[1:] + swapped[:1], strict=True))
    result: list[str] = []
    edits = 0.0
    for position, unit in enumerate(reference):
        kind, new = operations.get(position), [unit]
        if kind == "drop":
            new = []
        elif kind == "repeat":
            new = [unit, unit]
        elif kind == "insert":
            new = [unit, generator.choice(vocabulary)]
        elif kind == "replace":
            new = [generator.choice(vocabulary)]
        elif kind == "swap":
            new = [reference[moved[position]]]
        if [part.strip() for part in new] != [unit.strip()]:
            edits += DISPLACED if kind == "swap" else 1.0
        result += new
    return result, edits


def corrupt_at_random(
    reference: str, kind: str, vocabulary: Sequence[str], generator: random.Random
) -> tuple[str, float]:
    """``reference``, corrupted in one way, or in ``mixed`` ways, at a random share of its units; and its quality: from
    HIGHEST without edits, linearly down to LOWEST if every unit is wrong.

    The share is the square of a uniform number, so nearly correct sentences are frequent, as in translations. In half
    of the cases the corrupted units are neighbours, as in a translation that stops early; else they are scattered.
    """
    parts = units(reference)
    fewest = 2 if kind == "swap" else 1
    amount = min(len(parts), max(fewest, round(generator.random() ** 2 * len(parts))))
    if generator.random() < 0.5:
        start = generator.randint(0, len(parts) - amount)
        positions = list(range(start, start + amount))
    else:
        positions = generator.sample(range(len(parts)), amount)
    operations = {position: generator.choice(KINDS) if kind == MIXED else kind for position in positions}
    corrupted, edits = corrupt(parts, operations, vocabulary, generator)
    # Divided by the length of the longer sentence, so that a missing and an extra unit have the same weight.
    wrong = min(1.0, edits / max(len(parts), len(corrupted), 1))
    return "".join(corrupted).strip(), HIGHEST - (HIGHEST - LOWEST) * wrong


# --- Training on corrupted references, and the check that it must pass before it scores anything.

GATED = ("drop", "repeat", "replace")
HELD_OUT = 300
TOKENIZER_PAIRS = 20_000
Corpora = Mapping[str, Sequence[Mapping[str, str]]]  # rows ``{source, target}`` by direction
_PERFECT = 0.12  # share of references left as they are
_SHUFFLED_KINDS = (*KINDS, MIXED, MIXED)
_SCORING_BATCH = 64


def make(spec: Mapping[str, Any], train: Sequence[str], dev: Sequence[str], folder: Path) -> None:
    """Train the toy COMET and write it to ``folder``.

    ``spec``: the params of the rule ``train_comet``. ``train`` and ``dev``: paths of pairs, each in its direction's
    folder. Raises InputError, and writes nothing, if ρ is below the minimum for one of the :data:`GATED` kinds.
    """
    config = Estimator.model_validate({key: value for key, value in spec.items() if key != "revision"})

    import torch

    corpora, held_out = _read(train), _read(dev)
    torch.set_num_threads(1)  # one thread gives one result, on any number of cores
    with files.atomic_folder(folder) as new:  # nothing is at its final path before it has passed the check
        pairs = draw_pairs(corpora, config.steps * config.pairs, config.seed)
        texts = (text for pair in pairs[:TOKENIZER_PAIRS] for text in (pair.source, pair.target))
        model = new_model(new, train_tokenizer(texts, config), config)
        fit(model, examples(pairs, config), config)
        correlations = evaluate(model, held_out, config.seed + 2)
        least = config.minimum_spearman
        weak = {kind: round(rho, 3) for kind in GATED if not (rho := correlations[kind]) >= least}  # also NaN
        if weak:
            problem = f"Spearman correlation with the true corruption below {least} on held-out sentences: {weak}"
            remedy = "Raise scoring.comet.training.steps, or give more training sentences."
            raise InputError("toy COMET", problem, remedy)
        digest = files.file_digest(write_checkpoint(model, new))
        files.write_json(new / MANIFEST, {"digest": digest, "spearman": correlations})


def _read(paths: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """The rows of each direction, the name of the folder that its pairs are in."""
    return {Path(path).absolute().parent.name: files.read_jsonl(path, ("source", "target")) for path in paths}


class ReferencePair(NamedTuple):
    """A source, its reference, and the direction they belong to."""

    direction: str
    source: str
    target: str


class Batch(NamedTuple):
    """Sentence pairs; then the corrupted copies of each reference, pair by pair, and the quality of each."""

    pairs: list[ReferencePair]
    hypotheses: list[str]
    qualities: list[float]


def draw_pairs(corpora: Corpora, count: int, seed: int) -> list[ReferencePair]:
    """``count`` pairs in equal shares of the directions (rows ``{source, target}``), drawn with replacement."""
    generator = random.Random(seed)
    share = -(-count // len(corpora))
    drawn = []
    for direction, rows in corpora.items():
        drawn += [ReferencePair(direction, row["source"], row["target"]) for row in generator.choices(rows, k=share)]
    return generator.sample(drawn, count)


def examples(pairs: Sequence[ReferencePair], config: Estimator) -> list[Batch]:
    """Batches of references of similar length (less padding), in random order, a function of the seed."""
    generator = random.Random(config.seed + 1)
    vocabulary: dict[str, list[str]] = defaultdict(list)  # of each direction's references, units as often as they occur
    for pair in pairs:
        vocabulary[pair.direction] += units(pair.target)
    ordered = sorted(pairs, key=lambda pair: len(pair.target.encode()))
    batches = [Batch(ordered[start : start + config.pairs], [], []) for start in range(0, len(ordered), config.pairs)]
    generator.shuffle(batches)
    for batch in batches:
        for pair in batch.pairs:
            for _ in range(config.corruptions):
                text, quality = pair.target, HIGHEST
                if generator.random() >= _PERFECT:
                    kind = generator.choice(_SHUFFLED_KINDS)
                    text, quality = corrupt_at_random(pair.target, kind, vocabulary[pair.direction], generator)
                batch.hypotheses.append(text)
                batch.qualities.append(quality)
    return batches


def fit(model: Any, batches: Sequence[Batch], config: Estimator) -> None:
    """Fit ``model`` to the qualities by mean squared error: AdamW, warm-up, half a cosine; one batch a step."""
    import torch
    from transformers import get_cosine_schedule_with_warmup

    with torch.no_grad():  # start from an average quality instead of zero
        model.estimator.ff[-1].bias.fill_((LOWEST + HIGHEST) / 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.learning_rate)
    schedule = get_cosine_schedule_with_warmup(optimizer, config.warmup, len(batches))
    model.train()
    bar = progress(batches, description="toy COMET", unit="step")
    for step, batch in enumerate(bar):
        optimizer.zero_grad()
        loss = _loss(model, batch)
        require_finite({"loss": loss.item()}, step, len(batches), "toy COMET")
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        bar.set_postfix(rmse=f"{loss.item() ** 0.5:.3f}", refresh=False)
    model.eval()


def evaluate(model: Any, corpora: Corpora, seed: int) -> dict[str, float]:
    """Spearman's ρ of score and true quality on corrupted held-out references of all directions, for every kind of
    corruption."""
    import pandas as pd
    from scipy.stats import spearmanr

    generator = random.Random(seed)
    rows: list[tuple[str, float, float]] = []
    for held_out in corpora.values():
        pairs = [(row["source"], row["target"]) for row in held_out[:HELD_OUT]]
        vocabulary = [unit for _, target in pairs for unit in units(target)]
        for kind in (*KINDS, MIXED):
            segments, qualities = [], []
            for source, target in pairs:
                text, quality = corrupt_at_random(target, kind, vocabulary, generator)
                segments.append((source, text, target))
                qualities.append(quality)
            scores: list[float] = []
            for start in range(0, len(segments), _SCORING_BATCH):
                scores += batch_scores(model, segments[start : start + _SCORING_BATCH])
            rows += [(kind, *both) for both in zip(qualities, scores, strict=True)]
    scored = pd.DataFrame(rows, columns=["kind", "quality", "score"])
    # NaN if one side is constant
    return {str(kind): float(spearmanr(part.quality, part.score).statistic) for kind, part in scored.groupby("kind")}


def _loss(model: Any, batch: Batch) -> torch.Tensor:
    """Mean squared error; each source and reference is encoded once for all its hypotheses."""
    import torch

    pairs, copies = len(batch.pairs), len(batch.hypotheses) // len(batch.pairs)
    sources, references = [pair.source for pair in batch.pairs], [pair.target for pair in batch.pairs]
    inputs = model.encoder.prepare_sample(sources + references + batch.hypotheses)
    embedded = model.get_sentence_embedding(inputs["input_ids"], inputs["attention_mask"])
    source, reference, hypothesis = embedded.split([pairs, pairs, len(batch.hypotheses)])
    score = model.estimate(
        source.repeat_interleave(copies, 0), hypothesis, reference.repeat_interleave(copies, 0)
    ).score
    return torch.nn.functional.mse_loss(score, torch.tensor(batch.qualities))
