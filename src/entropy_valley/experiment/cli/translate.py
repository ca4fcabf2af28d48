"""`entropy-valley translate`: sentences from a file or stdin, one a line, to translations on stdout.

The command comes first, then what it loads, then how lines are read and translations written.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from tqdm import tqdm

from entropy_valley import files, hub
from entropy_valley.decoding.canvas import CachePolicy
from entropy_valley.errors import InputError, listed, unknown
from entropy_valley.experiment.cli import configs
from entropy_valley.experiment.cli.commands import FILE_FIRST
from entropy_valley.experiment.config import Experiment, load_files, params, paths
from entropy_valley.experiment.config.load import INSTALLED, RELEASED
from entropy_valley.experiment.config.matrix import DEV, Cell, CellSet, Run
from entropy_valley.experiment.config.methods import method_settings, reassigned_methods
from entropy_valley.experiment.config.schema import UserMethod, needs_anchors
from entropy_valley.lengths import find_method, make_method
from entropy_valley.model import adapters
from entropy_valley.model.families import find_family
from entropy_valley.progress import progress
from entropy_valley.shipped import HUMAN
from entropy_valley.texts import checked_sentence, decoded
from entropy_valley.translation.job import PAIRS, Execution

if TYPE_CHECKING:
    from entropy_valley.translation.translator import Translation, Translator, TypicalEntropy

SLOW = 1.0  # seconds a sentence, from which on they are said
Line = tuple[int, str]  # its number, from 1, and its text


def translate(arguments: argparse.Namespace) -> None:
    if arguments.file and not arguments.file.is_file():
        raise files.not_there(arguments.file)
    below = [name for name, given in ((RELEASED, arguments.released), (HUMAN.config, arguments.tiny)) if given]
    experiment = load_files(configs.paths([*(configs.root() / name for name in below), *arguments.configfile]))
    chosen = Chosen(experiment, arguments)
    translators = chosen.load()
    _say(*_loaded(chosen, next(iter(translators.values()))))
    dev = Path(experiment.results, "corpus", chosen.run.direction, "dev.jsonl")
    usual: dict[str, TypicalEntropy] = {}
    place = str(arguments.file or "stdin")
    output = _Output(place, translators, usual, arguments.jsonl)
    whole = any(one.denoising.looks_at_distractor for one in translators.values())
    missing = 0
    source = arguments.file.open("rb") if arguments.file else contextlib.nullcontext(sys.stdin.buffer)
    with source as stream, progress(description="translate", unit=" lines") as bar:
        lines = read_lines(stream, place)
        while batch := list(itertools.islice(lines, None if whole else arguments.batch)):
            if not bar.n:
                _say(*_slow(batch, translators.values()))
                usual.update({} if arguments.no_hints else _usual(dev, translators))  # as long as many sentences
            missing += output.translate(batch)
            bar.update(len(batch))
    if missing:
        _say(f"{missing} translation{'s are' if missing > 1 else ' is'} missing, see above")
        sys.exit(1)


def _loaded(chosen: Chosen, translator: Translator) -> Iterator[str]:
    """What the translations depend on."""
    spec, backbone, folder = chosen.spec, translator.backbone, chosen.execution.adapter
    place = f"{chosen.execution.backbone} (digest {backbone.digest[:12]})"
    yield f"backbone: {chosen.run.backbone}, {place}, {spec['precision']}"
    if folder is None:
        yield "adapter: none, the bare checkpoint"
    else:
        digest = adapters.read_adapter(folder, backbone.family).digest
        trained = adapters.read_facts(folder).get("spec", {})
        direction = f", trained on {trained['direction']}" if "direction" in trained else ""
        yield f"adapter: {folder} (digest {digest[:12]}){direction}"
        if trained.get("prompt", spec["prompt"]) != spec["prompt"]:
            yield f"note: the adapter was trained with another prompt: {trained['prompt']!r}"
    yield f"prompt: {spec['prompt']!r}"
    schedule = f", {spec['steps']} steps, schedule {spec['schedule']}" if translator.denoising.order else ""
    yield f"order: {translator.denoising.label}{schedule}"  # a variable-length decoder has neither
    if cache := CachePolicy.of(spec):
        yield f"approximate: {cache.name}"
    for name, settings in chosen.methods.items():
        yield f"length: {name} {json.dumps(settings)}"


def _slow(lines: Sequence[Line], translators: Iterable[Translator]) -> Iterator[str]:
    """How long a line takes on a CPU, if it is a second or more; the first line that is not blank stands for all."""
    first = next((text for _, text in lines if text), "")
    timed = [one.seconds(first) for one in translators if one.backbone.device.type == "cpu"]
    if (seconds := sum(timed)) >= SLOW:
        yield f"about {seconds:.0f} s a sentence on this CPU"


def _usual(dev: Path, translators: Mapping[str, Translator]) -> dict[str, TypicalEntropy]:
    """What is usual for each method, on development pairs of the direction."""
    from entropy_valley.translation.translator import TypicalEntropy

    if not dev.is_file():
        return dict.fromkeys(translators, TypicalEntropy())
    sources = [row["source"] for row in files.read_jsonl(dev, ("source",))]
    return {name: TypicalEntropy.of(one, sources, str(dev)) for name, one in translators.items()}


def _say(*lines: str) -> None:
    """To stderr, above the progress bar."""
    for line in lines:
        tqdm.write(line, file=sys.stderr)


# --- What is loaded: chosen by the config and the command line.


class Chosen:
    """What is to be loaded, and how it runs: ``spec`` has the params of its passes and of a reveal order, ``methods``
    the settings of each length method, and ``fits`` what some of these are fitted by."""

    def __init__(self, experiment: Experiment, given: argparse.Namespace) -> None:
        """From the config and the command line; raises InputError for what neither has, and for missing files.

        What is released is downloaded where the workflow has not done so.
        """
        from entropy_valley.model import load

        run, make = _run(experiment, given), "snakemake --cores 1 {}"
        experiment = _with_own_classes(experiment, run.direction, given.length)
        if given.adapter and not (given.adapter / adapters.SETTINGS).is_file():  # before anything is downloaded
            problem = f"{given.adapter}: there is no {adapters.SETTINGS}"
            raise InputError("--adapter", problem, "Give the folder of an adapter in PEFT's format.")
        if configfiles := [*([HUMAN.config] if given.tiny else []), *given.configfile]:
            make += f" --configfile {' '.join(configfiles)}"
        order, steps = given.order or experiment.tables.order, given.steps or experiment.tables.steps
        if needs_anchors(experiment, order):
            raise InputError("--order", f"{order} needs a gold alignment", "Give another reveal order.")
        self.run = run
        self.methods = {name: _settings(experiment, run.direction, name, given.ratios) for name in given.length}
        cells = CellSet(run, "translate", tuple(Cell(run, DEV, name, order, steps) for name in self.methods))
        request = json.loads(params.translation(experiment, cells))
        self.fits = request.get("fits", {})
        self.spec = {**request, **request["orders"][order], "steps": steps}
        if given.prompt is not None:
            self.spec["prompt"] = given.prompt
        corpus = Path(experiment.results, "corpus", run.direction)
        store = Path(run.folder(f"{experiment.results}/store")) if experiment.store else None
        device = given.device or experiment.device
        load.require_device(device, "--device cpu")
        backbone, adapter = _folders(experiment, run, given)
        needed: list[tuple[Path, str | Path]] = [
            (backbone / "config.json", paths.backbone_file(experiment, run.backbone, run.seed))
        ]
        if adapter:
            needed.append((adapter / adapters.SETTINGS, adapter / adapters.FACTS))
        if self.fits:
            needed += [(corpus / name, corpus / name) for name in PAIRS]
        for file, target in needed:
            if not file.is_file():
                there = "Go to the root of the repository. " if configs.root() == INSTALLED else ""
                raise InputError(file, "file not found", f"{there}Make it: {make.format(target)}")
        self.execution = Execution(backbone, adapter, corpus, store, device, given.threads)

    def load(self) -> dict[str, Translator]:
        """A translator for each length method, all on one loaded model."""
        from entropy_valley.model.prompt import Prompt
        from entropy_valley.translation.fits import Fits
        from entropy_valley.translation.job import RunModel
        from entropy_valley.translation.translator import Translator

        model = RunModel(self.spec, self.execution)
        with model.store:
            fits, backbone = Fits.of(model, self.fits), model.backbone
        prompt = Prompt(self.spec["prompt"], backbone.tokenizer, backbone.bos_id if self.spec["bos"] else None)
        translators = {}
        for name, settings in self.methods.items():
            method = fits.method(name, settings)
            translators[name] = Translator(
                backbone,
                prompt,
                method,
                **{key: self.spec[key] for key in ("order", "steps", "schedule", "order_settings")},
                length_head=fits.length_head(method, self.execution.device),
                engine=model.engine,
                mask_token=model.reveals_masks,
                cache=CachePolicy.of(self.spec),
            )
        return translators


def _run(experiment: Experiment, given: argparse.Namespace) -> Run:
    matrix = experiment.matrix
    only = matrix.directions[0] if len(matrix.directions) == 1 else None
    direction = given.released or given.tiny or given.direction or only
    for option in ("backbone", "seed"):
        if given.tiny and getattr(given, option):
            raise InputError(f"--{option}", "not with --tiny, which is one model", "Leave out one of the two.")
    if direction is None:
        remedy = f"Give one of: {listed(sorted(matrix.directions))}."
        raise InputError("--direction", "not given, and the matrix has several", remedy)
    backbone = given.backbone or experiment.tables.backbone
    if given.tiny and not given.adapter:
        HUMAN.adapter(direction)  # raises where there is none
    _require_known("--direction", direction, experiment.directions)
    _require_known("--backbone", backbone, experiment.backbones)
    if find_family(experiment.backbones[backbone].family).causal:
        problem = f"{backbone} is autoregressive, and has no canvas"
        raise InputError("--backbone", problem, "Give a masked diffusion backbone.")
    run = Run(direction, backbone, given.seed or matrix.seeds_of.get(backbone, matrix.seeds)[0])
    if experiment.adapters == "released" and not experiment.backbones[backbone].zero_shot:
        trained = paths.adapter_run(experiment, run)
        released = experiment.released.get(trained.backbone, {})
        if trained.seed not in released.get(trained.direction, {}):
            problem = f"the config has no adapter of {trained.backbone} for {trained.direction}, seed {trained.seed}"
            names = [f"{name} seed {seed}" for name, seeds in released.items() for seed in seeds]
            raise InputError("released", problem, f"Of {trained.backbone} it has {listed(names) or 'none'}.")
    return run


def _folders(experiment: Experiment, run: Run, given: argparse.Namespace) -> tuple[Path, Path | None]:
    """The folders of the checkpoint and of the adapter (None: the bare checkpoint).

    With `adapters: released` they are the workflow's where it has them. Else the checkpoint is fetched where the
    workflow would keep it, or without a config.yaml in this folder to this user's downloads, and so is the adapter.
    LLaDA-tiny's come with this package.
    """
    if given.tiny:
        return HUMAN.checkpoint, given.adapter or HUMAN.adapter(run.direction)
    backbone = Path(paths.backbone_folder(experiment, run.backbone, run.seed))
    own = paths.adapter_folder(experiment, run)
    adapter: Path | None = given.adapter or (Path(own) if own else None)
    if experiment.adapters != "released":
        return backbone, adapter
    from entropy_valley.model import load

    agreed = given.yes or experiment.confirm, "--yes"
    origin = paths.checkpoint_of(experiment, run.backbone)
    if experiment.backbones[origin].hub and not experiment.backbones[run.backbone].folder:
        spec = json.loads(params.hub(experiment, origin))
        if configs.root() == INSTALLED:
            backbone = hub.place(spec["repository"], spec["revision"])
        load.fetch(spec, backbone, False, *agreed)
    if adapter and not given.adapter and not (adapter / adapters.SETTINGS).is_file():
        trained = paths.adapter_run(experiment, run)
        section = paths.released_adapter(experiment, trained)
        key = f"`released.{trained.backbone}.{run.direction}.{run.seed}.folder`"
        if section.folder:
            adapter = Path(section.folder)
        elif section.repository:
            adapter = load.kept_adapter(section.repository, section.revision, section.subfolder, key, *agreed)
    return backbone, adapter


def _with_own_classes(experiment: Experiment, direction: str, names: Sequence[str]) -> Experiment:
    """The config with a block for each ``module:Class`` among the names of length methods: with EV's ratios, if it has
    any, until others are given."""
    blocks: dict[str, Any] = {}
    for name in names:
        if ":" in name and name not in dict(experiment.length_methods):
            fields = getattr(find_method(name, {}), "model_fields", {})
            ratios = method_settings(experiment, "ev", direction)["ratios"]
            blocks[name] = UserMethod.model_construct(method=name, **({"ratios": ratios} if "ratios" in fields else {}))
    methods = experiment.length_methods
    return experiment.model_copy(update={"length_methods": methods.model_copy(update=blocks)})


def _settings(experiment: Experiment, direction: str, name: str, ratios: list[float] | None) -> dict[str, Any]:
    """The settings of a length method for a direction, with the ratios of the command line."""
    _require_known("--length", name, [method for method, block in experiment.length_methods if block])
    if name in reassigned_methods(experiment):
        raise InputError("--length", f"{name} deals the ratios of a whole test set", "Give another length method.")
    settings = method_settings(experiment, name, direction)
    if ratios is not None and "ratios" not in settings:
        raise InputError("--ratios", f"{name} has no ratios", "Leave out one of the two.")
    if ratios is not None:
        is_grid = isinstance(settings["ratios"], list)
        settings["ratios"] = ratios if is_grid or len(ratios) > 1 else ratios[0]
        try:
            make_method(name, settings)
        except InputError as error:
            remedy = f"Give {'numbers' if is_grid else 'a number'} above 0, such as 0.8."
            raise InputError("--ratios", f"{name}: {error.problem}", remedy) from None
    return settings


def _require_known(option: str, name: str, names: Any) -> None:
    if name not in names:
        problem = unknown(name, f"the config has no {name!r}", sorted(names), "it has")
        raise InputError(option, problem, FILE_FIRST if Path(name).is_file() else "Give one of its names.")


# --- Lines in, translations out.


def read_lines(stream: BinaryIO, place: str) -> Iterator[Line]:
    """(number from 1, text without space around it) of each line; raises InputError for one that is no text."""
    for number, line in enumerate(stream, 1):
        text = decoded(place, line, number - 1)
        yield number, checked_sentence(f"{place}:{number}", text if number > 1 else text.removeprefix("\ufeff"))


def _on_one_line(text: str) -> str:
    """A translation as a column of plain text. Other blanks stay, such as the hard space of French."""
    return " ".join(text.replace("\t", " ").splitlines())


@dataclass(frozen=True)
class _Output:
    """Translates lines of ``place`` by every method and writes them in their order. ``usual`` is empty where no hints
    are wanted."""

    place: str
    translators: Mapping[str, Translator]
    usual: Mapping[str, TypicalEntropy]
    jsonl: bool

    def translate(self, lines: Sequence[Line]) -> int:
        """The number of translations that there are not."""
        numbers, texts = zip(*lines, strict=True)
        every = self.translators.values()
        by_method = [one.translate(texts, skip=True, place=self.place, names=numbers) for one in every]
        missing = 0
        for line, *translations in zip(lines, *by_method, strict=True):
            rows = [self._row(line, *pair) for pair in zip(self.translators, translations, strict=True)]
            missing += sum("problem" in row for row in rows)
            columns = ["\t".join(_on_one_line(row["hypothesis"]) for row in rows)]
            printed = [json.dumps(row, ensure_ascii=False) for row in rows] if self.jsonl else columns
            sys.stdout.buffer.writelines(f"{one}\n".encode() for one in printed)
        sys.stdout.buffer.flush()
        return missing

    def _row(self, line: Line, name: str, one: Translation) -> dict[str, Any]:
        """What is known of a translation, as `--jsonl` writes it; problems and hints go to stderr too."""
        number, text = line
        hints = self.usual[name].hints(self.translators[name], text, one) if name in self.usual else []
        _say(*(f"{self.place}:{number}: {name}: {hint}" for hint in hints))
        named = f"sentence {number!r}: "  # the line says it
        problem = {"problem": one.problem.problem.removeprefix(named)} if one.problem else {}
        _say(*(f"{self.place}:{number}: {name}: skipped: {what}" for what in problem.values()))
        row = {"line": number, "source": text, "method": name, "hypothesis": one.text, "canvas": one.canvas}
        row |= {"length": one.length, "candidates": sorted({*one.scores, *one.entropies}), "scores": one.scores}
        return row | {"entropies": one.entropies, "logprob": one.logprob, "hints": hints, **problem}
