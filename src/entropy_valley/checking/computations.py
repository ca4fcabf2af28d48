"""The checks that compute: a training, the engine against the plain algorithm, COMET, and each backbone's passes; at
the end the models and sentences that they compute on. Both sizes of the check use them."""

from __future__ import annotations

import dataclasses
import gc
import itertools
import random
import signal
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import linear

from entropy_valley import files, machine
from entropy_valley.checking.checks import CheckError, SkippedError
from entropy_valley.checking.subject import BYTES, Size, Subject, model_config
from entropy_valley.decoding import reference
from entropy_valley.decoding.canvas import Canvas, Queue
from entropy_valley.decoding.engine import BUDGET, Engine
from entropy_valley.decoding.head import HEAD_ROWS
from entropy_valley.decoding.orders import MinimumEntropy, reveal_counts
from entropy_valley.demo import shipped
from entropy_valley.demo.grammar import Synthetic
from entropy_valley.model import checkpoint
from entropy_valley.model.adapters import LOSSES
from entropy_valley.model.families import find_family
from entropy_valley.model.load import Backbone, empty_model, torch_dtype
from entropy_valley.model.prompt import BOTH_WAYS, PREFIX
from entropy_valley.texts import counted
from entropy_valley.training import memory
from entropy_valley.training.settings import Lora
from entropy_valley.translation import latency
from entropy_valley.translation.job import TOKENS

if TYPE_CHECKING:
    from entropy_valley.training.sft import Finetuning

CANVASES, ALONE = 60, 6
STEPS = 8  # in which canvases are revealed
TIMEOUT = 420  # seconds; processes that cannot reach each other wait for hours
# EV with T = 32 on the sentences of WMT22 En→Zh, by `benchmarks/decoding.py --shapes whole-test-set`.
SENTENCE_TOKENS = 1121
PAIR_TOKENS, PAIR_PREDICTED = 70, 15  # of WMT19: prompt and target; half of the target's tokens are masked
PROMPT, MASKS = 24, 16  # of the canvases of a pass that is timed
CPU_MEMORY = 0.5e9  # bytes of weights: on a CPU, a larger backbone is not run
UNKNOWN = "its size is not known before it is downloaded"
TWO_LAYERS = {"num_hidden_layers": 2}  # all layers of a model have the same shapes, so two stand for all
XLMR = {"width": 1024, "layers": 24, "heads": 16, "context": 510, "vocabulary": 2560}  # XLM-R large, COMET-22's encoder
ENCODER = {"intermediate_size": 4096, "vocab_size": 250002}
COMET_ON_H100 = 1200  # texts a second that an H100 should score: 220,000 in three minutes


def training(subject: Subject, folder: Path) -> str:
    """Two steps of a training, in as many processes as the config's, end in an adapter that passes its checks."""
    from entropy_valley.training import sft

    if subject.device == "cuda" and (gpus := torch.cuda.device_count()) < subject.processes:
        raise CheckError(f"{gpus} GPUs for {subject.processes} processes: lower `training.processes`")
    precision = subject.training.get("precision", subject.precision)
    job = finetuning(folder, precision, 2, subject.device, subject.processes)
    hint = ". NCCL_DEBUG=INFO says more; try NCCL_P2P_DISABLE=1" if subject.device == "cuda" else ""

    def stop(*_: object) -> None:
        raise CheckError(f"the processes of a training did not end within {TIMEOUT} s{hint}")

    former = signal.signal(signal.SIGALRM, stop)
    signal.alarm(TIMEOUT)
    try:
        sft.run(job, subject.processes)
    except SystemExit:
        raise CheckError(f"a process of a training failed, see above{hint}") from None
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, former)
    return f"{counted(subject.processes, 'process')}, {precision}, losses {', '.join(losses(job))}"


# The engine against decoding/reference.py, and with itself.


def drawn(count: int = CANVASES, steps: int = STEPS) -> list[Canvas]:
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
    done = dict(engine.run(Queue(enumerate(canvases)), order))
    return [done[place] for place in range(len(canvases))]


def same_texts(backbone: dict[str, Any], subject: Subject) -> str:
    """In float32 the engine decodes what the plain algorithm does, but where the last bit of two logits decides: under
    both attentions, in passes that are padded and in others."""
    loaded, same, cases, canvases = shaped(backbone, subject, "float32"), 0, 0, drawn(12)
    for attention in (BOTH_WAYS, PREFIX):
        model = dataclasses.replace(loaded, attention=attention)
        plain = [reference.decode(model, one.prompt, one.length, STEPS)[1] for one in canvases]
        for fill in (TOKENS[subject.device], None):
            ours = [done.tokens[: done.text] for done in run_all(Engine(model, fill=fill), canvases)]
            same, cases = same + sum(map(list.__eq__, ours, plain)), cases + len(canvases)
    text = f"{same} of {cases} canvases decoded as by the plain algorithm"
    if same < 0.9 * cases:
        raise CheckError(f"{text}: this device computes something else in float32")
    return text


def same_entropies(backbone: dict[str, Any], subject: Subject) -> str:
    """In bfloat16 the engine's entropies are as near to float32 as those of the plain algorithm in bfloat16."""
    if subject.device == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False):
        raise CheckError("this GPU has no bfloat16: it is older than Ampere. Set `precision: float32`")
    canvases = drawn(12, steps=0)
    exact = _plain_entropies(shaped(backbone, subject, "float32"), canvases)
    rounded = shaped(backbone, subject, "bfloat16")
    ours = [h for one in run_all(Engine(rounded, fill=TOKENS[subject.device]), canvases) for h in one.entropies]
    engine, plain = (
        statistics.fmean(abs(one - other) for one, other in zip(entropies, exact, strict=True))
        for entropies in (ours, _plain_entropies(rounded, canvases))
    )
    text = f"entropies {engine:.2g} nats from float32; the plain algorithm's {plain:.2g}"
    if not engine <= 2 * plain + 1e-3:
        raise CheckError(f"{text}: the engine computes something else in bfloat16")
    return text


def _plain_entropies(backbone: Backbone, canvases: Sequence[Canvas]) -> list[float]:
    masks = [(one.prompt, [backbone.mask_id] * one.length) for one in canvases]
    return [entropy for prompt, tokens in masks for entropy in reference.read(backbone, prompt, tokens)[0]]


def comet(folder: Path, subject: Subject) -> str:
    """A COMET with random weights scores on the device as on a CPU.

    The thorough check takes more texts, and on a GPU the shape of COMET-22. Only there it is an error if a text has
    other bits alone than in company.
    """
    from entropy_valley.scoring import comet
    from entropy_valley.scoring.comet_checkpoint import load

    device, large = subject.device, subject.thorough and subject.device == "cuda"
    path = random_comet(folder, ENCODER, **XLMR) if large else random_comet(folder, {}, width=32, vocabulary=300)
    rows = itertools.pairwise(sentences(2000 if large else 27))
    segments = [(one["source"], one["target"], other["target"]) for one, other in rows]
    model = load(path, device)
    scores: dict[tuple[str, ...], float] = {}
    list(comet.unpadded_scores(model, segments[:2]))
    spent = latency.seconds(lambda: scores.update(comet.unpadded_scores(model, segments)), device)
    here = dict(comet.unpadded_scores(load(path, "cpu"), segments[:20]))
    off = max(abs(scores[one] - score) for one, score in here.items())
    same = sum(dict(comet.unpadded_scores(model, [one])) == {one: scores[one]} for one in segments[:ALONE])
    goal = f" (an H100 should have {COMET_ON_H100:,})" if large else ""
    text = f"{len(segments) / spent:,.0f} texts/s{goal}, at most {off:.1e} from a CPU's, "
    text += f"{same} of {ALONE} the same alone"
    if not off < 1e-3 or len({*scores.values()}) == 1 or (subject.thorough and same < ALONE):
        raise CheckError(text)
    return text


def random_comet(folder: Path, encoder: Mapping[str, int], **size: int) -> Path:
    """A checkpoint. ``size``: fields of the demo's :class:`Estimator`; ``encoder``: fields of its encoder's config that
    differ."""
    from entropy_valley.demo import toy_comet
    from entropy_valley.demo.settings import Estimator

    folder.mkdir(parents=True, exist_ok=True)
    settings, texts = Estimator(seed=1, steps=1, **size), (text for row in sentences(100) for text in row.values())
    model = toy_comet.new_model(folder, toy_comet.train_tokenizer(texts, settings), settings, **encoder)
    return toy_comet.write_checkpoint(model, folder)


# The config's backbones, with random weights.


@torch.inference_mode()
def rate(subject: Subject) -> float:
    """Floating-point operations a second of a large product, in the precision of decoding."""
    device = subject.device
    rows, width, ffn = (2048, 4096, 12288) if device == "cuda" else (256, 512, 1536)
    dtype = torch_dtype(subject.precision)
    states, other = (torch.randn(count, width, device=device).to(dtype) for count in (rows, ffn))
    seconds = [latency.seconds(lambda: linear(states, other), device) for _ in range(20)]
    return 2 * rows * width * ffn / statistics.median(seconds[5:])


def speed(subject: Subject) -> str:
    return f"{rate(subject) / 1e9:,.0f} GFLOP/s in {subject.precision} products"


def device_memory(device: str) -> int:
    """Bytes of the smallest GPU, or of the machine."""
    if device == "cpu":
        return machine.memory()
    return min(torch.cuda.get_device_properties(number).total_memory for number in range(torch.cuda.device_count()))


def demand(backbone: dict[str, Any], subject: Subject) -> tuple[int, int]:
    """Bytes of the weights, and at most of a pass beside them."""
    size, item = size_of(backbone), BYTES[subject.precision]
    rows = (HEAD_ROWS[subject.device],) if subject.fill else ()
    return size.parameters * item, size.pass_bytes(subject.fill or BUDGET[subject.device], item, *rows)


def fits(backbone: dict[str, Any], subject: Subject) -> str:
    """Weights and the largest pass fit into the device's memory, and so does a training. A checkpoint that is there
    has all its tensors."""
    size, device, (weights, largest) = size_of(backbone), subject.device, demand(backbone, subject)
    folder, family = Path(backbone["folder"]), find_family(backbone["family"])
    if (folder / "config.json").is_file():
        checkpoint.check(empty_model(family, arguments_of(backbone), torch_dtype(subject.precision)), family, folder)
    room = device_memory(device)
    text = f"{machine.amount(weights)} of weights and {machine.amount(largest)} for a pass, of {machine.amount(room)}"
    if weights + largest > room:
        raise CheckError(f"{text}: it does not fit this device")
    if given := subject.training:
        plan = pass_plan(backbone, subject, room if device == "cuda" else None)
        recomputed = ", activation checkpointing" * plan.activation_checkpointing
        pairs, products = given["global_batch"], rate(subject) * subject.processes
        work = size.step_work(pairs * PAIR_TOKENS, pairs * PAIR_PREDICTED, plan.activation_checkpointing)
        text += f"; a training: {plan.micro_tokens} tokens a pass{recomputed}, a step at least {work / products:,.2f} s"
    return text


def pass_plan(backbone: dict[str, Any], subject: Subject, free: int | None, longest: int = 1) -> memory.PassPlan:
    """The passes of the config's training where a GPU has so many ``free`` bytes; None: on a CPU."""
    family, given = find_family(backbone["family"]), subject.training
    model = empty_model(family, arguments_of(backbone), torch_dtype(given["precision"]))
    need = memory.demand(model, family, Lora(**given["lora"]), subject.processes)
    room = memory.Room(free, need) if free else None
    return memory.plan(room, given["micro_tokens"], given["activation_checkpointing"], longest)


def company(backbone: dict[str, Any], subject: Subject) -> str:
    """A canvas has the same bits alone and beside others, read and filled, under both attentions, in passes as the jobs
    run them."""
    model = random_backbone(backbone, subject, **TWO_LAYERS)
    padded, plain = (
        min(
            alike(Engine(dataclasses.replace(model, attention=attention), fill=fill, compile_layers=compiled), steps)
            for attention, steps in itertools.product((BOTH_WAYS, PREFIX), (0, STEPS))
        )
        for fill, compiled in ((TOKENS[subject.device], subject.compile_layers), (None, False))
    )
    text = f"{padded} of {ALONE} canvases have the same bits alone and among {CANVASES} in padded passes"
    text += f"; {plain} in passes that are not padded"
    if padded < ALONE:
        problem = f"{text}: here, results may change with the sentences of a job (docs/performance.md)"
        if subject.fill:
            raise CheckError(f"{problem}. To go on without that promise, set `decoding.batch_invariant: false`")
        raise SkippedError(problem)
    return text


def alike(engine: Engine, steps: int) -> int:
    """For how many of the first canvases the engine gives alone what it gives in company."""
    canvases = drawn(steps=steps)
    together = run_all(engine, canvases)
    return sum(run_all(engine, [canvases[place]]) == [together[place]] for place in range(ALONE))


def decoding(backbone: dict[str, Any], subject: Subject) -> str:
    """A pass as the jobs run it, with as many canvases as it takes, and what a sentence will take."""
    model, device, fill = random_backbone(backbone, subject), subject.device, subject.fill
    engine = Engine(model, fill=fill, compile_layers=subject.compile_layers)
    budget, count = engine.budget, engine.budget // (PROMPT + MASKS)
    tokens = count * (PROMPT + MASKS)

    def one_pass() -> None:
        list(engine.run(Queue((place, Canvas([place % 100] * PROMPT, MASKS)) for place in range(count))))

    one_pass()
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    seconds = latency.seconds(one_pass, device)
    if engine.budget < budget:
        raise CheckError(f"a pass of {tokens} tokens is too large for this device's memory")
    per_second = size_of(backbone).pass_work(tokens, count * MASKS) / seconds  # runs/plan.py reads it from the line
    share = per_second / rate(subject)
    padded = f" padded to {fill}" if fill else ""
    peak = ""
    if device == "cuda":
        held, most = torch.cuda.max_memory_allocated(), sum(demand(backbone, subject))
        peak = f", {machine.amount(held)} in all ({held} bytes; at most {machine.amount(most)} expected)"
    return (
        f"{tokens} tokens{padded} in {seconds:.3f} s, {per_second / 1e9:,.0f} GFLOP/s ({100 * share:.0f} % of the "
        f"products' speed){peak}: a sentence (EV, T = 32) takes about {seconds * SENTENCE_TOKENS / tokens:.3f} s"
    )


def arguments_of(backbone: dict[str, Any], **other: Any) -> dict[str, Any]:
    """Those of the backbone's config class; ``other``: what differs. Raises SkippedError where they are not known."""
    if not (arguments := model_config(backbone)):
        raise SkippedError(UNKNOWN)
    return arguments | other


def size_of(backbone: dict[str, Any], **other: Any) -> Size:
    return Size.of(arguments_of(backbone, **other))


def not_run(backbone: dict[str, Any], subject: Subject, **other: Any) -> str | None:
    """Why no check runs a model of the backbone's shape; None where one does."""
    if find_family(backbone["family"]).causal:
        return "an autoregressive backbone is decoded by transformers"
    if not model_config(backbone):
        return UNKNOWN
    if subject.device == "cpu" and size_of(backbone, **other).parameters * BYTES[subject.precision] > CPU_MEMORY:
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
    empty = empty_model(family, arguments_of(backbone, **other), torch.bfloat16)
    model, generator = empty.to_empty(device=device), torch.Generator(device).manual_seed(1)
    for name, weight in model.named_parameters():
        if weight.dim() == 1 and name.endswith("weight"):  # of a norm
            weight.fill_(1.0)
        else:
            spread = 3 if name.startswith("lm_head") else 1
            weight.normal_(0.0, spread * weight.shape[-1] ** -0.5, generator=generator)
    model = model.to(torch_dtype(subject.precision)).eval().requires_grad_(False)
    eos, mask = size.vocabulary - 2, size.vocabulary - 1
    return Backbone(family, model, None, mask, eos, None, "", family.shifted, model.config.max_position_embeddings)


def shaped(backbone: dict[str, Any], subject: Subject, precision: str) -> Backbone:
    """A random model in that precision: whole for the thorough check, else of the backbone's widths in two layers."""
    subject = dataclasses.replace(subject, precision=precision)
    return random_backbone(backbone, subject, **({} if subject.thorough else TWO_LAYERS))


# What is tiny: the demo's sentences, and the params of a training on them.


def sentences(count: int) -> list[dict[str, str]]:
    """Pairs of the demo's grammar."""
    drawn = Synthetic(name="embedded", seed=1).pairs("en-zh", "train", 0)
    return [{"source": source, "target": target} for source, target in itertools.islice(drawn, count)]


def finetuning(
    folder: Path, precision: str, steps: int, device: str, processes: int = 1, batch: int = 16, **given: Any
) -> Finetuning:
    """A training of LLaDA-tiny, which comes with the package, with all its files in ``folder``. ``given``: fields of
    the spec's `training` that differ."""
    from entropy_valley.training.sft import Finetuning

    training: dict[str, Any] = dict(max_steps=steps, global_batch=batch, learning_rate=1e-3, warmup=0.0, clip=1.0)
    training |= dict(weight_decay=0.01, betas=[0.9, 0.95], max_tokens=96, lora=dict(rank=4, alpha=8, dropout=0.05))
    spec: dict[str, Any] = dict(backbone="tiny", family="llada", direction="en-zh", seed=1, prompt="{src} = ")
    spec |= dict(bos=False, shifted=False, precision=precision, training=training | given)
    files.write_jsonl(folder / "train.jsonl", sentences(2 * batch))
    return Finetuning(
        spec,
        folder / "train.jsonl",
        shipped.CHECKPOINT,
        out=folder / "adapter",
        work=folder / "work",
        logs=folder / "logs",
        checkpoint_every=1,
        processes=processes,
        micro_tokens=256,
        device=device,
    )


def losses(job: Finetuning) -> list[str]:
    """The loss of each step, as its file has it."""
    rows = (job.out / LOSSES).read_text(encoding="utf-8").splitlines()[1:]
    return [row.split(",")[1] for row in rows]
