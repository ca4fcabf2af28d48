"""The experiment matrix: runs, cells, and the sets that jobs translate and score."""

import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from entropy_valley.errors import FEW, InputError, listed, question
from entropy_valley.experiment.config.schema import ALL, Experiment, Study
from entropy_valley.results import SCORES, TRANSLATIONS, system_of

# --- Runs, cells, and which cells the matrix, the tables and each study have.

DEV = "dev"  # the development pairs in the place of a test set, for studies
RUN_NAME = r"\d+(-[a-z0-9]+)?"  # the part of a run's name behind "seed": its seed and, where it has one, its pool
SETS = ("matrix", "autoregressive", "instruct", "human_evaluation", "valley")  # those that are no study, see `by_set`
COMPARED = ("oracle", "ratio", "ev")  # the length methods that every table compares


@dataclass(frozen=True, order=True)
class Run:
    """One training run: a backbone adapted to a direction under one seed, with a pool of the direction's training pairs
    or, without a pool (""), with all of them."""

    direction: str
    backbone: str
    seed: int
    pool: str = ""

    @classmethod
    def named(cls, direction: str, backbone: str, name: str) -> Self:
        """The run of a :attr:`name`: ``seed1``, ``seed1-50k``."""
        seed, _, pool = name.removeprefix("seed").partition("-")
        return cls(direction, backbone, int(seed), pool)

    @property
    def name(self) -> str:
        """Its seed and pool, as its folder and its logs say it."""
        return f"seed{self.seed}-{self.pool}" if self.pool else f"seed{self.seed}"

    def folder(self, root: str) -> str:
        return f"{root}/{self.direction}/{self.backbone}/{self.name}"


@dataclass(frozen=True, order=True)
class Cell:
    """One result of the matrix: a run decoded on a test set by a length method, an order and a step budget.

    An autoregressive system has its beam for a method, no order (""), and no step budget (0).
    """

    run: Run
    testset: str
    method: str
    order: str = ""
    steps: int = 0

    @property
    def system(self) -> str:
        """How the run is decoded, as its path says it."""
        return system_of(self).name

    @functools.cached_property
    def backbone(self) -> str:
        return self.run.backbone

    @functools.cached_property
    def direction(self) -> str:
        return self.run.direction

    @functools.cached_property
    def seed(self) -> int:
        return self.run.seed

    @functools.cached_property
    def pool(self) -> str:
        return self.run.pool

    @functools.cached_property
    def autoregressive(self) -> bool:
        """Whether it is written from left to right, not denoised."""
        return not self.order

    def latency(self, root: str) -> str:
        """Where its latency is measured, if a table asks for it."""
        return f"{self.run.folder(root)}/latency/{self.testset}/{self.system}.json"

    def key(self) -> dict[str, str | int]:
        """Its coordinates, as tables and the audit name them."""
        return {
            "backbone": self.run.backbone,
            "direction": self.run.direction,
            "seed": self.run.seed,
            **system_of(self)._asdict(),
            **({"pool": self.run.pool} if self.run.pool else {}),
        }


def runs(experiment: Experiment, backbones: Sequence[str] | None = None) -> list[Run]:
    """Every training run of these backbones (None: the matrix's), in the config's order."""
    matrix = experiment.matrix
    return [
        Run(direction, backbone, seed)
        for backbone in (matrix.backbones if backbones is None else backbones)
        for direction in matrix.directions
        for seed in matrix.seeds_of.get(backbone, matrix.seeds)
    ]


@functools.cache
def cells(experiment: Experiment) -> list[Cell]:
    """Every cell of the product, in the config's order."""
    matrix = experiment.matrix
    return [
        Cell(run, testset, method, order, steps)
        for run in runs(experiment)
        for testset, method, order, steps in itertools.product(
            experiment.directions[run.direction].tests, matrix.methods, matrix.orders, matrix.steps
        )
    ]


def table_cells(experiment: Experiment, backbone: str | None = None) -> list[Cell]:
    """The cells of the main tables: those of their order and step budget, of all backbones or of one."""
    tables = experiment.tables
    return [
        cell
        for cell in cells(experiment)
        if (cell.order, cell.steps) == (tables.order, tables.steps) and backbone in (None, cell.run.backbone)
    ]


def valley_cells(experiment: Experiment) -> list[Cell]:
    """EV's cells under the order and budget of the main tables, for the runs and test sets whose all-mask canvases are
    shown; backbones outside the matrix come last."""
    matrix, tables, settings = experiment.matrix, experiment.tables, experiment.valley
    if "ev" not in matrix.methods:
        return []
    shown = matrix.backbones
    if settings.backbones is not None:
        inside = [name for name in matrix.backbones if name in settings.backbones]
        shown = list(dict.fromkeys([*inside, *settings.backbones]))
    return [
        Cell(run, testset, "ev", tables.order, tables.steps)
        for run in runs(experiment, shown)
        if settings.seeds is None or run.seed in settings.seeds
        for testset in experiment.directions[run.direction].tests
    ]


def autoregressive_cells(experiment: Experiment) -> list[Cell]:
    """The autoregressive systems that the main backbone is compared with."""
    settings = experiment.autoregressive
    return [
        Cell(run, testset, f"beam{settings.beams}")
        for run in runs(experiment, settings.backbones)
        for testset in experiment.directions[run.direction].tests
    ]


def instruct_cells(experiment: Experiment) -> list[Cell]:
    """The variants of an instruction-tuned backbone, under the order and step budget of the main tables; none where the
    matrix does not have their direction."""
    settings, tables = experiment.instruct, experiment.tables
    return [
        Cell(Run(settings.direction, backbone, settings.seed), settings.testset, method, tables.order, tables.steps)
        for backbone in settings.backbones
        for method in COMPARED
        if settings.direction in experiment.matrix.directions
    ]


@functools.cache
def study_cells(experiment: Experiment, name: str) -> list[Cell]:
    """The cells of a study, each once; none where ``tables.studies`` does not list it, or it has no direction."""
    if name not in experiment.tables.studies:
        return []
    study, tables = experiment.studies[name], experiment.tables
    orders, budgets = study.orders or [tables.order], study.steps or [tables.steps]
    others = [(other.method, other.order or tables.order, other.steps or tables.steps) for other in study.others]
    cells: dict[Cell, None] = {}
    for run in study_runs(experiment, study):
        direction = run.direction
        methods = study.methods.get(direction, []) if isinstance(study.methods, dict) else study.methods
        named = study.testset.get(direction) if isinstance(study.testset, dict) else study.testset
        tests = experiment.directions[direction].tests
        product = itertools.product(orders, budgets, methods)
        systems = [*((method, order, steps) for order, steps, method in product), *others]
        for testset in tests if named == ALL else [named or tests[0]]:
            cells |= dict.fromkeys(Cell(run, testset, *system) for system in systems)
    return list(cells)


def study_directions(experiment: Experiment, study: Study) -> list[str]:
    """The directions of a study: those of the matrix, or those that it names; of these only the matrix's, unless it
    goes beyond the matrix."""
    own, named = experiment.matrix.directions, study.directions
    if named is None or study.beyond_matrix:
        return named or own
    return [direction for direction in own if direction in named]


def directions(experiment: Experiment) -> list[str]:
    """Every direction of a cell: those of the matrix, then those that only studies have."""
    every = list(experiment.matrix.directions)
    for name in experiment.tables.studies:
        every += study_directions(experiment, experiment.studies[name])
    return list(dict.fromkeys(every))


def study_runs(experiment: Experiment, study: Study) -> list[Run]:
    """The training runs that a study looks at, those of the main backbone's first seed unless it says otherwise."""
    matrix = experiment.matrix
    backbones = matrix.backbones if study.backbones == "all" else study.backbones or [experiment.tables.backbone]
    runs = []
    for backbone, direction in itertools.product(backbones, study_directions(experiment, study)):
        own = matrix.seeds_of.get(backbone, matrix.seeds)
        seeds = own if study.seeds == "all" else study.seeds or own[:1]
        runs += [Run(direction, backbone, seed, pool) for seed in seeds for pool in study.pools or [""]]
    return runs


def evaluated_cells(experiment: Experiment, direction: str) -> list[Cell]:
    """The two cells whose outputs annotators of a direction compare, the first one first."""
    settings, tables, matrix = experiment.human_evaluation, experiment.tables, experiment.matrix
    testset = settings.testset or experiment.directions[direction].tests[0]
    shown_cells = []
    for shown in (settings.first, settings.second):
        backbone = shown.backbone or tables.backbone
        run = Run(direction, backbone, shown.seed or matrix.seeds_of.get(backbone, matrix.seeds)[0])
        shown_cells.append(Cell(run, testset, shown.method, shown.order or tables.order, shown.steps or tables.steps))
    return shown_cells


def evaluated_directions(experiment: Experiment) -> list[str]:
    """The directions that annotators evaluate, in the matrix's order."""
    return [name for name in experiment.matrix.directions if name in experiment.human_evaluation.directions]


def all_cells(experiment: Experiment) -> list[Cell]:
    """Everything that is scored, each once."""
    return list(sets_of(experiment).home)


def by_set(experiment: Experiment) -> Iterator[tuple[str, list[Cell]]]:
    """Every set by its name with all cells that it lists, in the order in which they take them."""
    yield "matrix", cells(experiment)
    yield "autoregressive", autoregressive_cells(experiment)
    yield "instruct", instruct_cells(experiment)
    for name in experiment.tables.studies:
        yield name, study_cells(experiment, name)
    for direction in evaluated_directions(experiment):
        yield "human_evaluation", evaluated_cells(experiment, direction)
    yield "valley", valley_cells(experiment)


@functools.cache
def methods(experiment: Experiment) -> dict[str, list[str]]:
    """Every length method that some cell has, with the directions that it has it in."""
    directions: dict[str, dict[str, None]] = {}
    for cell in all_cells(experiment):
        if cell.order:
            directions.setdefault(cell.method, {})[cell.run.direction] = None
    return {method: list(some) for method, some in directions.items()}


# --- Sets: the named lists of cells that a run translates and scores together, each with one load of its model.
#
# The grid of the matrix is a set, and so is every study. A cell's home is the first set that lists it, in the order of
# the config: there its translations and scores are, and every table reads them there. A cell by itself is a set too,
# under its own name (``wmt22.ev-med-T32``), for whoever asks for that one alone. All sets of a run share a store: what
# one has computed costs another nothing.


@dataclass(frozen=True)
class CellSet:
    """Some cells of one run, by their names: the order of a list in the config changes no job and no row."""

    run: Run
    name: str
    cells: tuple[Cell, ...]

    def __hash__(self) -> int:
        return hash((self.run, self.name))  # not of hundreds of cells

    def folder(self, root: str) -> str:
        """Where its translations and scores are."""
        return f"{self.run.folder(root)}/{self.name}"

    def translations(self, root: str) -> str:
        """The file with a row for each sentence of each cell."""
        return f"{self.folder(root)}/{TRANSLATIONS}"

    def scores(self, root: str) -> str:
        """The file that says it is done: a row for each sentence of each cell, by every metric."""
        return f"{self.folder(root)}/{SCORES}"

    @property
    def autoregressive(self) -> bool:
        """Whether its cells are written from left to right."""
        return self.cells[0].autoregressive

    @property
    def testsets(self) -> list[str]:
        """The test sets of its cells."""
        return list(dict.fromkeys(cell.testset for cell in self.cells))


class Sets:
    """The sets of a config. ``home`` is the set of each cell, ``all`` are those that have cells, in order, ``by_run``
    has those of each run by name."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        places: dict[Cell, tuple[Run, str]] = {}
        for name, cells in by_set(experiment):
            for cell in cells:
                places.setdefault(cell, (cell.run, name))
        members: dict[tuple[Run, str], list[Cell]] = {}
        for cell, place in places.items():
            members.setdefault(place, []).append(cell)
        sets = {place: CellSet(*place, tuple(sorted(cells))) for place, cells in members.items()}
        self.all = list(sets.values())
        self.home = {cell: sets[place] for cell, place in places.items()}
        self.by_run: dict[Run, dict[str, CellSet]] = {}
        for one in self.all:
            self.by_run.setdefault(one.run, {})[one.name] = one

    def named(self, run: Run, name: str) -> CellSet:
        """The set of a run by its name, which may be that of a single cell. Raises InputError for any other name."""
        root = self.experiment.results
        if run not in self.by_run:
            folder, folders = run.folder(root), [other.folder(root) for other in self.by_run]
            remedy = f"{question(folder, folders)}Its runs are {listed(folders, FEW)}."
            raise InputError(folder, "is not a run of this config", remedy)
        own = self.by_run[run]
        if name in own:
            return own[name]
        alone: dict[str, Cell] = {}
        for cell in itertools.chain(*(one.cells for one in own.values())):
            alone[f"{cell.testset}.{cell.system.replace('/', '-')}"] = cell  # wmt22.ev-med-T32, wmt22.beam4
        if name not in alone:
            known = f"It has {', '.join(own)}; a single cell has a name like {next(iter(alone))}."
            remedy = question(name, [*own, *alone]) + known
            raise InputError(f"{run.folder(root)}/{name}", "is not a set of cells of this run", remedy)
        return CellSet(run, name, (alone[name],))

    @functools.cached_property
    def diagnostics(self) -> dict[Run, dict[str, list[str]]]:
        """By run the test sets whose all-mask canvases are read: around the reference's length (``valley``), and with
        and without the source (``sig``). A run of which nothing shows them is not there."""
        experiment, testsets = self.experiment, dict[Run, dict[str, list[str]]]()
        for kind, layout in (("valley", "checks"), ("sig", "categories")):
            cells = valley_cells(experiment) if kind == "valley" else []
            for name in experiment.tables.studies:
                if experiment.studies[name].layout == layout:
                    cells += study_cells(experiment, name)
            for run, testset in sorted({(cell.run, cell.testset) for cell in cells}):
                testsets.setdefault(run, {}).setdefault(kind, []).append(testset)
        return testsets


@functools.cache
def sets_of(experiment: Experiment) -> Sets:
    """The sets of a config."""
    return Sets(experiment)
