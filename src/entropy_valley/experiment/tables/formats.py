"""What tables and figures print: the names of a config, and numbers as the paper has them."""

import functools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from entropy_valley.decoding.orders import ORDERS
from entropy_valley.experiment.config import Experiment
from entropy_valley.experiment.config.matrix import Cell
from entropy_valley.experiment.config.methods import declares, origins
from entropy_valley.experiment.config.schema import Study, metrics_of
from entropy_valley.scoring.metrics import Metric

# --- Names. Those of length methods and backbones are in their blocks of the config.

RISING = ("ratio", "ev", "oracle")  # the paper's three, as their scores are expected to rise
# Titles of the columns of gap closures by what they are over; the paper's, over Fixed Ratio, goes without its name.
CLOSURE_TITLES = {"ratio": "Gap closure", "ratio_eos": "Closure over Ratio + EOS"}


class MethodNames(NamedTuple):
    label: str
    short: str


class Names:
    """The names of a config, for a table or figure of these ``cells``; ``name`` is its study, or its own name."""

    shown_metrics: Sequence[Metric] = ()  # those that the table prints

    def __init__(self, experiment: Experiment, cells: Sequence[Cell] = (), name: str = "") -> None:
        self.experiment, self.listed, self.name = experiment, cells, name
        self.made: list[str] = []  # of the comparison with the paper: the config's tables that have some of its numbers
        self.statistics = experiment.analysis  # how two systems are tested
        self.metrics = metrics_of(experiment.scoring)  # all that its cells were scored by
        # The main metric, in which systems are compared sentence by sentence: that of a COMET, so higher is better.
        self.metric = self.metrics[0]
        places = {(cell.direction, cell.testset) for cell in cells}
        self._directions = [direction for direction, _ in places]

    @property
    def study(self) -> Study:
        """The study of a table that each study of its layout has."""
        return self.experiment.studies[self.name]

    def only_main(self) -> list[Metric]:
        return [self.metric]

    def main_metrics(self) -> list[Metric]:
        """Those of the main table."""
        return self.named_metrics(*(self.experiment.tables.metrics or [self.metric.name, "bleu"]))

    def named_metrics(self, *names: str) -> list[Metric]:
        return [metric for name in names for metric in self.metrics if metric.name == name]

    def backbone(self, name: Any) -> str:
        return self.experiment.backbones[name].label

    def place(self, name: str, testset: str) -> str:
        """The printed direction, with its test set where the direction has more than one."""
        return f"{direction(name)} ({testset})" if self._directions.count(name) > 1 else direction(name)

    def method(self, name: Any) -> MethodNames:
        """The printed names of a length method, as its block gives them, or its own name. ``beam4`` is a beam search,
        which has no block."""
        if beam := re.fullmatch(r"beam(\d+)", name):
            return MethodNames(f"Beam search, beam {beam[1]}", "Beam")
        block = getattr(self.experiment.length_methods, name, None)
        label = getattr(block, "label", None) or name
        return MethodNames(label, getattr(block, "short", None) or label)

    def difference(self, *names: Any) -> str:
        """``EV − Ratio``, ``EV − (Ratio + EOS)``: by their short names."""
        shorts = [self.method(name).short for name in names]
        return " − ".join(f"({short})" if re.search(" [+−] ", short) else short for short in shorts)

    def method_in(self, name: str, direction: str) -> str:
        """The label of a method's row in a direction. A ratio that depends on it stands behind the first part of the
        label: ``Fixed ratio 0.8 + EOS slot``."""
        label = self.method(name).label
        block: Any = getattr(self.experiment.length_methods, name, None)
        ratios = getattr(block, "ratios", None)
        if not isinstance(ratios, Mapping) or block.method != "ratio":
            return label
        # The number belongs to the ratio, not to the slot behind it.
        what, plus, slot = label.partition(" + ")
        return f"{what} {ratios[direction]:g}{plus}{slot}"

    @property
    def informed(self) -> set[str]:
        """The methods of its cells that see the reference, or take the canvases of one that does: none is ever bold."""
        # Beam searches, which have no order, have no block and see nothing.
        return {cell.method for cell in self.listed if cell.order and sees_reference(self.experiment, cell.method)}

    def order(self, name: str) -> str:
        """``Hybrid MED→SIG, p = 0.25``: a reveal order and its settings."""
        block = self.experiment.reveal_orders.get(name)
        order = block.order if block else name
        if order not in ORDERS:
            return name  # a user's own order
        # A seed makes no other kind of order.
        settings = block.model_dump(exclude={"order", "seed"}, exclude_unset=True, exclude_none=True) if block else {}
        texts = [f"{key} = {value}" for key, value in sorted(settings.items())]
        return ", ".join([ORDERS[order].label, *texts])


@functools.cache
def sees_reference(experiment: Experiment, method: str) -> bool:
    return any(declares(experiment, one, "sees_reference") for one in (method, *origins(experiment, method)))


def direction(name: str) -> str:
    """``en-zh`` as tables print it: En→Zh; ``en-zh_tw`` is En→Zh-TW, ``en-sr_latn`` En→Sr-Latn."""
    return "→".join(map(_language, name.split("-")))


def _language(code: str) -> str:
    language, _, variant = code.partition("_")
    is_region = len(variant) < 4  # a script has four letters
    return "-".join(filter(None, [language.capitalize(), variant.upper() if is_region else variant.capitalize()]))


# --- Numbers: scores with the decimals of their metric, gap closure in per cent with 1.

NOT_AVAILABLE = "n/a"
NONE = "–"  # a number that there is not


def dash(text: str) -> str:
    """A number that there is, or a dash."""
    return NONE if text == NOT_AVAILABLE else text


def mean_std(mean: float, std: float, decimals: int) -> str:
    """``0.8517 ± 0.0006``; a single run has no deviation and prints its value alone. What rounds to 0 is a bound:
    ``± < 0.0001``."""
    if math.isnan(mean) or math.isnan(std):
        return number(mean, decimals)
    least = 10**-decimals
    return f"{number(mean, decimals)} ± " + (f"< {least:.{decimals}f}" if std < least / 2 else f"{std:.{decimals}f}")


def interval(value: float, low: float, high: float, decimals: int) -> str:
    """A difference with its confidence limits: ``+0.10 [−0.21, +0.40]``; of a single sentence without."""
    if math.isnan(low):
        return signed(value, decimals)
    return f"{signed(value, decimals)} [{signed(low, decimals)}, {signed(high, decimals)}]"


def lead(test: Mapping[str, float], metric: Metric) -> str:
    """A paired difference with its confidence limits, in the decimals of the metric."""
    return interval(test["delta"], test["ci_low"], test["ci_high"], metric.decimals)


def number(value: float, decimals: int) -> str:
    """``0.8517``."""
    return NOT_AVAILABLE if math.isnan(value) else minus(f"{value:z.{decimals}f}")


def percent(mean: float, std: float = math.nan) -> str:
    """A share with its deviation: ``64.9 ± 7.4%``; or ``64.9%`` for a single run, and for what has none."""
    if math.isnan(mean):
        return NOT_AVAILABLE
    return minus(f"{100 * mean:z.1f}%" if math.isnan(std) else f"{100 * mean:z.1f} ± {100 * std:.1f}%")


def closure(mean: float, std: float, counted: int, runs: int) -> str:
    """A gap closure; says how many runs counted when some have no gap to close."""
    text = percent(mean, std)
    return text if counted in (0, runs) else f"{text} ({counted} of {runs} runs)"


def signed(value: float, decimals: int) -> str:
    """A difference with its sign: ``+0.0172``, ``−0.0010``; what is printed as zero has none: ``0.0000``."""
    zero = float(f"{value:.{decimals}f}") == 0
    return number(value, decimals) if zero or math.isnan(value) else minus(f"{value:+.{decimals}f}")


def p_value(p: float, resamples: int, sides: int = 2) -> str:
    """A bootstrap p-value: ``0.0910``, or ``2.0e−05`` where four decimals might print 0; one that no resample speaks
    for is below the smallest that can be counted, a resample on each of the ``sides``: ``< 0.0002``, never 0."""
    if math.isnan(p):
        return NOT_AVAILABLE
    if not p:
        return minus(f"< {sides / resamples:g}")
    return minus(f"{p:.4f}" if p >= 0.0001 else f"{p:.1e}")


def p_statement(p: float, resamples: int) -> str:
    """``p = 0.0910``, or ``p < 0.0002``: two-sided, as all that tables print."""
    return f"p {'= ' if p else ''}{p_value(p, resamples)}"


def parameters(count: int) -> str:
    """``8.0B``, ``1.2M``."""
    return f"{count / 1e9:.1f}B" if count >= 1e8 else f"{count / 1e6:.1f}M"


def small_p(p: float) -> str:
    """A p-value that is computed, not counted: ``0.0083``, or ``4.1e−32`` below 0.001."""
    return minus(f"{p:.4f}" if p >= 0.001 else f"{p:.1e}")


def stars(p: float) -> str:
    """:func:`small_p` with a star below 0.05, two below 0.01, three below 0.001, as the paper prints them."""
    return small_p(p) + "*" * sum(p < level for level in (0.05, 0.01, 0.001))


def minus(text: str) -> str:
    """The hyphens of numbers as minus signs."""
    return text.replace("-", "−")
