"""Forward and backward of a fine-tuning's global batch: packed to a token budget, and padded in random fours.

Both see the same pairs of WMT22's lengths under the same masks, LoRA on the same random weights, and add up the same
loss. Prints that loss and gradients agree, then real tokens (no padding) per second, medians over alternated rounds,
and the peak memory above the weights; writes the table as CSV.

    python benchmarks/training.py
    python benchmarks/training.py --shape 8b --device cuda --batch 128 --rank 64
"""

import argparse
import functools
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from machine import arguments, describe, peak_memory, seconds, write
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence
from workload import LENGTHS, LLADA, SHAPES, TEMPLATE, random_model, read_lengths

from entropy_valley.model.load import stock_model
from entropy_valley.training.adapter import attach_lora, trainable
from entropy_valley.training.loss import Batches, Canvases, MicroBatch, Pairs, Passes, cross_entropies
from entropy_valley.training.processes import float32_products
from entropy_valley.training.settings import Lora, Loss

FOUR = 4  # sequences of a padded micro-batch, as in the paper
SETTINGS = ("shape", "device", "rank", "threads", "batch", "micro_tokens", "rounds")  # what the table repeats
RATIO = 0.8  # target tokens / source tokens, English to Chinese


@dataclass(frozen=True)
class Variant:
    """One way to run a batch."""

    padded: bool
    spared: bool  # with activation checkpointing

    def __str__(self) -> str:
        layout = f"padded, {FOUR} at random" if self.padded else "packed"
        return layout + ", checkpointing" * self.spared


VARIANTS = [Variant(padded, spared) for spared in (False, True) for padded in (True, False)]


def adapted_model(options: argparse.Namespace) -> Any:
    """A random model, and adapters that change something already."""
    settings = Lora(rank=options.rank, alpha=2 * options.rank, dropout=0.0)
    model = random_model(SHAPES[options.shape], options.device)
    adapted = attach_lora(model, LLADA, settings, options.seed).train()
    for parameter in trainable(adapted):
        torch.nn.init.normal_(parameter, std=0.02)
    return adapted


def random_pairs(vocabulary: int, seed: int) -> Pairs:
    """Pairs of random tokens and real lengths; the last id is left for the mask, the one before it for EOS."""
    sizes = torch.tensor([(source + TEMPLATE, round(RATIO * source) + 1) for source in read_lengths(LENGTHS)])
    lengths = sizes.sum(1)
    random = torch.Generator().manual_seed(seed)
    tokens = torch.randint(vocabulary - 2, (int(lengths.sum()),), generator=random, dtype=torch.int32)
    tokens[lengths.cumsum(0) - 1] = vocabulary - 2
    return Pairs(tokens, lengths.cumsum(0) - lengths, sizes[:, 0], lengths, 0)


def batches(options: argparse.Namespace, passes: Passes) -> Canvases:
    vocabulary = SHAPES[options.shape].vocabulary
    pairs = random_pairs(vocabulary, options.seed)
    order = Batches(pairs.lengths, options.batch, options.seed)
    return Canvases(pairs, order, Loss(), vocabulary - 1, options.seed, passes)


@dataclass(frozen=True)
class Padded:
    """A right-padded micro-batch: ids, which of them are known, the labels and their weights; (sequences, longest)."""

    ids: torch.Tensor
    known: torch.Tensor
    labels: torch.Tensor
    weights: torch.Tensor

    def loss(self, model: Any) -> torch.Tensor:
        """Its share of the batch's loss by stock attention under a mask, the logits of all rows."""
        mask = self.known[:, None, None].expand(-1, 1, self.ids.shape[1], -1)
        logits = model(input_ids=self.ids, attention_mask=mask, use_cache=False).logits
        predicted = self.weights > 0
        losses = cross_entropy(logits[predicted].float(), self.labels[predicted], reduction="none")
        return losses @ self.weights[predicted]


def padded_in_fours(batch: MicroBatch, seed: int) -> list[Padded]:
    """The sequences of a whole batch in random order, four by four."""
    lengths = list(batch.packed.lengths)
    labels = torch.zeros_like(batch.packed.input_ids[0]).index_put((batch.rows,), batch.labels)
    weights = torch.zeros(len(labels), device=labels.device).index_put((batch.rows,), batch.weights)
    ones = torch.ones_like(labels, dtype=torch.bool)
    columns = [column.split(lengths) for column in (batch.packed.input_ids[0], ones, labels, weights)]
    order = torch.randperm(len(lengths), generator=torch.Generator().manual_seed(seed))
    return [
        Padded(*(pad_sequence([column[one] for one in four], batch_first=True) for column in columns))
        for four in order.split(FOUR)
    ]


class Bench:
    """The adapted model and its batches; runs any variant on the batch of any step."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self.adapted = adapted_model(options)
        self._stock = stock_model(LLADA, self.adapted, "sdpa").train()
        self._whole = batches(options, Passes())
        self._cut = batches(options, Passes(options.micro_tokens))

    def shares(self, variant: Variant, step: int) -> Iterator[torch.Tensor]:
        """The loss of each micro-batch, one after the other."""
        device, model = self._options.device, self.adapted
        if variant.padded:
            for part in padded_in_fours(self._whole[step][0].to(device), step):
                yield part.loss(self._stock)
        else:
            for part in (part.to(device) for part in self._cut[step]):
                yield cross_entropies(model, part, shifted=False) @ part.weights

    def run(self, variant: Variant, step: int) -> float:
        """Forward and backward: the loss; gradients are left in the adapters."""
        self.adapted.recompute = variant.spared
        if variant.spared:
            self._stock.gradient_checkpointing_enable({"use_reentrant": False})
        else:
            self._stock.gradient_checkpointing_disable()
        self.adapted.zero_grad(set_to_none=True)
        loss = 0.0
        for share in self.shares(variant, step):
            share.backward()
            loss += share.detach()
        return float(loss)

    def tokens(self, step: int) -> int:
        return int(self._whole.pairs.lengths[self._whole.order[step]].sum())

    def gradients(self) -> torch.Tensor:
        return torch.cat([parameter.grad.flatten() for parameter in trainable(self.adapted)])


def print_agreement(bench: Bench) -> None:
    """How far loss and gradients of each variant are from the padded ones; also warms up."""
    expected = bench.run(VARIANTS[0], 0)
    wanted = bench.gradients()
    print(f"loss {expected:.6f}, largest gradient {wanted.abs().max():.3e} ({VARIANTS[0]})")
    for variant in VARIANTS[1:]:
        loss = bench.run(variant, 0)
        apart = (bench.gradients() - wanted).abs().max()
        print(f"  differences at most {abs(loss - expected):.1e} and {apart:.1e} ({variant})", flush=True)


def times(bench: Bench, options: argparse.Namespace) -> dict[Variant, list[float]]:
    """The seconds of each variant by round; all run the same batch in a round."""
    found = {variant: [] for variant in VARIANTS}
    for step in range(1, options.rounds + 1):
        for variant in VARIANTS:
            spent, _ = seconds(functools.partial(bench.run, variant, step), options.device)
            found[variant].append(spent)
    return found


def peak_of(variant: Variant) -> float:
    """Bytes above the weights in the first step of a process of its own (Linux)."""
    command = [sys.executable, __file__, *sys.argv[1:], "--peak-of", str(VARIANTS.index(variant))]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def table(bench: Bench, options: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each variant; ``speed`` is the median over rounds of its tokens/s over those of the padded one."""
    seconds = times(bench, options)
    tokens, rows = [bench.tokens(step) for step in range(1, options.rounds + 1)], []
    for variant, mine in seconds.items():
        ratios = [base / own for base, own in zip(seconds[VARIANTS[0]], mine, strict=True)]
        rates = [count / own for count, own in zip(tokens, mine, strict=True)]
        rows.append(
            {
                "variant": str(variant),
                "tokens_per_second": round(statistics.median(rates), 1),
                "speed": round(statistics.median(ratios), 3),
                "speed_min": round(min(ratios), 3),
                "speed_max": round(max(ratios), 3),
                "peak_mib": round(peak_of(variant) / 2**20),
            }
        )
    return rows


def parsed() -> argparse.Namespace:
    parser = arguments(__doc__)
    parser.add_argument("--shape", choices=SHAPES, default="body-heavy")
    parser.add_argument("--rank", type=int, default=8, help="of the adapters")
    parser.add_argument("--batch", type=int, default=32, help="sequences of the global batch")
    parser.add_argument("--micro-tokens", type=int, default=8192, help="most tokens of a packed pass")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--peak-of", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    options = parsed()
    os.environ.setdefault("DS_ACCELERATOR", options.device)  # PEFT imports DeepSpeed, which would look for one
    torch.set_num_threads(options.threads)
    with float32_products(options.device):
        if options.peak_of is not None:
            bench = Bench(options)
            print(peak_memory(lambda: bench.run(VARIANTS[options.peak_of], 0), options.device))
            return
        print(f"{describe(options.device)}\n")
        bench = Bench(options)
        print_agreement(bench)
        rows = table(bench, options)
    for row in rows:
        print(
            f"{row['variant']:32} {row['tokens_per_second']:9.1f} tokens/s  × {row['speed']:.2f}"
            f" ({row['speed_min']:.2f}–{row['speed_max']:.2f})  {row['peak_mib']:6} MiB"
        )
    settings = {name: getattr(options, name) for name in SETTINGS}
    write(pd.DataFrame(rows).assign(**settings), options.out / "training")


if __name__ == "__main__":
    main()
