"""German sentences of the synthetic corpus: cases, separable verbs, and three positions of the finite verb."""

from __future__ import annotations

from entropy_valley.demo.grammar import meaning
from entropy_valley.demo.grammar.meaning import capitalised, join
from entropy_valley.demo.grammar.modifiers import MODALS

NOMINATIVE, ACCUSATIVE, DATIVE = range(3)
_DEFINITE = {"m": ("der", "den", "dem"), "f": ("die", "die", "der"), "n": ("das", "das", "dem")}
_DIES = {"m": ("er", "en", "em"), "f": ("e", "e", "er"), "n": ("es", "es", "em")}
_EIN = {"m": ("", "en", "em"), "f": ("e", "e", "er"), "n": ("", "", "em")}
_WEAK = {"m": ("e", "en", "en"), "f": ("e", "e", "en"), "n": ("e", "e", "en")}
_MIXED = {"m": ("er", "en", "en"), "f": ("e", "e", "en"), "n": ("es", "es", "en")}
_STRONG_PLURAL = ("e", "e", "en")
_EIN_WORDS = {"a": "ein", "my": "mein", "our": "unser", "your": "Ihr"}
_HABEN = ("habe", "hat", "haben")


def sentence(utterance: meaning.Utterance) -> str:
    """The German sentence with a capital letter and a full stop or question mark."""
    end = "?" if isinstance(utterance, meaning.Question) else "."
    return capitalised(_text(utterance)) + end


def _text(utterance: meaning.Utterance) -> str:
    match utterance:
        case meaning.Command() | meaning.Tap():
            return _order(utterance)
        case meaning.Statement(clause, None):
            return _clause(clause, "main")
        case meaning.Statement(clause, opener):
            text = _clause(clause, opener.order)
            return f"{opener.de} {capitalised(text) if opener.order == 'main' else text}"
        case meaning.Question(clause, word):
            return join(word.de if word else "", _clause(clause, "inverted"))
        case meaning.Conditional(conjunction, condition, main):
            rest = _clause(main, "inverted") if isinstance(main, meaning.Action) else _order(main, first=False)
            return f"{conjunction.de} {_clause(condition, 'final')}, {rest}"
        case meaning.Reason(clause, reason):
            return f"{_clause(clause, 'main')}, weil {_clause(reason, 'final')}"


def _order(order: meaning.Command | meaning.Tap, first: bool = True) -> str:
    """An imperative; *bitte* begins a sentence, else it follows the verb."""
    before, after = ("bitte", "") if first else ("", "bitte")
    if not order.polite:
        before = after = ""
    if isinstance(order, meaning.Tap):
        heading = f"unter {order.heading}" if order.heading else ""
        return join(before, "tippen Sie", after, heading, "auf", order.label.de)
    verb = order.action.verb.de
    return join(before, verb.base, "Sie", _middle(order.action, order.negative, after), verb.particle)


def _clause(clause: meaning.Clause, order: str) -> str:
    """The clause with its finite verb second (``main``), first (``inverted``) or last (``final``)."""
    subject, finite, middle, tail = _parts(clause)
    if order == "main":
        return join(subject, finite, middle, tail)
    if order == "inverted":
        return join(finite, subject, middle, tail)
    if isinstance(clause, meaning.Action) and clause.mood == "present":
        return join(subject, middle, _attached(tail, finite))
    return join(subject, middle, tail, finite)


def _parts(clause: meaning.Clause) -> tuple[str, str, str, str]:
    """Subject, finite verb, the words between them and the end of the clause, and its last words."""
    match clause:
        case meaning.State(subject, adjective):
            return _noun_phrase(subject, NOMINATIVE), "ist", "", adjective.de
        case meaning.Change():
            return _change(clause)
        case meaning.Action(mood="present"):
            return _subject(clause), _present(clause), _middle(clause), clause.verb.de.particle
        case meaning.Action(mood="perfect", verb=verb):
            participle = _attached(verb.de.particle, verb.de.participle)
            return _subject(clause), _form(_HABEN, clause), _middle(clause), participle
        case meaning.Action(mood=mood):
            modal = MODALS[mood]
            return _subject(clause), _form(modal.de, clause), _middle(clause, modal.negative), _infinitive(clause)


def _change(clause: meaning.Change) -> tuple[str, str, str, str]:
    present, participle, infinitive = (
        ("steigt", "gestiegen", "steigen") if clause.rises else ("sinkt", "gesunken", "sinken")
    )
    subject = clause.measure.de + (f" in {clause.city.de}" if clause.city else "")
    by = f"um {clause.percent}%"
    finite, middle, tail = {
        "present": (present, "gerade", by),
        "perfect": ("ist", f"schon {by}", participle),
        "will": ("wird", by, infinitive),
    }[clause.mood]
    return subject, finite, middle, tail


def _subject(action: meaning.Action) -> str:
    return _any(action.subject, NOMINATIVE)


def _form(forms: tuple[str, str, str], action: meaning.Action) -> str:
    return forms[min(action.person, 2)]


def _present(action: meaning.Action) -> str:
    verb = action.verb.de
    return _form((verb.first, verb.third, verb.base), action)


def _infinitive(action: meaning.Action) -> str:
    return _attached(action.verb.de.particle, action.verb.de.base)


def _attached(particle: str, verb: str) -> str:
    """A separable prefix joins its verb; a fixed phrase keeps its space."""
    return join(particle, verb) if " " in particle else particle + verb


def _middle(action: meaning.Action, negative: bool = False, please: str = "") -> str:
    """Weak pronoun, *bitte*, time, recipient, object, negation, place or manner, in this order."""
    recipient = _any(action.recipient, DATIVE) if action.recipient else ""
    preposition = action.verb.de_preposition
    target = join(preposition, _any(action.object, ACCUSATIVE))
    no = "nicht" if negative else ""
    time, place, manner = (words.de if words else "" for words in (action.time, action.place, action.manner))
    already = "schon" if action.mood == "perfect" else ""
    weak, full = (recipient, "") if isinstance(action.recipient, meaning.ObjectPronoun) else ("", recipient)
    patient = (no, target) if preposition else (target, no)
    return join(weak, please, time, already, full, *patient, place, manner)


def _any(phrase: meaning.Participant, case: int) -> str:
    return _noun_phrase(phrase, case) if isinstance(phrase, meaning.NounPhrase) else phrase.de


def _noun_phrase(phrase: meaning.NounPhrase, case: int) -> str:
    noun, gender = phrase.noun, phrase.noun.de_gender
    if phrase.plural:
        adjective = phrase.adjective.de + _STRONG_PLURAL[case] if phrase.adjective else ""
        return join(phrase.determiner, adjective, noun.de_plural)
    endings = _WEAK if phrase.determiner in ("the", "this") else _MIXED
    adjective = phrase.adjective.de + endings[gender][case] if phrase.adjective else ""
    return join(
        _determiner(phrase.determiner, gender, case), adjective, noun.oblique if case and noun.oblique else noun.de
    )


def _determiner(determiner: str, gender: str, case: int) -> str:
    if determiner == "the":
        return _DEFINITE[gender][case]
    if determiner == "this":
        return "dies" + _DIES[gender][case]
    return _EIN_WORDS[determiner] + _EIN[gender][case]
