"""The checks of `entropy-valley check` that compute; at the end the models and sentences that they compute on."""

from __future__ import annotations

import dataclasses
import gc
import itertools
import multiprocessing
import os
import random
import signal
import statistics
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from entropy_valley import errors, files, machine, shipped
from entropy_valley.decoding import reference
from entropy_valley.decoding.canvas import Canvas, Queue
from entropy_valley.decoding.engine import BUDGET, Engine
from entropy_valley.decoding.head import HEAD_ROWS
from entropy_valley.decoding.orders import MinimumEntropy, reveal_counts
from entropy_valley.experiment.checking.checks import Check, CheckError, SkippedError
from entropy_valley.experiment.checking.size import BYTES, Size
from entropy_valley.experiment.checking.subject import Subject, model_config
from entropy_valley.experiment.demo.grammar import Synthetic
from entropy_valley.model.adapters import LOSSES, WEIGHTS
from entropy_valley.model.families import find_family
from entropy_valley.model.load import NF4, Backbone, empty_model, quantise, torch_dtype
from entropy_valley.model.prompt import BOTH_WAYS, PREFIX
from entropy_valley.texts import counted
from entropy_valley.training import deepspeed, memory
from entropy_valley.training.settings import Lora
from entropy_valley.translation import latency
from entropy_valley.translation.job import TOKENS

if TYPE_CHECKING:
    from entropy_valley.training.sft import Finetuning

STEPS = 8  # in which canvases are revealed
CANVASES, ALONE = 60, 6
# Of a training of two steps, and of one that is resumed: processes that cannot reach each other wait for hours.
MINUTES, LONGER = 7, 30
BATCH, TRAINED, EVERY = 16, 20, 5  # pairs of a step; steps of a training that is resumed, and between its checkpoints
# EV with T = 32 on the sentences of WMT22 En→Zh, by `benchmarks/decoding.py --shapes whole-test-set`.
SENTENCE_TOKENS = 1121
PROMPT, MASKS = 24, 16  # tokens and slots of the canvases of a full pass
CPU_MEMORY = 0.5e9  # bytes of weights: on a CPU, a larger backbone is not run
OTHER_BUILD = "Try another build of torch or driver: docs/running.md"
UNKNOWN = "its size is not known before it is downloaded"
TWO_LAYERS = {"num_hidden_layers": 2}  # all layers of a model have the same shapes, so two stand for all
SPAWN = multiprocessing.get_context("spawn")  # a GPU cannot be used after a fork


def listed(subject: Subject, folder: Path, thorough: bool) -> Iterator[tuple[str, Check]]:
    """The checks of a config by their names; ``folder`` is for their files."""
    # First: on some clusters a GPU takes one process, and from the next check on that is this one.
    yield "training", partial(training, subject, folder / "training")
    for name, backbone in subject.backbones.items():
        yield f"memory {name}", partial(fits, backbone, subject)
        yield f"decoding {name}", partial(same_texts, backbone, subject)
        if thorough and not not_run(backbone, subject, **TWO_LAYERS):
            yield f"bfloat16 {name}", partial(same_entropies, backbone, subject)
            yield f"batches {name}", partial(same_in_batches, backbone, subject)
            yield f"speed {name}", partial(speed, backbone, subject)
    if thorough and subject.training:
        yield "resuming", partial(resuming, subject, folder)


# --- A training.


def training(subject: Subject, folder: Path) -> str:
    """Two steps of a training, in as many processes as the config's, end in an adapter that passes its checks."""
    if subject.device == "cuda" and (gpus := torch.cuda.device_count()) < subject.processes:
        raise CheckError(f"{gpus} GPUs for {subject.processes} processes: lower `training.processes`")
    precision = subject.training.get("precision", subject.precision)
    job = finetuning(folder, precision, 2, subject.device, subject.processes)
    train(job, MINUTES)
    losses = ", ".join(f"{loss:.6g}" for loss in losses_of(job))
    return f"{counted(subject.processes, 'process')}, {precision}, losses {losses}"


def finetuning(folder: Path, precision: str, steps: int, device: str, processes: int = 1) -> Finetuning:
    """A training of LLaDA-tiny, which comes with the package, with all its files in ``folder``."""
    from entropy_valley.training.sft import Finetuning

    settings: dict[str, Any] = dict(max_steps=steps, global_batch=BATCH, learning_rate=1e-3, warmup=0.0, clip=1.0)
    settings |= dict(weight_decay=0.01, betas=[0.9, 0.95], max_tokens=96, lora=dict(rank=4, alpha=8, dropout=0.05))
    spec: dict[str, Any] = dict(backbone="tiny", family="llada", direction="en-zh", seed=1, prompt="{src} = ")
    spec |= dict(bos=False, shifted=False, precision=precision, training=settings)
    corpus = folder / "train.jsonl"
    files.write_jsonl(corpus, sentences(2 * BATCH))
    out, work, logs = (folder / name for name in ("adapter", "work", "logs"))
    return Finetuning(
        spec, corpus, shipped.GRAMMAR.checkpoint, out, work, logs, 1, processes, micro_tokens=256, device=device
    )


def train(job: Finetuning, minutes: float, until: Path | None = None) -> None:
    """Train in a process of its own, because DeepSpeed trains once in a process. With ``until``, kill it as soon as
    that file exists."""
    process = SPAWN.Process(target=_train_here, args=(job,))
    process.start()
    last = time.monotonic() + 60 * minutes
    while process.is_alive() and time.monotonic() < last and not (until and until.exists()):
        process.join(0.01)
    in_time = time.monotonic() < last
    process.kill()  # which does nothing to one that has ended, and ends what it has started
    process.join()
    hint = ". NCCL_DEBUG=INFO says more; try NCCL_P2P_DISABLE=1" if job.device == "cuda" else ""
    if not in_time:
        raise CheckError(f"the processes of a training did not end within {minutes} minutes{hint}")
    if process.exitcode and not until:
        raise CheckError(f"a process of a training failed, see above{hint}")


def _train_here(job: Finetuning) -> None:
    from entropy_valley.training import sft

    machine.end_with_parent(signal.SIGKILL, os.getppid())
    with errors.in_one_line():
        sft.run(job, job.processes)


def losses_of(job: Finetuning) -> list[float]:
    rows = (job.out / LOSSES).read_text(encoding="utf-8").splitlines()[1:]
    return [float(row.split(",")[1]) for row in rows]


def sentences(count: int) -> list[dict[str, str]]:
    """Pairs of the demo's grammar."""
    pairs = Synthetic(name="embedded", seed=1).pairs("en-zh", "train", 0)
    return [{"source": source, "target": target} for source, target in itertools.islice(pairs, count)]


# --- Memory.


def fits(backbone: dict[str, Any], subject: Subject) -> str:
    """Weights and the largest pass fit into the device's memory, and so does a training; on a GPU also what such a pass
    really holds."""
    size, item, room = size_of(backbone), BYTES[subject.precision], device_memory(subject.device)
    weights = size.weights(subject.precision)
    rows = (HEAD_ROWS[subject.device],) if subject.fill else ()
    largest = size.pass_bytes(subject.fill or BUDGET[subject.device], item, *rows)
    text = f"{machine.amount(weights)} of weights and {machine.amount(largest)} for a pass, of {machine.amount(room)}"
    if weights + largest > room:
        raise CheckError(f"{text}: it does not fit. Use a larger GPU, or another backbone")
    if subject.device == "cuda" and not not_run(backbone, subject):
        engine = Engine(random_backbone(backbone, subject), fill=subject.fill, compile_layers=subject.compile_layers)
        full_pass(engine)
        text += f"; a pass held {machine.amount(torch.cuda.max_memory_allocated())} in all"
    if subject.training and not find_family(backbone["family"]).is_stock:
        plan = pass_plan(backbone, subject, room if subject.device == "cuda" else None)
        recomputed = ", activation checkpointing" * plan.activation_checkpointing
        text += f"; a training: {plan.micro_tokens} tokens a pass{recomputed}"
        text += f", {machine.amount(plan.expected)} in all" if plan.expected else ""
    return text


def device_memory(device: str) -> int:
    """Bytes of the first GPU, or of the machine."""
    return machine.memory() if device == "cpu" else torch.cuda.get_device_properties(0).total_memory


def pass_plan(backbone: dict[str, Any], subject: Subject, free: int | None) -> memory.PassPlan:
    """The passes of the config's training where a GPU has so many ``free`` bytes; None: on a CPU."""
    family, given = find_family(backbone["family"]), subject.training
    model = empty_model(family, arguments_of(backbone), torch_dtype(given["precision"]))
    need = memory.demand(model, family, Lora(**given["lora"]), subject.processes, free=free or 0)
    return memory.plan(need if free else None, given["micro_tokens"], given["activation_checkpointing"], longest=1)


def full_pass(engine: Engine) -> tuple[int, int]:
    """Read as many canvases as a pass takes; the tokens in it, and the rows that the head reads."""
    budget, count = engine.budget, engine.budget // (PROMPT + MASKS)
    list(engine.run(Queue((place, Canvas([place % 100] * PROMPT, MASKS)) for place in range(count))))
    if engine.budget < budget:
        raise CheckError(f"a pass of {budget} tokens is too large for this device's memory")
    return count * (PROMPT + MASKS), count * MASKS


# --- Decoding, beside decoding/reference.py.


def same_texts(backbone: dict[str, Any], subject: Subject) -> str:
    """In float32 the engine decodes what the plain algorithm does, but where the last bit of two logits decides: under
    both attentions, in passes that are padded and in others."""
    precise = dataclasses.replace(subject, precision="float32")
    loaded, same, cases, canvases = random_backbone(backbone, precise, **TWO_LAYERS), 0, 0, drawn(12)
    for attention in (BOTH_WAYS, PREFIX):
        model = dataclasses.replace(loaded, attention=attention)
        plain = [reference.decode(model, canvas.prompt, canvas.length, STEPS)[1] for canvas in canvases]
        for fill in (TOKENS[subject.device], None):
            ours = [done.tokens[: done.text] for done in run_all(Engine(model, fill=fill), canvases)]
            same, cases = same + sum(map(list.__eq__, ours, plain)), cases + len(canvases)
    text = f"{same} of {cases} canvases decoded as by the plain algorithm"
    if same < 0.9 * cases:
        raise CheckError(f"{text}: this device computes something else in float32. {OTHER_BUILD}")
    return text


def drawn(count: int, steps: int = STEPS) -> list[Canvas]:
    """Canvases to be revealed in so many steps; 0: only to be read. Every vocabulary has their tokens, and none of them
    is special."""
    draw, canvases = random.Random(1), []
    for _ in range(count):
        prompt = [draw.randrange(20, 280) for _ in range(draw.randint(10, 60))]
        length = draw.randint(5, 60)
        counts = [n for n in reveal_counts(length, steps) if n] if steps else ()
        canvases.append(Canvas(prompt, length, counts))
    return canvases


def run_all(engine: Engine, canvases: Sequence[Canvas]) -> list[Any]:
    """What the engine gives for each canvas."""
    order = MinimumEntropy() if canvases[0].counts else None
    done = dict(engine.run(Queue(enumerate(canvases), engine.prompts.are_shared), order))
    return [done[place] for place in range(len(canvases))]


# --- What `--thorough` adds.


def same_entropies(backbone: dict[str, Any], subject: Subject) -> str:
    """In bfloat16 the engine's entropies are as near to float32 as those of the plain algorithm in bfloat16."""
    canvases = drawn(12, steps=0)
    exact, rounded = (
        random_backbone(backbone, dataclasses.replace(subject, precision=precision), **TWO_LAYERS)
        for precision in ("float32", "bfloat16")
    )
    readings = run_all(Engine(rounded, fill=TOKENS[subject.device]), canvases)
    off: dict[str, list[float]] = {"engine": [], "plain": []}  # of each slot
    for canvas, reading in zip(canvases, readings, strict=True):
        expected, plain = (
            reference.read(model, canvas.prompt, [model.mask_id] * canvas.length)[0] for model in (exact, rounded)
        )
        for name, entropies in (("engine", reading.entropies), ("plain", plain)):
            off[name] += [abs(one - other) for one, other in zip(entropies, expected, strict=True)]
    engine_off, plain_off = map(statistics.fmean, off.values())
    text = f"entropies {engine_off:.2g} nats from float32; the plain algorithm's {plain_off:.2g}"
    if not engine_off <= 2 * plain_off + 1e-3:
        raise CheckError(f"{text}: the engine computes something else in bfloat16. {OTHER_BUILD}")
    return text


def same_in_batches(backbone: dict[str, Any], subject: Subject) -> str:
    """A canvas has the same bits alone and beside others, read and filled, under both attentions, in passes that are
    padded as those of jobs on GPUs."""
    model, same = random_backbone(backbone, subject, **TWO_LAYERS), ALONE
    for attention, steps in itertools.product((BOTH_WAYS, PREFIX), (0, STEPS)):
        ours = dataclasses.replace(model, attention=attention)
        engine = Engine(ours, fill=TOKENS[subject.device], compile_layers=subject.compile_layers)
        canvases = drawn(CANVASES, steps)
        together = run_all(engine, canvases)
        same = min(same, sum(run_all(engine, [canvases[place]]) == [together[place]] for place in range(ALONE)))
    text = f"{same} of {ALONE} canvases have the same bits alone and among {CANVASES}"
    if same < ALONE:
        problem = f"{text}: here, results may change with the sentences of a job (docs/performance.md)"
        if subject.fill:
            raise CheckError(f"{problem}. To go on without that promise, set `decoding.batch_invariant: false`")
        raise SkippedError(problem)
    return text


def speed(backbone: dict[str, Any], subject: Subject) -> str:
    """A full pass as the jobs run it, and so a sentence."""
    engine = Engine(random_backbone(backbone, subject), fill=subject.fill, compile_layers=subject.compile_layers)
    tokens, rows = full_pass(engine)  # compiles what is compiled
    seconds = latency.seconds(partial(full_pass, engine), subject.device)
    rate = size_of(backbone).pass_work(tokens, rows) / seconds
    padded = f" padded to {subject.fill}" if subject.fill else ""
    return (
        f"{tokens} tokens{padded} in {seconds:.3f} s, {rate / 1e9:,.0f} GFLOP/s: "
        f"a sentence (EV, T = 32) takes about {seconds * SENTENCE_TOKENS / tokens:.3f} s"
    )


def resuming(subject: Subject, folder: Path) -> str:
    """A training of LLaDA-tiny; and again, killed at a checkpoint and resumed."""
    precision = subject.training["precision"]
    whole, killed = (
        dataclasses.replace(finetuning(folder / name, precision, TRAINED, subject.device), checkpoint_every=EVERY)
        for name in ("whole", "killed")
    )
    train(whole, LONGER)
    train(killed, LONGER, until=killed.work / deepspeed.POINTER)
    train(killed, LONGER)
    losses, others = losses_of(whole), losses_of(killed)
    off = max(abs(one - other) / one for one, other in zip(losses, others, strict=True))
    same = files.file_digest(whole.out / WEIGHTS) == files.file_digest(killed.out / WEIGHTS)
    text = f"losses {losses[0]:.4g} to {losses[-1]:.4g}; resumed: "
    text += "the same adapter" if same else f"another adapter, losses at most {100 * off:.1g} % apart"
    # The backward pass of a GPU's attention adds in any order: there only the losses are near.
    if not same and (subject.device == "cpu" or off >= 0.01):
        raise CheckError(f"{text}: report this, with the GPU")
    return text


# --- The config's backbones, with random weights.


def arguments_of(backbone: dict[str, Any], **other: Any) -> dict[str, Any]:
    """Those of the backbone's config class; ``other``: what differs. Raises SkippedError where they are not known."""
    if not (arguments := model_config(backbone)):
        raise SkippedError(UNKNOWN)
    return arguments | other


def size_of(backbone: dict[str, Any], **other: Any) -> Size:
    return Size.of(arguments_of(backbone, **other))


def not_run(backbone: dict[str, Any], subject: Subject, **other: Any) -> str | None:
    """Why no check runs a model of the backbone's shape; None where one does."""
    family = find_family(backbone["family"])
    if family.causal or family.is_stock:
        return "transformers decodes it"
    if not model_config(backbone):
        return UNKNOWN
    if subject.device == "cpu" and size_of(backbone, **other).weights(subject.precision) > CPU_MEMORY:
        return "too large to be run on a CPU for a check"
    return None


@torch.no_grad()
def random_backbone(backbone: dict[str, Any], subject: Subject, **other: Any) -> Backbone:
    """A model of the backbone's shape with random weights; its last two tokens stand for mask and EOS. ``other``:
    arguments of its config class that differ.

    Weights are drawn on the device, in bfloat16 for every precision. Products keep the size of their states; the head's
    weights are wider, so that rounding does not decide the order in which slots are revealed. Raises SkippedError where
    :func:`not_run` has a reason.
    """
    if reason := not_run(backbone, subject, **other):
        raise SkippedError(reason)
    family, size, device = find_family(backbone["family"]), size_of(backbone, **other), subject.device
    if device == "cuda":  # there may be no room beside the model of the check before
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    empty = empty_model(family, arguments_of(backbone, **other), torch.bfloat16)
    model, generator = empty.to_empty(device=device), torch.Generator(device).manual_seed(1)
    for name, weight in model.named_parameters():
        if weight.dim() == 1 and name.endswith("weight"):  # of a norm
            weight.fill_(1.0)
        else:
            spread = 3 if name.startswith("lm_head") else 1
            weight.normal_(0.0, spread * weight.shape[-1] ** -0.5, generator=generator)
    model = model.to(torch_dtype(subject.precision)).eval().requires_grad_(False)
    if subject.precision == NF4:
        quantise(model, device)
    eos, mask = size.vocabulary - 2, size.vocabulary - 1
    return Backbone(family, model, None, mask, eos, None, "", family.shifted, model.config.max_position_embeddings)
