"""Calls a length method and checks what it answers: a user's own may propose and choose anything."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from entropy_valley import plugins
from entropy_valley.canvas.length_methods import Choice, LengthMethod, Sentence
from entropy_valley.engine.reading import Reading

ROUNDS = 1000  # of probes for a sentence; DAEDAL, which grows by 8 slots, may need 256
PROPOSALS = 10_000  # in a round

_LENGTHS = "Return a set of whole numbers of slots, 1 or more; an empty one, (), when no more are to be probed."
_CHOICE = "Return a Choice of entropy_valley.canvas.length_methods.base, such as Choice(12)."
_NUMBERS = "Give whole numbers of slots, 1 or more, and scores that are numbers."


def proposed(method: LengthMethod, sentence: Sentence, probes: Mapping[int, Reading], about: str) -> list[int]:
    """The lengths to be probed next, ascending; ``about`` names the sentence in errors.

    Raises InputError for anything else than whole numbers of slots, and for more than ``PROPOSALS`` of them.
    """
    with plugins.calling(method, "propose", about):
        answer = method.propose(sentence, MappingProxyType(probes))
        if answer is None:
            raise plugins.refused(method, "propose", about, "returned None", _LENGTHS)
        lengths = list(itertools.islice(answer, PROPOSALS + 1))
    if len(lengths) > PROPOSALS:
        raise plugins.refused(method, "propose", about, f"proposes more than {PROPOSALS} lengths at once", _LENGTHS)
    for length in lengths:
        if plugins.whole(length, 1) is None:
            raise plugins.refused(method, "propose", about, f"proposes {plugins.shown(length)} slots", _LENGTHS)
    return sorted({plugins.whole(length) for length in lengths} - probes.keys())


def endless(method: LengthMethod, about: str) -> Exception:
    """The error for a method that proposes new lengths after so many rounds."""
    problem = f"still proposes new lengths after {ROUNDS} rounds of probes"
    return plugins.refused(method, "propose", about, problem, "Propose more lengths at once, and an end of the search.")


def chosen(method: LengthMethod, sentence: Sentence, probes: Mapping[int, Reading], about: str) -> Choice:
    """The choice, in numbers of Python; ``about`` names the sentence in errors.

    Raises InputError for anything else than a choice of whole slots whose scores are numbers.
    """
    with plugins.calling(method, "choose", about):
        choice = method.choose(sentence, MappingProxyType(probes))
        if not isinstance(choice, Choice):
            raise plugins.refused(method, "choose", about, f"returned {plugins.shown(choice)}", _CHOICE)
        compared, contenders = dict(choice.scores), list(choice.contenders)
    if problem := _problem(choice.length, compared, contenders):
        raise plugins.refused(method, "choose", about, problem, _NUMBERS)
    scores = {plugins.whole(length): plugins.number(score) for length, score in compared.items()}
    kept = [plugins.whole(length) for length in contenders]
    return Choice(plugins.whole(choice.length), scores, kept, bool(choice.rescoring))


def _problem(length: Any, scores: Mapping[Any, Any], contenders: list[Any]) -> str | None:
    """What is wrong with a choice; None if nothing is."""
    for what, lengths in {"chooses": [length], "compares": scores, "keeps": contenders}.items():
        for slots in lengths:
            if plugins.whole(slots, 1) is None:
                return f"{what} {plugins.shown(slots)} slots"
    for slots, score in scores.items():
        if plugins.number(score) is None:
            return f"gives {slots} slots the score {plugins.shown(score)}, no number"
    return None
