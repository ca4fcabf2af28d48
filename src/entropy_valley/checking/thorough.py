"""`entropy-valley check --thorough`: on a borrowed GPU, is everything computed correctly, and how fast?

The first step has the checks of `entropy-valley check`, on whole models with random weights in a released shape; the
others measure, or need what no config has. Each step runs in a process of its own: if one fails, the others still run.
What it finds are lines, and at the end they are one Markdown table.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib.util
import multiprocessing
import os
import platform
import random
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")  # before transformers is imported

import torch
import transformers

from entropy_valley import Translator, checking, files, machine, released, tiny
from entropy_valley.checking import computations, peers
from entropy_valley.checking.checks import FAILED, MEASURED, OK, SKIPPED, SLOW, Line, SkippedError, ending
from entropy_valley.checking.subject import BYTES, Subject
from entropy_valley.decoding.canvas import SHORTEST, Canvas, Ledger
from entropy_valley.decoding.engine import Engine
from entropy_valley.decoding.requests import Denoising, Probe
from entropy_valley.decoding.runner import Runner
from entropy_valley.demo import shipped
from entropy_valley.demo.pretraining import train_tokenizer
from entropy_valley.errors import InputError
from entropy_valley.lengths import Sentence, make_method
from entropy_valley.lengths.ev import mean_entropy, repeats
from entropy_valley.model.adapters import WEIGHTS
from entropy_valley.model.checkpoint import write_checkpoint
from entropy_valley.model.families import find_family
from entropy_valley.model.load import Backbone, require_device
from entropy_valley.model.prompt import BOTH_WAYS, PREFIX
from entropy_valley.training import deepspeed, sft
from entropy_valley.training.adapter import attach_lora, trainable
from entropy_valley.training.loss import Batches, Canvases, Pairs, Passes
from entropy_valley.training.settings import AUTO, SAVED, Lora, Loss
from entropy_valley.translation import latency
from entropy_valley.translation.job import TOKENS
from entropy_valley.translation.pipeline import Inputs, Pipeline

LENGTHS, TEMPLATE = (5, 8, 11, 13, 16, 19, 22, 27, 32, 44), 12  # tokens of WMT22's En sources, by tenths; of the prompt
RATIOS = (0.70, 0.75, 0.80, 0.85, 0.90)  # the paper's
OFFSETS, PROBED = range(-4, 5), 200  # slots from the reference's length; pairs of a test set
TIMES_FLOOR = 3  # a GPU is slow beyond so many times the time of the matrix products
TRAINED = 20  # steps of a training that is killed
# Sentences to decode, and T; pairs of a training step; canvases for peers.
LOADS = {
    "cpu": {"sentences": 3, "steps": 4, "batch": 8, "peers": 12},
    "cuda": {"sentences": 512, "steps": 32, "batch": 128, "peers": 120},
}


@dataclass(frozen=True)
class Hour:
    """What all steps know: the device, the shape of the model, a folder for their files, pairs for ``probes``, and the
    checkouts of ``peers``."""

    device: str
    shape: str
    folder: Path
    testset: Path | None = None
    direction: str = "en-zh"
    checkouts: Mapping[str, Path] = dataclasses.field(default_factory=dict)

    @property
    def load(self) -> dict[str, int]:
        return LOADS[self.device]

    @property
    def described(self) -> dict[str, Any]:
        """The backbone as :class:`Subject` has it; the tiny one is LLaDA-tiny, which comes with the package."""
        family = checking.SHAPES[self.shape]
        if self.shape == "tiny":
            return {"family": family, "folder": str(shipped.CHECKPOINT), "arguments": None}
        arguments = find_family(family).releases[0].config
        return {"family": family, "folder": os.devnull, "arguments": arguments}

    @property
    def subject(self) -> Subject:
        """What the checks of `entropy-valley check` get: a config with this backbone alone."""
        precision, rank = "bfloat16" if self.device == "cuda" else "float32", 4 if self.shape == "tiny" else 64
        lora = {"rank": rank, "alpha": 2 * rank, "dropout": 0.05}
        training: dict[str, Any] = {"precision": precision, "micro_tokens": AUTO, "activation_checkpointing": AUTO}
        training |= {"lora": lora, "global_batch": self.load["batch"], "max_tokens": 1024}
        backbones = {self.shape: self.described}
        return Subject(self.device, precision=precision, backbones=backbones, training=training, thorough=True)

    def backbone(self) -> Backbone:
        return computations.random_backbone(self.described, self.subject)

    def engines(self) -> Iterator[tuple[str, Engine]]:
        """With exact and with prefix attention: in padded passes, as the jobs on GPUs run them, and in others."""
        backbone, fill = self.backbone(), TOKENS[self.device]
        for name, attention in (("exact", BOTH_WAYS), ("prefix", PREFIX)):
            ours = dataclasses.replace(backbone, attention=attention)
            yield f"{name}, padded", Engine(ours, fill=fill)
            yield f"{name}, padded, compiled", Engine(ours, fill=fill, compile_layers=True)
            yield f"{name}, not padded", Engine(ours)

    def timed(self, name: str, spent: float, work: float, shown: Callable[[float], str]) -> Line:
        """A line on ``spent`` seconds, beside what the products' ``work`` alone would take; judged on a GPU only."""
        floor = work / computations.rate(self.subject)
        state = MEASURED if self.device == "cpu" else OK if spent < TIMES_FLOOR * floor else SLOW
        return Line(name, state, f"{shown(spent)}, × {spent / floor:.1f}", expected=f"products alone {shown(floor)}")


# --- The steps.


def check(hour: Hour) -> Iterator[Line]:
    """All lines of `entropy-valley check` for this shape."""
    return checking.everything(hour.subject, missing=SKIPPED)


def decoding(hour: Hour) -> Iterator[Line]:
    """Seconds a sentence by EV, on sentences as long as those of WMT22."""
    count, draw = hour.load["sentences"], random.Random(1)
    sentences = {place: Sentence(LENGTHS[place % len(LENGTHS)]) for place in range(count)}
    prompts = [[draw.randrange(20, 280) for _ in range(one.source_tokens + TEMPLATE)] for one in sentences.values()]
    inputs, method = Inputs("prompts", range(count), prompts, (), 4096), make_method("ev", {"ratios": RATIOS})
    denoising, size = Denoising.named("med", hour.load["steps"], "llada"), computations.size_of(hour.described)
    few = {place: sentences[place] for place in range(min(count, len(LENGTHS)))}
    for name, engine in hour.engines():
        list(Pipeline.of(engine, inputs).translate(method, few, denoising))  # compiles what is compiled
        engine.ledger = Ledger()
        translations = Pipeline.of(engine, inputs).translate(method, sentences, denoising)
        spent = latency.seconds(partial(list, translations), hour.device)
        work = size.pass_work(engine.ledger.tokens, engine.ledger.rows)
        yield hour.timed(f"decoding, {name}", spent, work, lambda seconds: f"{seconds / count:.4f} s a sentence")


def training(hour: Hour) -> Iterator[Line]:
    """A step of a fine-tuning, without DeepSpeed: its passes, forward and backward, and AdamW."""
    subject, on_gpu, batch = hour.subject, hour.device == "cuda", hour.load["batch"]
    canvases = computations.drawn(2 * batch)
    free = torch.cuda.mem_get_info()[0] if on_gpu else None
    plan = computations.pass_plan(hour.described, subject, free, longest=120)
    backbone = hour.backbone()
    attach_lora(backbone.model, backbone.family, Lora(**subject.training["lora"]), 1)
    backbone.model.recompute = plan.activation_checkpointing
    objective = deepspeed.Objective(backbone.model, backbone.shifted).train()
    optimizer, pairs = torch.optim.AdamW(trainable(backbone.model)), as_pairs(canvases, backbone.eos_id)
    order = Batches(pairs.lengths, batch, 1)
    parts = Canvases(pairs, order, Loss(), backbone.mask_id, 1, Passes(plan.micro_tokens), prefix=backbone.prefix)

    def step(number: int) -> None:
        for part in parts[number]:
            objective(part.to(hour.device))[0].backward()
        optimizer.step()
        optimizer.zero_grad()

    step(0)
    spent, tokens = latency.seconds(partial(step, 1), hour.device), int(pairs.lengths[order[1]].sum())
    rows = sum(len(part.rows) for part in parts[1])
    work = computations.size_of(hour.described).step_work(tokens, rows, plan.activation_checkpointing)
    yield hour.timed(f"training, {batch} pairs", spent, work, lambda seconds: f"{tokens / seconds:,.0f} tokens/s")
    if on_gpu and (most := plan.expected):
        held = torch.cuda.max_memory_allocated()
        name, state = f"memory, {plan.micro_tokens} tokens a pass", OK if held <= most else FAILED
        yield Line(name, state, f"{machine.amount(held)} ({held} bytes)", expected=f"at most {most} bytes")


def as_pairs(canvases: Sequence[Canvas], eos: int) -> Pairs:
    """A corpus of these prompts, each with a target of a canvas's length."""
    tokens = [token for one in canvases for token in (*one.prompt, *range(20, 19 + one.length), eos)]
    prompts = torch.tensor([len(one.prompt) for one in canvases])
    lengths = prompts + torch.tensor([one.length for one in canvases])
    return Pairs(torch.tensor(tokens, dtype=torch.int32), lengths.cumsum(0) - lengths, prompts, lengths, 0)


def resuming(hour: Hour) -> Iterator[Line]:
    """A fine-tuning of this shape as jobs do it, by DeepSpeed: whole; and again, killed at a checkpoint and resumed."""
    if not importlib.util.find_spec("deepspeed"):
        raise ModuleNotFoundError(name="deepspeed")
    subject, size = hour.subject, computations.size_of(hour.described)
    needed = size.parameters * BYTES[subject.precision] + 2 * SAVED * size.adapter(subject.training["lora"]["rank"])
    if needed > (free := machine.free(hour.folder)):
        problem = (
            f"weights and checkpoints of a training need {machine.amount(needed)}, {machine.amount(free)} are free"
        )
        raise InputError(hour.folder, problem, "Set TMPDIR to a folder of a larger disk.")
    whole, killed = _finetuning(hour, "whole", TRAINED), _finetuning(hour, "killed", TRAINED // 4)
    processes: list[tuple[Callable[..., None], tuple[Any, ...], int]] = [(_write_checkpoint, (hour, whole.backbone), 0)]
    processes += [(sft.run, (job, 1), status) for job, status in ((whole, 0), (killed, -signal.SIGKILL), (killed, 0))]
    for work, given, status in processes:  # DeepSpeed trains once in a process
        process = SPAWN.Process(target=work, args=given)
        process.start()
        while status and not (killed.work / deepspeed.POINTER).exists() and process.is_alive():
            time.sleep(0.01)
        if status:
            process.kill()
        process.join()
        if process.exitcode != status:
            raise RuntimeError(f"{work.__name__} ended with {process.exitcode}, not {status}")
    losses, others = (list(map(float, computations.losses(job))) for job in (whole, killed))
    off = max(abs(one - other) / one for one, other in zip(losses, others, strict=True))
    same = files.file_digest(whole.out / WEIGHTS) == files.file_digest(killed.out / WEIGHTS)
    run = files.read_json(whole.logs / "run.json")
    text = f"{run['tokens'] / run['seconds']:,.0f} tokens/s, {run['peak_memory_bytes']} bytes; "
    text += f"losses {losses[0]:.4g} to {losses[-1]:.4g}, at most {100 * off:.1g} % apart; "
    text += "the same adapter" if same else "another adapter"
    # The backward pass of a GPU's attention adds in any order: there only the losses are near.
    good, expected = same, "the same adapter"
    if hour.device == "cuda":
        most = run["expected_memory_bytes"]
        good, expected = off < 0.01 and run["peak_memory_bytes"] <= most, f"at most {most} bytes; losses within 1 %"
    yield Line("training, killed and resumed", OK if good else FAILED, text, expected=expected)


def _finetuning(hour: Hour, name: str, every: int) -> sft.Finetuning:
    """One of :data:`TRAINED` steps with this shape's settings; ``every``: steps between its checkpoints."""
    subject, family = hour.subject, find_family(hour.described["family"])
    given = {"lora": subject.training["lora"], "max_tokens": subject.training["max_tokens"], "learning_rate": 1e-4}
    folder, batch = hour.folder / name, hour.load["batch"]
    job = computations.finetuning(folder, subject.precision, TRAINED, hour.device, batch=batch, **given)
    spec = {**job.spec, "family": family.name, "shifted": family.shifted}
    backbone = hour.folder / "checkpoint"
    return dataclasses.replace(job, spec=spec, backbone=backbone, checkpoint_every=every, micro_tokens=AUTO)


def _write_checkpoint(hour: Hour, folder: Path) -> None:
    """A checkpoint of random weights. It has fewer tokens than the release, whose tokenizer has them at other ids."""
    vocabulary = computations.size_of(hour.described).vocabulary - 64
    backbone = computations.random_backbone(hour.described, hour.subject, vocab_size=vocabulary)
    texts = (text for row in computations.sentences(100) for text in row.values())
    write_checkpoint(backbone.model, backbone.family, train_tokenizer(texts, 1000, backbone.family), folder)


def probes(hour: Hour) -> Iterator[Line]:
    """Mean entropy and repeated tokens of all-mask canvases, by slots from the reference; nothing is decoded.

    The model is LLaDA with the released adapter of the direction; for the shape tiny the LLaDA-tiny of the package.
    """
    if not hour.testset:
        raise SkippedError("give --testset FILE, with a pair of sentences in each line")
    model = tiny(hour.direction) if hour.shape == "tiny" else released(hour.direction)
    translator = Translator.load(**model, device=hour.device, dtype=hour.subject.precision)
    prompt, rows = translator.prompt, files.read_jsonl(hour.testset, ("id", "source", "target"))[:PROBED]
    lengths = [len(prompt.tokens(row["target"])) + 1 for row in rows]
    pairs = [(row, length) for row, length in zip(rows, lengths, strict=True) if length + min(OFFSETS) >= SHORTEST]
    requests = [Probe(prompt.encode(row["source"]), length + offset) for offset in OFFSETS for row, length in pairs]
    engine = Engine(translator.backbone, fill=hour.subject.fill)
    readings = Runner(lambda: engine, engine.ledger).answers(requests)
    for place, offset in enumerate(OFFSETS):
        of_offset = readings[place * len(pairs) : (place + 1) * len(pairs)]
        entropy, repeated = (statistics.fmean(map(read, of_offset)) for read in (mean_entropy, repeats))
        text = f"entropy {entropy:.3f} nats, repeats {repeated:.2f}, {len(pairs)} pairs"
        yield Line(f"probes, {offset:+d} slots from the reference", MEASURED, text)


def public_decoders(hour: Hour) -> Iterator[Line]:
    """Decoders of others on the same weights and canvases, from their checkouts."""
    return peers.compare(hour.backbone(), computations.drawn(hour.load["peers"], peers.STEPS), hour.checkouts)


FUNCTIONS = (check, decoding, training, resuming, probes, public_decoders)
SPAWN = multiprocessing.get_context("spawn")  # a GPU cannot be used after a fork


# --- Each step in a process of its own, and the table.


def run(options: argparse.Namespace) -> None:
    """Do the steps, print their lines, and write the table. Exits with status 1 if a step has failed."""
    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    require_device(device, "--shape tiny --device cpu")
    shape, checkouts = options.shape or ("llada-8b" if device == "cuda" else "tiny"), peers.folders(options.peer)
    if options.testset:
        files.regular(options.testset)  # raises now, not when its step begins
    until, lines = time.monotonic() + 60 * options.minutes, []
    for name in options.only or checking.STEPS:
        with tempfile.TemporaryDirectory(prefix="entropy-valley-check-", ignore_cleanup_errors=True) as folder:
            hour = Hour(device, shape, Path(folder), options.testset, options.direction, checkouts)
            for line in step(name, hour, until):
                print(line, flush=True)
                lines.append(line)
    chip = torch.cuda.get_device_name() if device == "cuda" else f"{machine.processor()[0]}, one thread"
    versions = f"torch {torch.__version__}, transformers {transformers.__version__}, Python {platform.python_version()}"
    table = [f"{shape}, {hour.subject.precision}, {time.strftime('%Y-%m-%d')}; {chip}; {versions}", ""]
    table += ["| step | expected | measured | verdict |", "|---|---|---|---|", *(line.row for line in lines)]
    files.write_text(options.out, "\n".join([*table, ""]))
    print("", *table, "", f"This table is also in {options.out}", sep="\n")
    sys.exit(any(line.state == FAILED for line in lines))


def step(name: str, hour: Hour, until: float) -> Iterator[Line]:
    """The lines of a step in a process of its own, as soon as they are known; one that says why where it fails."""
    here, there = SPAWN.Pipe(duplex=False)
    process, reason = SPAWN.Process(target=_send, args=(name, hour, there)), ""
    process.start()
    there.close()
    try:
        while here.poll(max(0.0, until - time.monotonic())):
            yield here.recv()
        reason = "stopped: the minutes are over"
    except EOFError:
        process.join()
        reason = f"ended with {process.exitcode}" if process.exitcode else ""
    finally:
        if process.exitcode is None:
            if process.pid:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            process.kill()
    if reason:
        yield Line(name, FAILED, reason)


def _send(name: str, hour: Hour, lines: Any) -> None:
    os.setsid()  # a step that is stopped takes its own processes with it
    torch.set_num_threads(1)  # for which a CPU gives the same bits in any company
    started = time.monotonic()
    try:
        for line in dict(zip(checking.STEPS, FUNCTIONS, strict=True))[name](hour):
            now = time.monotonic()
            lines.send(dataclasses.replace(line, seconds=line.seconds or now - started))
            started = now
    except Exception as error:
        lines.send(Line(name, *ending(error, missing=SKIPPED), time.monotonic() - started))
