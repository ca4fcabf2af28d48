"""Pre-training of the demo's tiny backbones: one model for several directions, on their train splits only."""

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import dropout

from entropy_valley import files
from entropy_valley.experiment.demo.settings import SHAPE, Pretraining, stock_config
from entropy_valley.model import checkpoint
from entropy_valley.model.decoder import Decoder
from entropy_valley.model.families import Family, find_family
from entropy_valley.model.load import empty_model
from entropy_valley.model.prompt import PLACE, Prompt
from entropy_valley.training.log import reports, require_finite
from entropy_valley.training.loss import Batches, Canvases, Pairs, cross_entropies, fitting_pairs, longest_pair, seed_of
from entropy_valley.training.processes import float32_products
from entropy_valley.training.settings import Loss, warmup_steps

# Our choice, unlike fine-tuning's loss: each masked slot has the same weight. With 1/t a rare canvas with one mask and
# a tiny t dominates its batch, and a model of this size learns to align source and target later.
LOSS = Loss(weight="none", normaliser="masked")
DEV_BATCH = 64


@dataclass(frozen=True)
class PretrainingJob:
    """One pre-training: the params of the rule ``pretrain`` and its paths; ``corpora`` and ``dev`` by direction."""

    spec: Mapping[str, Any]
    corpora: Mapping[str, Path]
    dev: Mapping[str, Path]
    out: Path
    work: Path
    logs: Path
    checkpoint_every: int

    @property
    def seed(self) -> int:
        return self.spec["seed"]

    @functools.cached_property
    def settings(self) -> Pretraining:
        return Pretraining.model_validate({"seed": self.seed, **self.spec["pretraining"]})

    @functools.cached_property
    def data(self) -> dict[str, dict[str, str]]:
        """The digests of its files, by split and direction."""
        return {
            split: {direction: files.file_digest(path) for direction, path in paths.items()}
            for split, paths in (("train", self.corpora), ("dev", self.dev))
        }


def pretrain(job: PretrainingJob) -> None:
    """Train tokenizer and model, resuming from ``job.work``, and write a checkpoint folder to ``job.out``.

    Its ``checkpoint.json`` has the dev cross-entropies. The same job gives the same bytes, even if it was killed and
    resumed.
    """
    dev = _read(job.dev)
    family, tokenizer, model, batches, dropped = _begin(job)
    with float32_products("cpu"):
        _optimise(model, job, batches, family.shifted)
        report = {
            direction: evaluate(job, model.eval(), family, tokenizer, _tokenised(job, {direction: rows}, tokenizer))
            for direction, rows in dev.items()
        }
    with files.atomic_folder(job.out) as folder:
        checkpoint.write_checkpoint(model, family, tokenizer, folder)
        checkpoint.write_manifest(folder, family, dev=report, dropped=dropped, spec=job.spec, data=job.data)


def first_losses(job: PretrainingJob, count: int) -> list[float]:
    """The training losses of the first steps; nothing is written."""
    family, _, model, batches, _ = _begin(job)
    optimizers = _optimizers(model.train(), job.settings)
    with float32_products("cpu"):
        return [_step(job, step, model, optimizers, batches, family.shifted)["loss"] for step in range(count)]


def _begin(job: PretrainingJob) -> tuple[Family, Any, Any, Canvases, int]:
    """Family, tokenizer, model and batches before the first step, and the number of pairs that are too long."""
    family, settings, rows = find_family(job.spec["family"]), job.settings, _read(job.corpora)
    texts = (
        text
        for direction, pairs in rows.items()
        for pair in pairs
        for text in (job.spec["prompts"][direction].replace(PLACE, pair["source"]), pair["target"])
    )
    tokenizer = train_tokenizer(texts, settings.vocabulary, family)
    shape = settings.model_dump(include={*SHAPE}) | {"vocabulary": len(tokenizer)}
    model = new_model(family.name, job.seed, **shape)
    if settings.precision:
        for part in (model, model.lm_head):
            part.forward = torch.autocast("cpu", torch.bfloat16)(part.forward)  # type: ignore[method-assign]
    if rate := settings.dropout:
        for name, module in model.named_modules():
            if name.endswith(("embed_tokens", "o_proj", "down_proj")):
                module.register_forward_hook(lambda part, _, states: dropout(states, rate, part.training))
    pairs = _tokenised(job, rows, tokenizer)
    batches = _batches(job, family, tokenizer, pairs, settings.batch, settings.all_mask_share)
    return family, tokenizer, model, batches, pairs.dropped


def train_tokenizer(texts: Iterable[str], vocabulary: int, family: Family) -> Any:
    """A byte-level BPE of at most ``vocabulary`` entries; the family's special tokens come first."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    eos = family.eos_token or "<|endoftext|>"
    named = (family.pad_token, eos, family.bos_token, family.mask_token, *family.chat_tokens)
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
        eos_token=eos,
        pad_token=family.pad_token,
        bos_token=family.bos_token,
        mask_token=family.mask_token,
        additional_special_tokens=list(family.chat_tokens),
        clean_up_tokenization_spaces=False,
    )


def new_model(family: str, seed: int, **shape: int) -> Decoder:
    """A float32 model of the family with random weights; ``shape``: :data:`SHAPE`. Its head is tied where that of the
    family's release is."""
    torch.manual_seed(seed)
    kind = find_family(family)
    tied = any(release.config.get("tie_word_embeddings") for release in kind.releases)
    return empty_model(kind, {**stock_config(**shape), "tie_word_embeddings": tied}, torch.float32, "cpu")


def _read(paths: Mapping[str, Path]) -> dict[str, list[dict[str, Any]]]:
    return {direction: files.read_jsonl(path, ("source", "target")) for direction, path in paths.items()}


def _tokenised(job: PretrainingJob, rows: Mapping[str, list[dict[str, Any]]], tokenizer: Any) -> Pairs:
    bos = tokenizer.bos_token_id if job.spec["bos"] else None
    limit = longest_pair(job.settings.context, job.settings.eos_padding)
    prompts = {one: Prompt(job.spec["prompts"][one], tokenizer, bos) for one in rows}
    tokens = (
        (prompts[direction].encode(row["source"]), prompts[direction].tokens(row["target"]))
        for direction, part in rows.items()
        for row in part
    )
    return fitting_pairs(tokens, tokenizer.eos_token_id, limit)


def _batches(
    job: PretrainingJob, family: Family, tokenizer: Any, pairs: Pairs, batch: int, all_mask_share: float
) -> Canvases:
    order = Batches(pairs.lengths, batch, job.seed, alike=True)  # similar lengths share attention calls
    loss = LOSS.model_copy(update={"eos_padding": 0 if family.causal else job.settings.eos_padding})
    return Canvases(pairs, order, loss, tokenizer.mask_token_id, job.seed, all_mask_share=all_mask_share)


@torch.inference_mode()
def evaluate(job: PretrainingJob, model: Any, family: Family, tokenizer: Any, pairs: Pairs) -> dict[str, float]:
    """Mean CE (nats per predicted token) on a dev set, laid out as in training.

    ``all_mask``: on all-mask canvases. ``random_t``: on canvases with t ~ U(eps, 1). ``next_token``, for a causal
    family: of the target and its EOS.
    """
    report, shares = {}, {"next_token": 0.0} if family.causal else {"all_mask": 1.0, "random_t": 0.0}
    for name, share in shares.items():
        batches = _batches(job, family, tokenizer, pairs, DEV_BATCH, share)
        losses = [cross_entropies(model, batches[number][0], family.shifted) for number in range(len(batches.order))]
        report[name] = round(torch.cat(losses).mean().item(), 4)
    return report


def _optimise(model: Any, job: PretrainingJob, batches: Canvases, shifted: bool) -> None:
    """Clipped at norm 1, from the last checkpoint in ``job.work``: one file, replaced atomically."""
    steps, optimizers = job.settings.steps, _optimizers(model, job.settings)
    parts = {"model": model}
    for kind, (optimizer, schedule) in optimizers.items():
        parts |= {kind: optimizer, f"schedule of {kind}": schedule}
    path, key, start = job.work / "state.pt", files.digest([job.spec, job.data["train"]]), 0
    saved: dict[str, Any] = torch.load(path, weights_only=True) if path.exists() else {}
    if saved.get("key") == key:  # else of another job
        start = saved["step"]
        for name, part in parts.items():
            part.load_state_dict(saved[name])
    model.train()
    with reports(job.logs, start, steps, "pre-training", every=25) as report:
        for step in range(start, steps):
            scalars = _step(job, step, model, optimizers, batches, shifted)
            require_finite(scalars, step, steps, job.out)
            report(scalars)
            if (step + 1) % job.checkpoint_every == 0 or step + 1 == steps:
                state = {"key": key, "step": step + 1, **{name: part.state_dict() for name, part in parts.items()}}
                with files.saving(path), files.atomic(path) as temporary:
                    torch.save(state, temporary)


def _optimizers(model: Any, settings: Pretraining) -> dict[str, tuple[Any, Any]]:
    """Each optimizer with its schedule: warm-up, then cosine decay."""
    from transformers import get_cosine_schedule_with_warmup

    matrices: list[torch.nn.Parameter] = []
    rest: list[torch.nn.Parameter] = []
    for name, parameter in model.named_parameters():
        is_matrix = ".layers." in name and parameter.ndim == 2
        (matrices if is_matrix and settings.optimizer == "muon" else rest).append(parameter)
    rate, decay = settings.learning_rate, settings.weight_decay
    optimizers: dict[str, torch.optim.Optimizer] = {}
    optimizers["adamw"] = torch.optim.AdamW(rest, rate, (0.9, 0.95), weight_decay=decay, fused=True)
    if matrices:
        optimizers["muon"] = torch.optim.Muon(matrices, rate, decay, adjust_lr_fn="match_rms_adamw")
    warmup = warmup_steps(settings.warmup, settings.steps)
    return {
        name: (optimizer, get_cosine_schedule_with_warmup(optimizer, warmup, settings.steps))
        for name, optimizer in optimizers.items()
    }


def _step(
    job: PretrainingJob,
    step: int,
    model: Any,
    optimizers: Mapping[str, tuple[Any, Any]],
    batches: Canvases,
    shifted: bool,
) -> dict[str, float]:
    """One optimiser step on its batch; its scalars for :func:`reports`."""
    (batch,) = batches[step]
    torch.manual_seed(seed_of(job.seed, "dropout", step))
    losses, rate = cross_entropies(model, batch, shifted), optimizers["adamw"][1].get_last_lr()[0]
    loss = losses @ batch.weights
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for optimizer, schedule in optimizers.values():
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    return {
        "loss": loss.item(),
        "cross_entropy": losses.mean().item(),
        "learning_rate": rate,
        "gradient_norm": norm.item(),
        "tokens": batch.packed.input_ids.numel(),
    }
