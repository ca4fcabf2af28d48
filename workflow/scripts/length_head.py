"""Train a run's length head on training pairs; they and the dev pairs take the test set's place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from entropy_valley import errors, files, run
from entropy_valley.engine.context import SHORTEST
from entropy_valley.engine.job import Job, arguments
from entropy_valley.progress import progress

if TYPE_CHECKING:
    import torch


def main() -> None:
    from entropy_valley.canvas.length_head import fit, report

    parser = arguments(__doc__)
    parser.add_argument("--dev", type=Path, required=True, help="pairs on which the head's error is reported")
    parser.add_argument("--info", type=Path, required=True, help="where that report goes, as JSON")
    options = parser.parse_args()
    with Job(options) as job:
        settings = dict(job.spec["training"])
        # A corpus lies in the order of its keyed hash: its beginning is a random sample.
        train = job.rows[: settings.pop("pairs")]
        job.rows = train + files.read_jsonl(options.dev, ("id", "source", "target"))
        kept = [place for place in range(len(job.rows)) if job.inputs.fits(place, SHORTEST)]
        cut = sum(place < len(train) for place in kept)
        if not cut:
            raise errors.InputError(options.testset, "no training pair fits the context", "Give shorter pairs.")
        lengths = [len(job.identity.prompt.tokens(job.rows[place]["target"])) + 1 for place in kept]
        states = _states(job, kept)
        head = fit(states[:cut], lengths[:cut], seed=job.spec["seed"], **settings)
        parts = {"train": slice(None, cut), "dev": slice(cut, None)}
        info = {name: report(head, states[part], lengths[part]) for name, part in parts.items()}
        digests = {"data_digest": files.file_digest(options.testset), "dev_digest": files.file_digest(options.dev)}
        head.write(options.out)
        files.write_json(options.info, {**info, "signature": {**job.signature("length head"), **digests}})
        job.report("length head")


def _states(job: Job, places: list[int]) -> torch.Tensor:
    """The mean state of each row's prompt, (rows, width) in float32 on the model's device."""
    import torch

    from entropy_valley.canvas.length_head import mean_states

    prompts = [job.inputs.prompts[place] for place in places]
    states = torch.empty(len(prompts), job.backbone.model.config.hidden_size, device=job.backbone.device)
    with progress(total=len(prompts), description="prompts", unit="pair") as bar:
        for index, state in mean_states(job.backbone, prompts, job.ledger, job.token_budget):
            states[index] = state
            bar.update()
    return states


if __name__ == "__main__":
    run.script(main)
