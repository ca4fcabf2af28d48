"""From a config and what the command line says to loaded translators."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from entropy_valley.backbone import adapters
from entropy_valley.backbone.families import find_family
from entropy_valley.canvas.length_methods import find_method
from entropy_valley.errors import InputError, listed
from entropy_valley.experiment import Experiment, paths
from entropy_valley.experiment.chain import FITTED, Chain
from entropy_valley.experiment.matrix import Run
from entropy_valley.experiment.params import jobs
from entropy_valley.experiment.params.methods import needs_anchors, reassigned_methods, selector_settings
from entropy_valley.spelling import unknown

if TYPE_CHECKING:
    from entropy_valley.decoding.translator import Translator


@dataclass(frozen=True)
class Chosen:
    """What is to be loaded: a checkpoint, an adapter (None: the bare checkpoint), the params of a decoding job, and the
    settings of each length method.

    ``beside`` is the folder of the run, with its length statistics and length head; ``make`` the command that makes a
    missing file.
    """

    run: Run
    backbone: Path
    adapter: Path | None
    beside: Path
    dev: Path
    spec: Mapping[str, Any]
    methods: Mapping[str, Mapping[str, Any]]
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
        spec = json.loads(jobs.decoding(experiment, run, order, steps))
        folder = Path(paths.adapter_run(experiment, run).folder(experiment.results)) / "adapter"
        adapter = None if experiment.backbones[run.backbone].zero_shot else folder
        chosen = cls(
            run,
            Path(paths.backbone_folder(experiment, run.backbone)),
            given.adapter or adapter,
            (given.adapter or folder).parent,
            Path(experiment.results, "corpus", run.direction, "dev.jsonl"),
            spec if given.prompt is None else {**spec, "prompt": given.prompt},
            {name: _settings(experiment, run.direction, name, given.ratios) for name in given.length},
            make,
        )
        chosen._require(chosen.backbone / "config.json", Chain(experiment).backbone(run.backbone).paths[0])
        if chosen.adapter:
            chosen._require(chosen.adapter / adapters.SETTINGS, chosen.adapter / adapters.FACTS)
        return chosen

    def _require(self, file: Path, target: str | Path) -> Path:
        if not file.is_file():
            raise InputError(file, "file not found", f"Make it: {self.make.format(target)}")
        return file

    def load(self, device: str, threads: int) -> dict[str, Translator]:
        """A translator for each length method, all on one loaded model."""
        import torch

        from entropy_valley.backbone.prompt import Prompt
        from entropy_valley.decoding.prompt_cache import refresh_of
        from entropy_valley.decoding.translator import Translator
        from entropy_valley.engine import loaded
        from entropy_valley.engine.engine import Engine
        from entropy_valley.engine.invariance import padded_tokens

        spec = self.spec
        if device == "cuda" and not torch.cuda.is_available():
            raise InputError("--device", "cuda, but torch sees no GPU here", "Give --device cpu.")
        torch.set_num_threads(threads)
        backbone = loaded.load(spec, self.backbone, self.adapter, device)
        prompt = Prompt(spec["prompt"], backbone.tokenizer, backbone.bos_id if spec["bos"] else None)
        masks = "mask_token" in spec
        fill, compiles = padded_tokens(spec, device, None), spec.get("compile_layers", False)
        engine = Engine(backbone, fill=fill, reveals_masks=masks, compile_layers=compiles)
        denoising = [spec[key] for key in ("order", "steps", "schedule", "order_settings")]
        return {
            name: Translator(backbone, prompt, method, *denoising, head, engine, masks, refresh_of(spec))
            for name, (method, head) in self._made(device).items()
        }

    def _made(self, device: str) -> dict[str, tuple[Any, Any]]:
        """Each length method, and the length head that it uses."""
        from entropy_valley.canvas.length_head import LengthHead
        from entropy_valley.canvas.selection import read_method
        from entropy_valley.canvas.statistics import LengthStatistics

        made = {}
        for name, settings in self.methods.items():
            kind, statistics, head = find_method(name, settings), None, None
            if getattr(kind, "uses_statistics", False):
                statistics = LengthStatistics.read(self._fit("length_statistics"))
            if getattr(kind, "uses_length_head", False):
                head = LengthHead.read(self._fit("length_head"), device)
            made[name] = read_method(name, settings, statistics), head
        return made

    def _fit(self, rule: str) -> Path:
        file = self.beside / FITTED[rule][0]
        return self._require(file, file)


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
