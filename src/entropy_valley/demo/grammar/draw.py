"""Drawing meanings: which sentences the synthetic corpus has, and how often."""

from __future__ import annotations

from random import Random

from entropy_valley.demo.grammar import meaning, modifiers
from entropy_valley.demo.grammar.meaning import Action, NounPhrase, Pronoun
from entropy_valley.demo.grammar.nouns import CITIES, NOUNS, PEOPLE, PLACES, PRODUCT, Noun, Words
from entropy_valley.demo.grammar.verbs import DITRANSITIVE, INVOLUNTARY, VERBS, Verb

_YOU = meaning.SUBJECTS[-1]
_PERSONS = tuple(noun for noun in NOUNS if "p" in noun.kinds)
_OBJECTS = {verb: tuple(noun for noun in NOUNS if set(noun.kinds) & set(verb.objects)) for verb in VERBS + DITRANSITIVE}
_ATTRIBUTES = {noun: tuple(adj for adj in modifiers.ADJECTIVES if set(adj.kinds) & set(noun.kinds)) for noun in NOUNS}
_PREDICATES = {noun: tuple(adj for adj in adjectives if adj.predicate) for noun, adjectives in _ATTRIBUTES.items()}
_DESCRIBED = tuple(noun for noun, adjectives in _PREDICATES.items() if adjectives)
_DETERMINERS = {"the": 8, "a": 3, "this": 2, "my": 2, "our": 1, "your": 2, "number": 2}
_MOODS = {"present": 8, "perfect": 3, "can": 2, "cannot": 2, "must": 2, "should": 1, "will": 2, "want": 2}
_HEADINGS = ("#PRS_ORG#", "#PRODUCT#")


def utterance(rng: Random) -> meaning.Utterance:
    """One sentence's meaning."""
    kind = rng.random()
    if kind < 0.32:
        return _command(rng)
    if kind < 0.35:
        return meaning.Tap(rng.choice(modifiers.LABELS), rng.choice(("", *_HEADINGS)), rng.random() < 0.5)
    if kind < 0.75:
        return meaning.Statement(_clause(rng), _opener(rng))
    if kind < 0.9:
        return _question(rng)
    if kind < 0.97:
        return _conditional(rng)
    return meaning.Reason(_action(rng, brief=True), _action(rng, brief=True))


def _command(rng: Random, brief: bool = False) -> meaning.Command:
    negative = rng.random() < 0.12
    action = _action(rng, subject=_YOU, moods=("imperative",), brief=brief, negative=negative)
    return meaning.Command(action, polite=rng.random() < 0.35, negative=negative)


def _question(rng: Random) -> meaning.Question:
    if rng.random() < 0.5:
        clause = _clause(rng)
        return meaning.Question(clause) if getattr(clause, "mood", "") != "cannot" else meaning.Question(_state(rng))
    word = rng.choice(modifiers.QUESTIONS)
    return meaning.Question(_action(rng, moods=("present", "must", "want", "will"), timed=False), word)


def _conditional(rng: Random) -> meaning.Conditional:
    kind = rng.random()
    if kind < 0.25:
        main = meaning.Tap(rng.choice(modifiers.LABELS), rng.choice(("", "", *_HEADINGS)), rng.random() < 0.3)
    else:
        main = _command(rng, brief=True) if kind < 0.6 else _action(rng, moods=("can", "must", "will"), brief=True)
    conjunction = rng.choice(modifiers.CONJUNCTIONS)
    return meaning.Conditional(conjunction, _action(rng, moods=("present", "want"), brief=True), main)


def _clause(rng: Random) -> meaning.Clause:
    kind = rng.random()
    if kind < 0.8:
        return _action(rng)
    return _state(rng) if kind < 0.88 else _change(rng)


def _opener(rng: Random) -> modifiers.Opener | None:
    """Rarely one whose length differs much between languages: the outliers of the corpus."""
    kind = rng.random()
    if kind < 0.06:
        return rng.choice(modifiers.LONG_OPENERS)
    return rng.choice(modifiers.OPENERS) if kind < 0.22 else None


def _state(rng: Random) -> meaning.State:
    noun = rng.choice(_DESCRIBED)
    subject = NounPhrase(noun, rng.choice(("the", "this", "my", "our", "your")))
    return meaning.State(subject, rng.choice(_PREDICATES[noun]))


def _change(rng: Random) -> meaning.Change:
    city = rng.choice(CITIES) if rng.random() < 0.4 else None
    mood = rng.choice(("present", "perfect", "will"))
    return meaning.Change(rng.choice(modifiers.MEASURES), city, rng.random() < 0.5, rng.randint(2, 99), mood)


def _action(
    rng: Random,
    subject: Pronoun | None = None,
    moods: tuple[str, ...] = (),
    brief: bool = False,
    timed: bool = True,
    negative: bool = False,
) -> Action:
    """An action that makes sense in one of ``moods`` (default: any); a brief one has no place or manner."""
    spoken = subject or _subject(rng)
    mood = rng.choice(moods) if moods else _weighted(rng, _MOODS)
    verb = rng.choice(DITRANSITIVE if rng.random() < 0.17 else VERBS)
    while not _possible(verb, mood):
        verb = rng.choice(VERBS)
    recipient = _recipient(rng, spoken) if verb in DITRANSITIVE else None
    target = _object(rng, verb, negative or mood == "cannot")
    place, manner = (None, None) if brief else _circumstance(rng)
    time = _time(rng, mood, brief) if timed else None
    action = Action(spoken, verb, target, mood, recipient, time, place, manner)
    return action if _distinct(action) else _action(rng, subject, moods, brief, timed, negative)


def _distinct(action: Action) -> bool:
    """Whether no person occurs twice in the action."""
    people = [words.en for words in (action.subject, action.object, action.recipient) if isinstance(words, Words)]
    together = action.manner.en.removeprefix("together with ") if action.manner else None
    return len(set(people)) == len(people) and together not in people


def _possible(verb: Verb, mood: str) -> bool:
    """Whether a verb has this mood: only voluntary ones have modals, and the perfect needs a 了 in the template."""
    if mood == "perfect":
        return "{le}" in verb.zh
    return mood == "present" or verb.en.base not in INVOLUNTARY


def _subject(rng: Random) -> Pronoun | NounPhrase | Words:
    kind = rng.random()
    if kind < 0.45:
        return rng.choice(meaning.SUBJECTS)
    if kind < 0.75:
        return rng.choice(PEOPLE)
    return NounPhrase(rng.choice(_PERSONS), rng.choice(("the", "the", "my", "our")))


def _recipient(rng: Random, subject: Pronoun | NounPhrase | Words) -> NounPhrase | Words | meaning.ObjectPronoun:
    kind = rng.random()
    if kind < 0.4 and not (isinstance(subject, Pronoun) and subject.person in (0, 2)):
        return rng.choice((meaning.ME, meaning.US))
    return rng.choice(PEOPLE) if kind < 0.7 else NounPhrase(rng.choice(_PERSONS), rng.choice(("the", "my", "your")))


def _object(rng: Random, verb: Verb, negative: bool) -> NounPhrase | Words:
    if verb.objects == "p" and rng.random() < 0.4:
        return rng.choice(PEOPLE)
    if "x" in verb.objects and rng.random() < 0.1:
        return PRODUCT
    noun = rng.choice(_OBJECTS[verb])
    return NounPhrase(noun, _determiner(rng, noun, negative), _attribute(rng, noun))


def _determiner(rng: Random, noun: Noun, negative: bool) -> str:
    """A negated object is definite: German would negate an indefinite one by *kein*."""
    determiner = _weighted(rng, _DETERMINERS)
    if negative and determiner in ("a", "number"):
        return "the"
    return str(rng.randint(2, 30)) if determiner == "number" else determiner


def _attribute(rng: Random, noun: Noun) -> modifiers.Adjective | None:
    adjectives = _ATTRIBUTES[noun]
    return rng.choice(adjectives) if adjectives and rng.random() < 0.18 else None


def _time(rng: Random, mood: str, brief: bool) -> Words | None:
    if rng.random() > (0.15 if brief else 0.4):
        return None
    if mood == "perfect":
        return rng.choice(modifiers.PAST)
    if mood == "present":
        return rng.choice(modifiers.HABITS)
    return rng.choice(modifiers.TIMES if rng.random() < 0.75 else modifiers.CLOCK)


def _circumstance(rng: Random) -> tuple[Words | None, Words | None]:
    kind = rng.random()
    if kind < 0.12:
        return rng.choice(PLACES), None
    if kind < 0.15:
        return None, rng.choice(modifiers.COMPANY)
    return None, rng.choice(modifiers.MANNERS) if kind < 0.18 else None


def _weighted(rng: Random, weights: dict[str, int]) -> str:
    return rng.choices(tuple(weights), tuple(weights.values()))[0]
