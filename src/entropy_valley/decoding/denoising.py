"""How the masks of a canvas are filled: by a reveal order, or by a variable-length decoder."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from entropy_valley import plugins
from entropy_valley.decoding.orders import ORDERS, make_order
from entropy_valley.decoding.requests import FixedLength, VariableLength
from entropy_valley.decoding.schedule import reveal_counts
from entropy_valley.decoding.variable_length import VARIABLE_LENGTH, make_variable_length
from entropy_valley.engine.order import looks_at_anchors, looks_at_distractor, sourceless_steps
from entropy_valley.engine.queue import Canvas

if TYPE_CHECKING:
    from entropy_valley.decoding.variable_length.base import VariableLengthDecoder
    from entropy_valley.engine.distractor import Gain
    from entropy_valley.engine.order import Order
    from entropy_valley.engine.reading import Reading

KNOWN: dict[str, type] = ORDERS | VARIABLE_LENGTH  # the config names either where it asks for an order


@dataclass(frozen=True)
class Denoising:
    """A reveal order with the step budget T and the schedule rule, or a variable-length decoder, which takes neither.

    ``name`` and ``settings`` are as the config has them: the store knows results by them. ``mask_token``: whether that
    may be revealed.
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    order: Order | None = None
    steps: int = 0
    schedule: str = ""
    variable_length: VariableLengthDecoder | None = None
    mask_token: bool = False

    @classmethod
    def named(cls, name: str, steps: int, schedule: str, settings: Mapping[str, Any] | None = None) -> Self:
        """What ``name`` says, one of ours or ``module:Class``; raises InputError where that is neither of the two."""
        made = make_denoiser(name, settings)
        if hasattr(made, "advance"):
            return cls(name, settings or {}, variable_length=made)
        return cls(name, settings or {}, made, steps, schedule)

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> Self:
        """What a decoding job's spec says."""
        made = cls.named(spec["order"], spec["steps"], spec["schedule"], spec["order_settings"])
        return dataclasses.replace(made, mask_token="mask_token" in spec)

    def counts(self, length: int) -> list[int]:
        """Slots revealed at each step that reveals any; the others change nothing and are not run."""
        return [count for count in reveal_counts(length, self.steps, self.schedule) if count]

    def masked(self, length: int, passes: int) -> list[int]:
        """The slots that are still masked in each of the first ``passes`` passes over a canvas."""
        revealed = itertools.accumulate(self.counts(length)[: passes - 1], initial=0)
        return [length - before for before in revealed]

    def request(
        self,
        prompt: Sequence[int],
        sourceless: Sequence[int] | None,
        length: int,
        room: int,
        start: Reading | None = None,
        gain: Gain | None = None,
        *,
        sentence: object = None,
        refresh: int | None = None,
    ) -> FixedLength | VariableLength:
        """What is asked of the engine for ``length`` masks behind a prompt that leaves ``room`` slots of the context.

        ``sourceless``: the prompt without the source, for an order that looks at it; ``start``: the known reading;
        ``gain``: the SIG of the slots, for an order that :attr:`looks_at_distractor`, or their anchors; ``sentence``:
        its name in errors; ``refresh``: see :mod:`.prompt_cache`. A variable-length decoder computes all passes whole.
        """
        if decoder := self.variable_length:
            most = min(decoder.cap, room)
            return VariableLength(decoder, prompt, length, most, self.name, self.settings, start, sentence)
        counts = self.counts(length)
        compared = sourceless if sourceless_steps(self.order, len(counts), len(counts)) else None
        budget = self.steps if getattr(self.order, "in_time", False) else 0
        distractor, sigs = gain or (None, ())
        refresh = self.refresh(length, refresh)
        start = start if refresh is None else None
        canvas = Canvas(
            prompt, length, counts, start, compared, sigs=sigs, budget=budget, sentence=sentence, refresh=refresh
        )
        return FixedLength(canvas, self.name, self.settings, distractor)

    def refresh(self, length: int, refresh: int | None) -> int | None:
        """What of ``refresh`` a canvas of so many slots knows: no more than it has passes; None if it has one."""
        passes = len(self.counts(length)) + self.mask_token
        return None if refresh is None or passes == 1 else min(refresh, passes)

    @property
    def is_own(self) -> bool:
        """Whether a user has written it."""
        return plugins.is_own(self.order or self.variable_length)

    @property
    def looks_at_distractor(self) -> bool:
        """Whether its order wants the SIG against a distractor."""
        return looks_at_distractor(self.order)

    @property
    def looks_at_anchors(self) -> bool:
        """Whether its order wants to know which slots are aligned with the source."""
        return looks_at_anchors(self.order)

    @property
    def calls(self) -> int:
        """Passes of the method as the paper counts them: T, and two for a SIG against a distractor, or one for each
        step that looks at a stepwise SIG."""
        return self.steps + 2 * self.looks_at_distractor + sourceless_steps(self.order, self.steps, self.steps)

    @property
    def label(self) -> str:
        """Name and settings in one word, for signatures."""
        said = {"sig": "distractor", **self.settings} if self.looks_at_distractor else self.settings
        settings = ",".join(f"{key}={value}" for key, value in sorted(said.items()))
        return f"{self.name}({settings})" if settings else self.name


def make_denoiser(name: str, settings: Mapping[str, Any] | None = None) -> Order | VariableLengthDecoder:
    """The reveal order or variable-length decoder that ``name`` says; raises InputError where it is neither."""
    changes_length = hasattr(plugins.find("reveal order", KNOWN, name), "advance")
    return make_variable_length(name, settings) if changes_length else make_order(name, settings)
