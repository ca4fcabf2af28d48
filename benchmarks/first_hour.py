"""The first hour on a GPU: is everything computed correctly there, and how fast? It needs no network.

    PYTHONPATH=src python benchmarks/first_hour.py --shape llada-8b --work /fast/disk/first-hour

Random weights in a released shape are written to ``--work`` (8B: 16 GB). Then each step runs on them in a process of
its own: if one fails, the others still run. The table at the end shows expected and measured values, and is also in
``--work``/first_hour.md. The exit status is 1 if a step failed. The step ``precision`` needs the model in float32: for
8B, 32 GB of the GPU. ``--shape tiny --device cpu`` takes about a minute.

With ``--testset``, pairs in JSON Lines with id, source and target, the step ``probes`` reads all-mask canvases around
the reference's length by a real model: with the released adapter of ``--direction`` (17 GB), or for the shape tiny the
LLaDA-tiny of the package. It says before any matrix runs whether entropy and repeated tokens tell the length there.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import gc
import importlib
import itertools
import json
import multiprocessing
import os
import shutil
import signal
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")  # before transformers is imported

import torch
import transformers
import workload
from machine import describe, matmul_rate, peak_memory, seconds
from tokenizers import Tokenizer

from entropy_valley import Translator, checking, files, released, tiny
from entropy_valley.checking import checks
from entropy_valley.checking.computations import tiny_training
from entropy_valley.checking.subject import BYTES, Size, Subject
from entropy_valley.decoding import reference
from entropy_valley.decoding.engine import BUDGET, Engine
from entropy_valley.decoding.head import HEAD_ROWS
from entropy_valley.decoding.orders import Denoising, make_denoiser
from entropy_valley.decoding.requests import SHORTEST, Canvas, Ledger, Probe, Queue, Runner
from entropy_valley.demo import toy_comet
from entropy_valley.demo.grammar import Synthetic
from entropy_valley.demo.settings import Estimator
from entropy_valley.errors import InputError
from entropy_valley.lengths import make_method
from entropy_valley.lengths.ev import mean_entropy, repeats
from entropy_valley.model import checkpoint
from entropy_valley.model.adapters import LOSSES, WEIGHTS
from entropy_valley.model.families import Family, find_family
from entropy_valley.model.load import Backbone, empty_model, load_backbone
from entropy_valley.model.prompt import BOTH_WAYS, PREFIX, Prompt, load_tokenizer, train_tokenizer
from entropy_valley.scoring.comet import unpadded_scores
from entropy_valley.scoring.comet_checkpoint import load as load_comet
from entropy_valley.training import deepspeed, processes, sft
from entropy_valley.training.loss import tokenise
from entropy_valley.translation.beam_search import BeamSearch, Search, Task
from entropy_valley.translation.job import TOKENS, Pipeline, padded_tokens

OK, SLOW, MEASURED, SKIPPED, FAILED = "ok", "slow", "measured", "skipped", "FAILED"
FAMILIES = {"tiny": "llada", "llada-8b": "llada", "dream-7b": "dream", "diffullama-7b": "diffullama"}
FAMILIES["llama3-8b"] = "llama3"
TINY = {"vocab_size": 2560, "hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 3}  # as in the demo
TINY |= {"num_attention_heads": 8, "num_key_value_heads": 8}
SHARD = 2 * 10**9  # bytes of a file of weights
RATIOS, READ = (0.70, 0.75, 0.80, 0.85, 0.90), 8  # the paper's grid; steps of a canvas
OFFSETS, PROBED = range(-4, 5), 200  # slots from the reference's length; pairs of a test set
TIMES_FLOOR = 3  # a GPU is slow beyond so many times the time of the matrix products
XLMR = {"width": 1024, "heads": 16, "context": 510}
XLMR_CONFIG = {"num_hidden_layers": 24, "intermediate_size": 4096, "vocab_size": 250002}  # XLM-R large's
COMET_ON_H100 = 1200  # texts a second that an H100 should score: 220,000 in three minutes
# Sentences to decode, and T; canvases in company, and alone; steps and batch of a training; texts to score.
LOADS = {
    "cpu": dict(sentences=3, steps=4, company=8, alone=2, training=(9, 8), hypotheses=40),
    "cuda": dict(sentences=512, steps=32, company=60, alone=6, training=(24, 128), hypotheses=2000),
}


@dataclass(frozen=True)
class Row:
    """A line of the table; without an expectation the verdict is :data:`MEASURED`."""

    step: str
    expected: str
    measured: str
    verdict: str

    def __str__(self) -> str:
        cells = (" ".join(cell.split()).replace("|", "/") for cell in dataclasses.astuple(self))
        return f"| {' | '.join(cells)} |"


@dataclass(frozen=True)
class Hour:
    """What all steps know: the device, the shape of the model, and the folder for all files."""

    device: str
    shape: str
    work: Path
    testset: Path | None = None
    direction: str = "en-zh"

    @property
    def folder(self) -> Path:
        return self.work / self.shape

    @property
    def family(self) -> Family:
        return find_family(FAMILIES[self.shape])

    @property
    def precision(self) -> str:
        return "bfloat16" if self.device == "cuda" else "float32"

    @property
    def load(self) -> dict[str, Any]:
        return LOADS[self.device]

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the stock config class: of the release, or of the demo's LLaDA-tiny."""
        context = {"max_position_embeddings": 131072}  # Dream's; the others have their own
        return context | self.family.releases[0].config | (TINY if self.shape == "tiny" else {})

    @property
    def size(self) -> Size:
        return Size.of(self.arguments)

    def backbone(self, precision: str | None = None) -> Backbone:
        return load_backbone(self.folder, self.family.name, device=self.device, dtype=precision or self.precision)

    def workload(self, backbone: Backbone, sentences: int) -> workload.Workload:
        """Sentences of WMT22's lengths, their prompts of random tokens."""
        shape = dataclasses.replace(workload.SHAPES["whole-test-set"], vocabulary=800)  # tokens that all shapes have
        return dataclasses.replace(workload.make(shape, "cpu", sentences), backbone=backbone)

    def rate(self) -> float:
        """Operations a second of the FFN's product with the rows of a padded pass."""
        return matmul_rate(self.device, TOKENS[self.device], self.size.width, self.size.ffn)


def pairs(count: int) -> list[dict[str, str]]:
    """Distinct sentence pairs of the demo's grammar, three sentences each: about as long as those of WMT."""
    drawn = Synthetic(name="embedded", seed=1).pairs("en-zh", "train", 0)
    rows = ([next(drawn) for _ in range(3)] for _ in range(count))
    return [
        {"id": str(number), "source": " ".join(one for one, _ in row), "target": "".join(other for _, other in row)}
        for number, row in enumerate(rows)
    ]


def write_weights(hour: Hour) -> Iterator[Row]:
    """A checkpoint in the released layout: drawn on the device, tensor by tensor, and written shard by shard."""
    family, folder, model = hour.family, hour.folder, empty_model(hour.family, hour.arguments, torch.bfloat16)
    expected = sum(tensor.nbytes for tensor in model.parameters())
    started = time.perf_counter()
    try:
        checkpoint.check(model, family, folder)
    except InputError:
        _write_config(hour, model)
        _write_shards(hour, model)
        checkpoint.check(model, family, folder)
    written = sum(path.stat().st_size for path in checkpoint.shards(folder))
    spent = time.perf_counter() - started
    verdict = OK if 0 <= written - expected < 10**6 else FAILED
    yield Row("weights", f"{expected / 1e9:.2f} GB", f"{written / 1e9:.2f} GB written in {spent:.0f} s", verdict)


def _write_config(hour: Hour, model: Any) -> None:
    family, folder, tokenizer = hour.family, hour.folder, _tokenizer(hour)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save_pretrained(folder)
    ids = {f"{kind}_token_id": getattr(tokenizer, f"{kind}_token_id") for kind in ("mask", "eos", "pad")}
    config = {**family.to_released(model.config), "model_type": family.model_type, **ids}
    config["transformers_version"] = transformers.__version__  # loaders of others ask for it
    files.write_json(folder / "config.json", config)
    checkpoint.write_manifest(folder, family)


def _tokenizer(hour: Hour) -> Any:
    """The demo's, with as many entries as the model has, and the special tokens at the ids of the release."""
    family, vocabulary = hour.family, hour.arguments["vocab_size"]
    texts = (text for row in pairs(1000) for text in (row["source"], row["target"]))
    trained = train_tokenizer(texts, 2560, family)
    ids = {} if hour.shape == "tiny" else family.releases[0].ids
    places = {getattr(family, f"{kind}_token"): number for kind, number in ids.items() if number is not None}
    state = json.loads(trained.backend_tokenizer.to_str())
    free = (number for number in range(vocabulary) if number not in places.values())
    tokens = sorted(state["model"]["vocab"], key=state["model"]["vocab"].get)
    entries = {token: places[token] if token in places else next(free) for token in tokens}
    state["model"]["vocab"] = entries | {f"<unused-{number}>": number for number in free}
    for token in state["added_tokens"]:
        token["id"] = entries[token["content"]]
    whole = Tokenizer.from_str(json.dumps(state))
    return type(trained)(tokenizer_object=whole, clean_up_tokenization_spaces=False, **trained.special_tokens_map)


def _write_shards(hour: Hour, model: Any) -> None:
    groups: list[list[tuple[str, Any]]] = [[]]
    for name, tensor in model.named_parameters():
        if sum(one.nbytes for _, one in groups[-1]) > SHARD:
            groups.append([])
        groups[-1].append((name, tensor))
    random, index = torch.Generator(hour.device).manual_seed(1), {}
    for number, group in enumerate(groups, 1):
        path = hour.folder / f"model-{number:05}-of-{len(groups):05}.safetensors"
        shard = {hour.family.released_name(name): _drawn(name, tensor, random) for name, tensor in group}
        checkpoint.write_tensors(shard, path)
        index |= dict.fromkeys(shard, path.name)
    total = sum(tensor.nbytes for tensor in model.parameters())
    files.write_json(hour.folder / checkpoint.INDEX, {"metadata": {"total_size": total}, "weight_map": index})


def _drawn(name: str, tensor: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """Every product keeps the size of its states; the head's are wider, so that rounding does not decide the order in
    which slots are revealed."""
    filled = torch.empty(tensor.shape, dtype=tensor.dtype, device=random.device)
    if filled.dim() == 1 and name.endswith("weight"):
        return filled.fill_(1.0).cpu()
    spread = (3 if name.startswith("lm_head") else 1) * filled.shape[-1] ** -0.5
    return filled.normal_(0.0, spread, generator=random).cpu()


def check(hour: Hour) -> Iterator[Row]:
    """All lines of `entropy-valley check` for this shape."""
    training = {"precision": hour.precision, "micro_tokens": "auto", "activation_checkpointing": "auto"}
    training |= {"global_batch": 128, "max_tokens": 1024, "lora": _lora(hour)}
    backbones = {hour.shape: {"family": hour.family.name, "folder": str(hour.folder), "arguments": None}}
    subject = Subject(device=hour.device, precision=hour.precision, backbones=backbones, training=training)
    lines = []
    for one in checking.everything(subject):
        print(one, flush=True)
        lines.append(one)
    failed = [one for one in lines if one.state == checks.FAILED]
    yield from (Row(f"check: {one.name}", "", one.text, FAILED) for one in failed)
    counts = [
        f"{sum(one.state == state for one in lines)} {state}" for state in (checks.OK, checks.SKIPPED, checks.FAILED)
    ]
    yield Row("check", "none failed", ", ".join(counts), FAILED if failed else OK)


def _lora(hour: Hour) -> dict[str, Any]:
    rank = 4 if hour.shape == "tiny" else 64
    return {"rank": rank, "alpha": 2 * rank, "dropout": 0.05}


def decoding(hour: Hour) -> Iterator[Row]:
    """Seconds a sentence by EV beside the time of its matrix products, and the memory beside the weights."""
    backbone, rate, size = hour.backbone(), hour.rate(), hour.size
    load, count = hour.workload(backbone, hour.load["sentences"]), hour.load["sentences"]
    if hour.family.causal:
        search = BeamSearch(backbone, Search(beams=4, length_penalty=1.0, max_new_tokens=32))
        tasks = [Task(prompt, 32) for prompt in load.prompts]
        spent, _ = seconds(lambda: list(search.run(tasks)), hour.device)
        yield Row("beam search, 4 beams, 32 tokens", "", f"{spent / count:.4f} s a sentence", MEASURED)
        return
    for name, attention, settings in modes(hour):
        part = dataclasses.replace(load, backbone=dataclasses.replace(backbone, attention=attention))
        translate(part.longest(4), 2, settings)  # compiles what is compiled
        spent, ledger = seconds(functools.partial(translate, part, hour.load["steps"], settings), hour.device)
        floor = size.pass_work(ledger.tokens, ledger.rows) / rate
        expected, measured = f"products alone {floor / count:.4f} s", f"{spent / count:.4f} s a sentence"
        verdict = on_gpu(hour, spent < TIMES_FLOOR * floor, SLOW)
        yield Row(f"decoding, {name}", expected, f"{measured}, × {spent / floor:.1f}", verdict)
        if attention == BOTH_WAYS:
            rows = (HEAD_ROWS[hour.device],) if "fill" in settings else ()
            most = size.pass_bytes(settings.get("fill", BUDGET[hour.device]), BYTES[hour.precision], *rows)
            peak = peak_memory(functools.partial(translate, part, 4, settings), hour.device)
            verdict = on_gpu(hour, peak < 1.1 * most, FAILED)
            yield Row(f"memory, {name}", f"weights and {most / 1e9:.2f} GB", f"and {peak / 1e9:.2f} GB", verdict)


def on_gpu(hour: Hour, good: bool, bad: str) -> str:
    """The verdict on speed and memory: they are judged on a GPU only."""
    return MEASURED if hour.device == "cpu" else OK if good else bad


def modes(hour: Hour) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(name, attention, settings of the engine): both attentions, in padded passes, as jobs on GPUs, and in others."""
    attentions = {"exact attention": BOTH_WAYS, "prefix attention": PREFIX}
    padded = {"fill": TOKENS[hour.device]}
    passes = {"padded": padded, "padded, compiled": {**padded, "compile_layers": True}, "not padded": {}}
    for attention, settings in itertools.product(attentions, passes):
        yield f"{attention}, {settings}", attentions[attention], passes[settings]


def translate(load: workload.Workload, steps: int, settings: dict[str, Any]) -> Ledger:
    """Translate the whole load by EV; what was run."""
    engine = Engine(load.backbone, Ledger(), **settings)
    method, denoising = make_method("ev", {"ratios": RATIOS}), Denoising.named("med", steps, "llada")
    list(Pipeline.of(engine, load.inputs).translate(method, dict(enumerate(load.sentences)), denoising))
    return engine.ledger


def company(hour: Hour) -> Iterator[Row]:
    """The first canvases decoded and read alone, and with all others: the same bits?"""
    backbone = hour.backbone()
    canvases, alone = drawn_canvases(hour, backbone, hour.load["company"]), hour.load["alone"]
    for name, attention, settings in modes(hour):
        engine = Engine(dataclasses.replace(backbone, attention=attention), **settings)
        together = run(engine, canvases)
        same = sum(run(engine, [canvases[place]]) == [together[place]] for place in range(alone))
        promised = "fill" in settings  # in bfloat16, a row's bits depend on the shape: on GPUs, and on CPUs with AMX
        verdict = (OK if same == alone else FAILED) if promised else MEASURED
        expected = f"{alone} of {alone} as alone" if promised else ""
        yield Row(f"company, {name}", expected, f"{same} of {alone} as alone", verdict)


def drawn_canvases(hour: Hour, backbone: Backbone, count: int) -> list[Canvas]:
    """Canvases of EV's middle ratio, revealed in at most :data:`READ` steps."""
    load, denoising = hour.workload(backbone, count), Denoising.named("med", READ, "llada")
    lengths = [max(2, round(0.8 * one.source_tokens)) for one in load.sentences]
    return [Canvas(*given, denoising.counts(given[1])) for given in zip(load.prompts, lengths, strict=True)]


def run(engine: Engine, canvases: list[Canvas]) -> list[tuple[Any, Any]]:
    """Of each canvas what it is filled with, and the reading of its slots before the first step."""
    unread = [dataclasses.replace(canvas, counts=()) for canvas in canvases]
    filled = dict(engine.run(Queue(enumerate(canvases)), make_denoiser("med")))
    read = dict(engine.run(Queue(enumerate(unread))))
    return [(filled[place], read[place]) for place in range(len(canvases))]


def precision(hour: Hour) -> Iterator[Row]:
    """The engine beside decoding/reference.py in both precisions: texts, and distances of the entropies to float32."""
    seen, fill = {}, padded_tokens({}, hour.device, None)
    for name in BYTES:
        backbone = hour.backbone(name)
        canvases = drawn_canvases(hour, backbone, 12)
        results = run(Engine(backbone, fill=fill), canvases)
        seen["engine", name] = [(done.tokens[: done.text], read.entropies) for done, read in results]
        seen["reference", name] = [_plain(backbone, canvas) for canvas in canvases]
        del backbone
        gc.collect()  # a GPU has no room for both models
        torch.cuda.empty_cache()
    exact = seen["reference", "float32"]
    count, same, off = len(exact), {}, {}
    for who, results in seen.items():
        same[who] = sum(text == other for (text, _), (other, _) in zip(results, exact, strict=True))
        ours, theirs = ([one for _, entropies in side for one in entropies] for side in (results, exact))
        off[who] = sum(abs(one - other) for one, other in zip(ours, theirs, strict=True)) / len(theirs)
    # What a random model decodes may depend on the last bit of two logits.
    verdict = OK if same["engine", "float32"] >= 0.9 * count else FAILED
    measured = f"{same['engine', 'float32']} of {count}, entropies {off['engine', 'float32']:.1e} nats apart"
    yield Row("float32: texts of the reference", f"{count} of {count}", measured, verdict)
    ours, theirs = off["engine", "bfloat16"], off["reference", "bfloat16"]
    verdict = OK if ours <= 2 * theirs + 1e-3 else FAILED
    yield Row("bfloat16: nats from float32's entropies", f"the reference's: {theirs:.2g}", f"{ours:.2g}", verdict)
    texts = same["engine", "bfloat16"], same["reference", "bfloat16"]
    yield Row("bfloat16: texts of float32", f"the reference's: {texts[1]}", f"{texts[0]} of {count}", MEASURED)


def _plain(backbone: Backbone, canvas: Canvas) -> tuple[list[int], list[float]]:
    """Text, and the entropies of all slots before the first step, by the plain algorithm."""
    text = reference.decode(backbone, canvas.prompt, canvas.length, READ)[1]
    return text, reference.read(backbone, canvas.prompt, [backbone.mask_id] * canvas.length)[0]


def training(hour: Hour) -> Iterator[Row]:
    """A fine-tuning by DeepSpeed, whole; and again, killed after its first checkpoint and resumed.

    This process leaves the GPU to those that train, until they have ended.
    """
    steps, batch = hour.load["training"]
    rows = pairs(steps * batch)  # one epoch
    files.write_jsonl(hour.work / "train.jsonl", rows)
    spec = tiny_training(hour.family.name, hour.precision)
    settings = {"max_steps": steps, "global_batch": batch, "learning_rate": 2e-4}
    spec["training"] |= settings | {"lora": _lora(hour), "max_tokens": 1024}
    whole, killed = (_job(hour, spec, name, every) for name, every in (("whole", steps), ("killed", steps // 3)))
    if hour.device == "cpu":  # once for all processes, which are forked
        os.environ["DS_ACCELERATOR"] = "cpu"
        importlib.import_module("deepspeed")
    _finish(hour, whole)
    process = _start(hour, killed)
    while not (killed.work / deepspeed.POINTER).exists() and process.is_alive():
        time.sleep(0.01)
    process.kill()
    process.join()
    if process.exitcode != -signal.SIGKILL:
        raise RuntimeError(f"the training ended with {process.exitcode} before it could be killed")
    _finish(hour, killed)

    tokenizer = load_tokenizer(hour.folder, hour.family)
    tokenised = tokenise(rows, Prompt(spec["prompt"], tokenizer), tokenizer.get_vocab()[hour.family.eos_token], 1024)
    tokens, seen = int(tokenised.lengths.sum()), files.read_json(whole.logs / "run.json")
    floor = hour.size.step_work(tokens, tokens / 4, seen["activation_checkpointing"]) / hour.rate()
    spent = max(seen["seconds"], 0.1)  # rounded to tenths
    expected, measured = f"products alone {tokens / floor:,.0f} tokens/s", f"{tokens / spent:,.0f} tokens/s"
    verdict = on_gpu(hour, spent < TIMES_FLOOR * floor, SLOW)
    yield Row(f"training, {steps} steps of {batch} pairs", expected, measured, verdict)

    peak, most = seen["peak_memory_bytes"], seen.get("expected_memory_bytes")
    expected, verdict = f"at most {most / 1e9:.1f} GB" if most else "", on_gpu(hour, peak <= (most or 0), FAILED)
    yield Row(f"memory, {seen['micro_tokens']} tokens a pass", expected, f"{peak / 1e9:.1f} GB", verdict)

    losses, others = (_losses(job.out / LOSSES) for job in (whole, killed))
    off = max(abs(one - other) / one for one, other in zip(losses, others, strict=True))
    same = files.file_digest(whole.out / WEIGHTS) == files.file_digest(killed.out / WEIGHTS)
    measured = f"losses {losses[0]:.4g} to {losses[-1]:.4g}, at most {100 * off:.1g} % apart; "
    measured += "the same adapter" if same else "another adapter"
    # The backward pass of a GPU's attention adds in any order: there only the losses are near.
    good = off < 0.01 if hour.device == "cuda" else same and off == 0
    expected = "losses within 1 %" if hour.device == "cuda" else "the same adapter"
    yield Row("training, killed and resumed", expected, measured, OK if good else FAILED)


def _job(hour: Hour, spec: dict[str, Any], name: str, every: int) -> sft.Finetuning:
    folder = hour.work / f"training-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    places = {"out": folder / "adapter", "work": folder / "work", "logs": folder / "logs"}
    return sft.Finetuning(
        spec, hour.work / "train.jsonl", hour.folder, **places, checkpoint_every=every, device=hour.device
    )


def _start(hour: Hour, job: sft.Finetuning) -> Any:
    process = starter(hour.device).Process(target=_finetune, args=(job,))
    process.start()
    return process


def _finetune(job: sft.Finetuning) -> None:
    processes.use_threads(1)
    sft.finetune(job)


def _finish(hour: Hour, job: sft.Finetuning) -> None:
    process = _start(hour, job)
    process.join()
    if process.exitcode:
        raise RuntimeError(f"the training {job.out.parent.name} ended with {process.exitcode}; see above")


def _losses(path: Path) -> list[float]:
    return [float(row.split(",")[1]) for row in path.read_text(encoding="utf-8").splitlines()[1:]]


def comet(hour: Hour) -> Iterator[Row]:
    """COMET with random weights, of XLM-R large's shape on a GPU: texts a second, and scores alone and in company."""
    rows, folder = pairs(hour.load["hypotheses"]), hour.work / "comet"
    folder.mkdir(parents=True, exist_ok=True)
    large = hour.device == "cuda"
    size = Estimator(seed=1, steps=1, vocabulary=2560, **(XLMR if large else {"width": 32}))
    tokenizer = toy_comet.train_tokenizer((row[side] for row in rows for side in ("source", "target")), size)
    model = toy_comet.new_model(folder, tokenizer, size)
    # The same model around an encoder of another shape than the toy's.
    config = folder / toy_comet.ENCODER / "config.json"
    files.write_json(config, files.read_json(config) | (XLMR_CONFIG if large else {"num_hidden_layers": 2}))
    hparams = {name: value for name, value in model.hparams.items() if name != "class_identifier"}
    with contextlib.chdir(folder):
        model = type(model)(**hparams)
    path = toy_comet.write_checkpoint(model, folder)
    del model
    model = load_comet(path, hour.device)
    segments = [(row["source"], row["target"], other["target"]) for row, other in itertools.pairwise(rows)]
    list(unpadded_scores(model, segments[:2]))
    spent, together = seconds(lambda: dict(unpadded_scores(model, segments)), hour.device)
    expected = f"{COMET_ON_H100:,} texts/s on an H100" if large else ""
    yield Row("COMET" + ", XLM-R large" * large, expected, f"{len(segments) / spent:,.0f} texts/s", MEASURED)
    alone = [dict(unpadded_scores(model, [one]))[one] for one in segments[:16]]
    same = sum(one == together[segment] for one, segment in zip(alone, segments, strict=False))
    good = same == len(alone) and len({*alone}) > 1
    yield Row(
        "COMET, company",
        f"{len(alone)} of {len(alone)} as alone",
        f"{same} of {len(alone)} as alone",
        OK if good else FAILED,
    )


def probes(hour: Hour) -> Iterator[Row]:
    """Mean entropy and repeated tokens of all-mask canvases, by slots from the reference; nothing is decoded."""
    model = tiny(hour.direction) if hour.shape == "tiny" else released(hour.direction)
    translator = Translator.load(**model, device=hour.device, dtype=hour.precision)
    prompt, rows = translator.prompt, files.read_jsonl(hour.testset, ("id", "source", "target"))[:PROBED]
    lengths = [len(prompt.tokens(row["target"])) + 1 for row in rows]
    rows = [(row, length) for row, length in zip(rows, lengths, strict=True) if length + min(OFFSETS) >= SHORTEST]
    requests = [Probe(prompt.encode(row["source"]), length + offset) for offset in OFFSETS for row, length in rows]
    engine = Engine(translator.backbone, fill=TOKENS[hour.device] if hour.device == "cuda" else None)
    readings = Runner(lambda: engine, engine.ledger).answers(requests)
    for place, offset in enumerate(OFFSETS):
        of_offset = readings[place * len(rows) : (place + 1) * len(rows)]
        entropy, repeated = (statistics.fmean(map(read, of_offset)) for read in (mean_entropy, repeats))
        measured = f"entropy {entropy:.3f} nats, repeats {repeated:.2f}, {len(rows)} pairs"
        yield Row(f"probes, {offset:+d} slots from the reference", "", measured, MEASURED)


STEPS: dict[str, Callable[[Hour], Iterator[Row]]] = {
    "weights": write_weights,
    "check": check,
    "decoding": decoding,
    "company": company,
    "precision": precision,
    "training": training,
    "comet": comet,
    "probes": probes,
}
OF_CANVASES = ("company", "precision")  # which an autoregressive backbone has not


def starter(device: str) -> Any:
    """How processes are started. A GPU cannot be used after a fork; on a CPU, a fork saves the imports."""
    return multiprocessing.get_context("spawn" if device == "cuda" else "fork")


def step(name: str, hour: Hour, until: float) -> Iterator[Row]:
    """The rows of a step in a process of its own, as soon as they are known; one that says why where it fails."""
    here, there = (context := starter(hour.device)).Pipe(duplex=False)
    process = context.Process(target=_send, args=(name, hour, there))
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
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
    if reason:
        yield Row(name, "", reason, FAILED)


def _send(name: str, hour: Hour, rows: Any) -> None:
    os.setsid()  # a step that is stopped takes its own processes with it
    torch.set_num_threads(1)  # for which a CPU gives the same bits in any company
    try:
        if hour.family.causal and name in OF_CANVASES:
            rows.send(Row(name, "", "an autoregressive backbone has no canvases", SKIPPED))
            return
        for row in STEPS[name](hour):
            rows.send(row)
    except Exception as error:
        traceback.print_exc()
        rows.send(Row(name, "", f"{type(error).__name__}: {error}", FAILED))


def table(hour: Hour, rows: Iterable[Row]) -> str:
    head = f"{hour.shape}, {hour.precision}, {time.strftime('%Y-%m-%d')}; {describe(hour.device)}"
    return "\n".join([head, "", "| step | expected | measured | verdict |", "|---|---|---|---|", *map(str, rows)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=FAMILIES, default="llada-8b")
    parser.add_argument("--device", choices=LOADS, default="cuda")
    parser.add_argument(
        "--work", type=Path, default=Path("results/first-hour"), help="folder of the weights and all other files"
    )
    parser.add_argument("--minutes", type=float, default=60, help="steps that run longer are stopped")
    parser.add_argument("--only", nargs="+", choices=STEPS, metavar="STEP", default=list(STEPS), help=", ".join(STEPS))
    parser.add_argument("--testset", type=Path, help="pairs for the step probes")
    parser.add_argument("--direction", default="en-zh", help="of these pairs")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("torch finds no GPU here; on a CPU: --shape tiny --device cpu")
    testset = options.testset and options.testset.absolute()
    hour = Hour(options.device, options.shape, options.work.absolute(), testset, options.direction)
    until, rows = time.monotonic() + 60 * options.minutes, []
    for name in STEPS:
        if name == "probes" and not testset:
            continue
        if name == "weights" or name in options.only:  # all need them
            for row in step(name, hour, until):
                print(row, flush=True)
                rows.append(row)
    text = table(hour, rows)
    files.write_text(hour.work / "first_hour.md", text + "\n")
    print(f"\n{text}")
    sys.exit(any(row.verdict == FAILED for row in rows))


if __name__ == "__main__":
    main()
