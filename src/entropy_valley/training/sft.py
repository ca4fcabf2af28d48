"""LoRA fine-tuning: an explicit loop around a DeepSpeed engine; masked-diffusion or next-token loss."""

import functools
import os
import shutil
import sys
import time
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter

from entropy_valley import errors, files, machine
from entropy_valley.model.checkpoint import checkpoint_digest, read_origin
from entropy_valley.model.load import Backbone, load_backbone
from entropy_valley.model.prompt import Prompt, attention_of, bos_of
from entropy_valley.settings import JsonObject
from entropy_valley.training import adapter, deepspeed, memory, processes
from entropy_valley.training.adapter import attach_lora
from entropy_valley.training.log import HISTORY, Report, reports, require_finite
from entropy_valley.training.loss import Batches, Canvases, Pairs, Passes, fitting_pairs, longest_pair, seed_of
from entropy_valley.training.settings import AUTO, Auto, Loss, Training


@dataclass(frozen=True)
class Finetuning:
    """One fine-tuning: the params of the rule ``train`` and its files.

    ``work`` holds checkpoints, ``logs`` TensorBoard files and ``run.json``; only ``out`` is a result. The other fields
    are those of :class:`.settings.Training`. More ``processes``, and other ``micro_tokens``, draw other dropout masks:
    the adapter is then another one, but no better, so a finished one stays.
    """

    spec: JsonObject
    corpus: Path
    backbone: Path
    out: Path
    work: Path
    logs: Path
    checkpoint_every: int
    processes: int = 1
    micro_tokens: int | Auto = AUTO
    device: str = "cpu"
    activation_checkpointing: bool | Auto = AUTO

    @property
    def settings(self) -> Training:
        given = {"processes": self.processes, "micro_tokens": self.micro_tokens, "precision": self.spec["precision"]}
        return Training.model_validate(given | dict(self.spec["training"]))

    @functools.cached_property
    def facts(self) -> JsonObject:
        """What the adapter is trained on and how, as ``adapter.json`` has it."""
        return {
            "data_digest": files.file_digest(self.corpus),
            "seed": self.spec["seed"],
            "spec": self.spec,
            "backbone_digest": checkpoint_digest(self.backbone),
            "family": self.spec["family"],
        }

    @property
    def key(self) -> str:
        """What checkpoints belong to; training goes on with the packages that it began with."""
        return files.digest([self.facts, self.processes, self.micro_tokens, adapter.versions()])

    @property
    def kept(self) -> Path:
        """A folder with links to the adapter's files: Snakemake removes them before it repeats the job."""
        return self.work.with_name(f"{self.work.name}.finished")

    def is_finished(self) -> bool:
        """Whether ``out`` holds the adapter already; no model is loaded."""
        return adapter.is_finished(self.out, self.facts)


AS_JSON = TypeAdapter(Finetuning)  # how the processes that train get a job


def run(job: Finetuning, threads: int) -> None:
    """Do what :func:`finetune` does in as many processes as the job wants; they share ``threads`` CPU threads.

    Snakemake removes the adapter's files before it repeats the job. Those of the wanted adapter are put back.
    """
    if job.out.is_dir() and not job.is_finished() and adapter.is_finished(job.kept, job.facts):
        shutil.copytree(job.kept, job.out, dirs_exist_ok=True)
    if job.is_finished():
        return
    each = max(1, threads // job.processes)
    if job.processes > 1:
        text = AS_JSON.dump_json(job).decode()
        processes.launch(job.processes, "entropy_valley.training.sft", text, str(each))
    else:
        processes.use_threads(each)
        finetune(job)


def finetune(job: Finetuning) -> None:
    """Train an adapter, resuming from ``job.work``, and write it to ``job.out`` if it passes the checks.

    On a CPU the same job gives the same bytes, even if it was killed and resumed. Of several runs that train the same
    adapter one works, and the others wait.
    """
    rank = processes.join(job.device, job.settings.processes)
    with files.locked(job.work) if rank == 0 else nullcontext():
        torch.distributed.barrier()  # until the first process has the lock
        if not job.is_finished():  # by then, by another run
            train(job, rank)
    processes.leave()


def train(job: Finetuning, rank: int) -> None:
    """What :func:`finetune` does in a group of processes that is there already."""
    settings, attention = job.settings, attention_of(job.spec)
    need = memory.demand_here(job.device, job.backbone, job.spec["family"], settings, attention)
    backbone = load_backbone(
        job.backbone,
        job.spec["family"],
        device=job.device,
        dtype=settings.precision,
        shifted=job.spec["shifted"],
        attention=attention,
    )
    checkpoints = deepspeed.Checkpoints(job.work, job.key, rank)
    pairs = _pairs(job, backbone)
    # A training that goes on keeps the size of its passes: another one draws other dropout masks.
    tokens = checkpoints.progress().get("micro_tokens", settings.micro_tokens)
    padding = _loss(job, backbone).eos_padding
    longest = int(pairs.lengths.max()) + (0 if padding == "batch" else padding)
    plan = memory.plan(need, tokens, job.activation_checkpointing, longest)
    batches = _batches(job, backbone, pairs, Passes(plan.micro_tokens, settings.processes))
    steps = settings.steps(len(batches.order))
    kept = settings.kept(steps)
    attach_lora(backbone.model, backbone.family, settings.lora, job.spec["seed"])
    backbone.model.recompute, backbone.model.compiles = plan.activation_checkpointing, settings.compile_layers
    model = deepspeed.build(deepspeed.Objective(backbone.model, backbone.shifted).train(), settings, steps)
    with processes.float32_products(job.device) as products, plan.explained():
        done = _loop(_Trainer(model, batches, rank, settings.processes), checkpoints, job, kept)
    measured = memory.measured(job.device, plan)  # all processes ask
    run = {"seconds": round(done["seconds"], 1), "tokens": done["tokens"], **measured}
    if rank == 0:
        facts = {**job.facts, "steps": kept, "pairs": len(pairs), "dropped": pairs.dropped}
        if settings.too_long == "cut":
            facts["cut"] = pairs.cut
        facts |= {"processes": settings.processes, "micro_tokens": plan.micro_tokens, "float32_products": products}
        backbone.model.eval().compiles = False
        origin = {"base_model_name_or_path": read_origin(job.backbone).get("repository")}  # never a local path
        adapter.save(backbone, job.out, settings.lora.peft | origin, facts, done["history"])
        files.write_json(job.logs / "run.json", run)
        for folder in (job.work, job.kept):
            shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):  # a disk without hard links keeps none
            shutil.copytree(job.out, job.kept, copy_function=os.link)


def _pairs(job: Finetuning, backbone: Backbone) -> Pairs:
    prompt = Prompt(job.spec["prompt"], backbone.tokenizer, bos_of(job.spec["bos"], backbone.bos_id))
    rows = files.read_jsonl(job.corpus, ("source", "target"))[: job.settings.limit]
    limit = longest_pair(min(job.settings.max_tokens, backbone.context), _loss(job, backbone).eos_padding)
    tokens = ((prompt.encode(row["source"]), prompt.tokens(row["target"])) for row in rows)
    return fitting_pairs(tokens, backbone.eos_id, limit, cut=job.settings.too_long == "cut")


def _loss(job: Finetuning, backbone: Backbone) -> Loss:
    """A causal family gets no padding: it would learn nothing from it, since decoding stops at the first EOS."""
    loss = job.settings.loss
    return loss.model_copy(update={"eos_padding": 0, "padding_read": False}) if backbone.family.causal else loss


def _batches(job: Finetuning, backbone: Backbone, pairs: Pairs, passes: Passes) -> Canvases:
    """The batches of every step. The order inside a batch depends on the tokenizer."""
    loss, seed = _loss(job, backbone), job.spec["seed"]
    order = Batches(pairs.lengths, job.settings.global_batch, seed)
    mask = None if backbone.family.causal else backbone.mask_id
    return Canvases(pairs, order, loss, mask, seed, passes, prefix=backbone.prefix)


@dataclass(frozen=True)
class _Trainer:
    """Runs optimiser steps; a step depends on its number and the state, not on earlier random draws."""

    model: Any
    batches: Canvases
    rank: int
    world: int

    def step(self, number: int) -> dict[str, float]:
        """Run optimiser step ``number`` (from 0); loss, mean unweighted CE, learning rate, gradient norm, tokens."""
        parts, rate = self.batches[number], self.model.get_lr()[0]
        sums = torch.zeros(2, dtype=torch.float64, device=self.model.device)
        mine = parts[self.rank :: self.world]
        for micro, batch in enumerate(mine):
            # Dropout uses torch's global stream: seed it, so that a resumed step draws the same.
            torch.manual_seed(seed_of(self.batches.seed, "dropout", number, micro, self.rank))
            self.model.set_gradient_accumulation_boundary(micro + 1 == len(mine))
            loss, entropies = self.model(batch.to(self.model.device))
            # The weights include the denominator of the whole batch, and the engine averages over ranks.
            self.model.backward(loss * self.world, scale_wrt_gas=False)
            self.model.step()  # after the last part
            sums += torch.stack([loss.detach(), entropies])
        if self.world > 1:
            torch.distributed.all_reduce(sums)
        loss, entropies = sums.tolist()
        return {
            "loss": loss,
            "cross_entropy": entropies / max(1, sum(len(part.rows) for part in parts)),
            "learning_rate": rate,
            "gradient_norm": float(self.model.get_global_grad_norm()),
            "tokens": sum(part.packed.input_ids.numel() for part in parts),
        }


def _loop(trainer: _Trainer, checkpoints: deepspeed.Checkpoints, job: Finetuning, steps: int) -> dict[str, Any]:
    """Run all steps that are not done; return the progress, steps before a kill included."""
    done = checkpoints.resume(trainer.model)
    first, began = done["step"], time.perf_counter() - done["seconds"]
    done["micro_tokens"] = trainer.batches.passes.tokens
    if trainer.rank == 0 and first:
        errors.note(f"continuing after step {first} of {steps}")
    shown: AbstractContextManager[Report] = nullcontext(lambda scalars: None)
    if trainer.rank == 0:
        shown = reports(job.logs, first, steps, "fine-tuning")
    with shown as report:
        for step in range(first, steps):
            scalars = trainer.step(step)
            require_finite(scalars, step, steps, job.out)
            done["history"].append([scalars[name] for name in HISTORY])
            done["tokens"] += int(scalars["tokens"])
            done |= {"step": step + 1, "seconds": time.perf_counter() - began}
            report(scalars)
            last = step + 1 == steps
            nears_limit = trainer.rank == 0 and machine.nears_its_limit()
            ending = not last and processes.first_says(nears_limit, trainer.model.device)
            if (step + 1) % job.checkpoint_every == 0 or last or ending:
                checkpoints.save(trainer.model, done)
            if ending and trainer.rank == 0:  # the others wait for it in the next step
                machine.requeue()
    return done


if __name__ == "__main__":  # one of the processes of a training: JOB THREADS
    with errors.in_one_line():
        processes.use_threads(int(sys.argv[2]))
        finetune(AS_JSON.validate_json(sys.argv[1]))
