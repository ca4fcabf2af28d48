"""Fine-tune one backbone on one direction with one seed; a killed run resumes."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
from pathlib import Path

from entropy_valley import provenance, run
from entropy_valley.backbone.adapter_card import write_card
from entropy_valley.backbone.adapters import FACTS
from entropy_valley.backbone.checkpoint import MANIFEST, MANIFEST_HELP, checkpoint_digest, require_same

SPARED = {"auto": "auto", "true": True, "false": False}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", type=run.params, help="the rule's params: a JSON file, or JSON")
    parser.add_argument("--corpus", type=Path, required=True, help="train.jsonl")
    parser.add_argument("--backbone", type=Path, required=True, help="checkpoint folder in its released layout")
    parser.add_argument("--manifest", type=Path, help=MANIFEST_HELP)
    parser.add_argument("--out", type=Path, required=True, help="adapter folder, written whole")
    parser.add_argument("--work", type=Path, required=True, help="checkpoints, outside any declared output")
    parser.add_argument("--logs", type=Path, required=True, help="TensorBoard files and run.json")
    parser.add_argument("--checkpoint-every", type=int, required=True, metavar="STEPS")
    parser.add_argument("--activation-checkpointing", choices=SPARED, default="auto", help="less memory, same numbers")
    parser.add_argument("--processes", type=int, help="how many train; the params may name those of a finished adapter")
    parser.add_argument("--wandb", metavar="PROJECT", help="log to Weights & Biases too")
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--tested", type=Path, action="append", default=[], help="a test set whose references must fit, if it is there"
    )
    parser.add_argument("--threads", type=int, default=1, help="CPU threads of all processes")
    arguments = vars(parser.parse_args())
    arguments["activation_checkpointing"] = SPARED[arguments["activation_checkpointing"]]
    arguments["tested"] = list(filter(Path.is_file, arguments["tested"]))
    if manifest := arguments.pop("manifest"):
        require_same(arguments["backbone"], manifest)
    count, threads = arguments.pop("processes") or arguments["spec"]["processes"], arguments.pop("threads")

    from entropy_valley.training import processes, sft

    job = sft.Job(**arguments)
    if not job.is_finished():
        job = dataclasses.replace(job, spec={**job.spec, "processes": count})
        processes.launch(count)
        processes.use_threads(max(1, threads // count))
    backbone = {job.backbone: checkpoint_digest(job.backbone)}
    inputs = [job.corpus, *filter(Path.is_file, [job.backbone / MANIFEST])]
    record = provenance.made("train", job.spec, inputs, [job.out / FACTS], known=backbone, whole_folder=True)
    with record if processes.is_first() else contextlib.nullcontext():
        sft.finetune(job)
    if processes.is_first():
        write_card(job.out)  # behind the record: it may be edited


if __name__ == "__main__":
    run.script(main)
