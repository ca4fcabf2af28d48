"""From a config and what the command line says to loaded translators."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from entropy_valley.decoding.translations import OF_SET
from entropy_valley.errors import InputError, listed
from entropy_valley.experiment import Experiment, paths
from entropy_valley.experiment.matrix import DEV, Cell, Run
from entropy_valley.experiment.params import jobs
from entropy_valley.experiment.params.methods import needs_anchors, reassigned_methods, selector_settings
from entropy_valley.experiment.sets import CellSet
from entropy_valley.lengths import find_method
from entropy_valley.lengths.training_pairs import PAIRS
from entropy_valley.model import adapters
from entropy_valley.model.families import find_family
from entropy_valley.runs.inventory import Inventory
from entropy_valley.spelling import unknown

if TYPE_CHECKING:
    from entropy_valley.decoding.translator import Translator


@dataclass(frozen=True)
class Chosen:
    """What is to be loaded: a checkpoint, an adapter (None: the bare checkpoint), the params of its passes and of a
    reveal order, and the settings of each length method.

    ``corpus`` and ``store`` are of the run: what some length methods are fitted to, and where that is kept; ``fits``
    has its params. ``make`` is the command that makes a missing file.
    """

    run: Run
    backbone: Path
    adapter: Path | None
    corpus: Path
    store: Path | None
    spec: Mapping[str, Any]
    methods: Mapping[str, Mapping[str, Any]]
    fits: Mapping[str, Any]
    make: str

    @classmethod
    def of(cls, experiment: Experiment, given: argparse.Namespace) -> Chosen:
        """From the config and the command line; raises InputError for what neither has, and for missing files."""
        run, make = _run(experiment, given), "snakemake --cores 1 {}"
        if given.configfile:
            make += f" --configfile {' '.join(given.configfile)}"
        order, steps = given.order or experiment.tables.order, given.steps or experiment.tables.steps
        if needs_anchors(experiment, order):
            raise InputError("--order", f"{order} needs a gold alignment", "Give another reveal order.")
        methods = {name: _settings(experiment, run.direction, name, given.ratios) for name in given.length}
        cells = CellSet(run, "translate", tuple(Cell(run, DEV, name, order, steps) for name in methods))
        params = json.loads(jobs.translation(experiment, cells))
        spec = {key: value for key, value in params.items() if key not in OF_SET}
        spec |= {"schedule": params["schedule"], **params["orders"][order], "steps": steps}
        folder = Path(paths.adapter_run(experiment, run).folder(experiment.results)) / "adapter"
        adapter = None if experiment.backbones[run.backbone].zero_shot else folder
        chosen = cls(
            run,
            Path(paths.backbone_folder(experiment, run.backbone)),
            given.adapter or adapter,
            Path(experiment.results, "corpus", run.direction),
            Path(run.folder(f"{experiment.results}/store")) if experiment.store else None,
            spec if given.prompt is None else {**spec, "prompt": given.prompt},
            methods,
            params.get("fits", {}),
            make,
        )
        chosen._require(chosen.backbone / "config.json", Inventory(experiment, {}).backbone(run.backbone))
        if chosen.adapter:
            chosen._require(chosen.adapter / adapters.SETTINGS, chosen.adapter / adapters.FACTS)
        for name in PAIRS if chosen.fits else ():
            chosen._require(chosen.corpus / name, chosen.corpus / name)
        return chosen

    def _require(self, file: Path, target: str | Path) -> Path:
        if not file.is_file():
            raise InputError(file, "file not found", f"Make it: {self.make.format(target)}")
        return file

    def load(self, device: str, threads: int) -> dict[str, Translator]:
        """A translator for each length method, all on one loaded model."""
        import torch

        from entropy_valley.decoding.job import How, Job, refresh_of
        from entropy_valley.decoding.translator import Translator
        from entropy_valley.lengths.length_head import LengthHead
        from entropy_valley.lengths.select import needed_head, read_method
        from entropy_valley.lengths.training_pairs import Fits
        from entropy_valley.model.prompt import Prompt

        if device == "cuda" and not torch.cuda.is_available():
            raise InputError("--device", "cuda, but torch sees no GPU here", "Give --device cpu.")
        how = How(self.backbone, self.adapter, None, self.corpus, self.store, device, threads)
        with Job(self.spec, how) as job:
            fits, backbone = Fits.of(job, self.fits), job.backbone
        prompt = Prompt(self.spec["prompt"], backbone.tokenizer, backbone.bos_id if self.spec["bos"] else None)
        denoising = [self.spec[key] for key in ("order", "steps", "schedule", "order_settings")]
        shared = (job.engine, job.reveals_masks, refresh_of(self.spec))
        made = {}
        for name, settings in self.methods.items():
            method = read_method(name, settings, fits.statistics)
            weights = needed_head(name, method, fits)
            head = LengthHead.of(weights, device) if weights else None
            made[name] = Translator(backbone, prompt, method, *denoising, head, *shared)
        return made


def _run(experiment: Experiment, given: argparse.Namespace) -> Run:
    matrix = experiment.matrix
    direction = given.direction or (matrix.directions[0] if len(matrix.directions) == 1 else None)
    if direction is None:
        raise InputError("--direction", "not given, and the matrix has several", f"Give {_one_of(matrix.directions)}.")
    backbone = given.backbone or experiment.tables.backbone
    _known("--direction", direction, experiment.directions)
    _known("--backbone", backbone, experiment.backbones)
    if find_family(experiment.backbones[backbone].family).causal:
        problem = f"{backbone} is autoregressive, and has no canvas"
        raise InputError("--backbone", problem, "Give a masked diffusion backbone.")
    return Run(direction, backbone, given.seed or matrix.seeds_of.get(backbone, matrix.seeds)[0])


def _settings(experiment: Experiment, direction: str, name: str, ratios: list[float] | None) -> dict[str, Any]:
    """The settings of a length method for a direction, with the ratios of the command line."""
    _known("--length", name, [method for method, block in experiment.length_methods if block])
    if name in reassigned_methods(experiment):
        raise InputError("--length", f"{name} deals the ratios of a whole test set", "Give another length method.")
    settings = selector_settings(experiment, name, direction)
    if ratios is not None and "ratios" not in settings:
        raise InputError("--ratios", f"{name} has no ratios", "Leave out one of the two.")
    if getattr(find_method(name, settings), "sees_reference", False):
        raise InputError("--length", f"{name} needs the reference of each sentence", "Give another length method.")
    if ratios is not None:
        settings["ratios"] = ratios if isinstance(settings["ratios"], list) or len(ratios) > 1 else ratios[0]
    return settings


def _known(option: str, name: str, known: Any) -> None:
    if name not in known:
        problem = unknown(name, f"the config has no {name!r}", sorted(known), "it has")
        raise InputError(option, problem, "Give one of its names.")


def _one_of(names: Any) -> str:
    return f"one of: {listed(sorted(names))}"
