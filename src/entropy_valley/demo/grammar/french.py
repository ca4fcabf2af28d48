"""French sentences of the synthetic corpus: agreement, clitics, elision and contraction."""

from __future__ import annotations

import re

from entropy_valley.demo.grammar import meaning
from entropy_valley.demo.grammar.meaning import capitalised, join
from entropy_valley.demo.grammar.modifiers import MODALS

_ELISION = re.compile(r"\b([jnmld]|qu)[ea] (?=[aeiouéèêàâhAEIOUÉ])")
_DETERMINERS = {
    "the": ("le", "la"), "a": ("un", "une"), "this": ("ce", "cette"),
    "my": ("mon", "ma"), "our": ("notre", "notre"), "your": ("votre", "votre"),
}  # fmt: skip
_BEFORE_VOWEL = {"ce": "cet", "ma": "mon"}
_VOWELS = tuple("aeiouéèêhAEIOUÉ")
_AVOIR = ("ai", "a", "avons", "avez")


def sentence(utterance: meaning.Utterance) -> str:
    """The French sentence with elisions, a capital letter and a full stop or question mark."""
    text = _ELISION.sub(r"\1'", _text(utterance)).replace("à le ", "au ").replace("si il ", "s'il ")
    return capitalised(text) + (" ?" if isinstance(utterance, meaning.Question) else ".")


def _text(utterance: meaning.Utterance) -> str:
    match utterance:
        case meaning.Command() | meaning.Tap():
            return _order(utterance)
        case meaning.Statement(clause, opener):
            return join(opener.fr if opener else "", _clause(clause))
        case meaning.Question(clause, word):
            return join(word.fr if word else "", "est-ce que", _clause(clause))
        case meaning.Conditional(conjunction, condition, main):
            rest = _clause(main) if isinstance(main, meaning.Action) else _order(main)
            return f"{conjunction.fr.lower()} {_clause(condition)}, {rest}"
        case meaning.Reason(clause, reason):
            return f"{_clause(clause)} parce que {_clause(reason)}"


def _order(order: meaning.Command | meaning.Tap) -> str:
    if isinstance(order, meaning.Tap):
        verb = "veuillez appuyer" if order.polite else "appuyez"
        return join(f"sous {order.heading}," if order.heading else "", verb, "sur", order.label.fr)
    action, verb = order.action, order.action.verb.fr
    clitic = _clitic(action)
    if order.polite:
        words = ("veuillez", "ne pas" if order.negative else "", clitic, verb.infinitive)
    elif order.negative:
        words = ("ne", clitic, verb.vous, "pas")
    else:
        words = (f"{verb.vous}-{action.recipient.fr_stressed}" if clitic else verb.vous,)
    return join(*words, verb.particle, _rest(action))


def _clause(clause: meaning.Clause) -> str:
    match clause:
        case meaning.State(subject, adjective):
            return f"{_noun_phrase(subject)} est {_agreeing(adjective.fr, subject)}"
        case meaning.Change():
            return _change(clause)
        case meaning.Action():
            return join(_any(clause.subject), _predicate(clause), clause.verb.fr.particle, _rest(clause))


def _predicate(action: meaning.Action) -> str:
    """The verb with its auxiliary, clitic and negation."""
    verb, clitic = action.verb.fr, _clitic(action)
    if action.mood == "present":
        return join(clitic, (verb.je, verb.il, verb.nous, verb.vous)[action.person])
    if action.mood == "perfect":
        return join(clitic, _AVOIR[action.person], "déjà", verb.participle)
    modal = MODALS[action.mood]
    finite = modal.fr[action.person]
    return join(f"ne {finite} pas" if modal.negative else finite, clitic, verb.infinitive)


def _change(clause: meaning.Change) -> str:
    present, participle, infinitive = (
        ("augmente", "augmenté", "augmenter") if clause.rises else ("diminue", "diminué", "diminuer")
    )
    verb = {
        "present": f"{present} actuellement",
        "perfect": f"a déjà {participle}",
        "will": f"va {infinitive}",
    }[clause.mood]
    subject = clause.measure.fr + (f" à {clause.city.fr}" if clause.city else "")
    return f"{subject} {verb} de {clause.percent}%"


def _clitic(action: meaning.Action) -> str:
    return action.recipient.fr if isinstance(action.recipient, meaning.ObjectPronoun) else ""


def _rest(action: meaning.Action) -> str:
    spoken = action.recipient and not isinstance(action.recipient, meaning.ObjectPronoun)
    recipient = f"à {_any(action.recipient)}" if spoken else ""
    adverbials = (words.fr for words in (action.manner, action.place, action.time) if words)
    return join(_any(action.object), recipient, *adverbials)


def _any(phrase: meaning.Participant) -> str:
    return _noun_phrase(phrase) if isinstance(phrase, meaning.NounPhrase) else phrase.fr


def _agreeing(forms: tuple[str, str, str, str], phrase: meaning.NounPhrase) -> str:
    return forms[(phrase.noun.fr_gender == "f") + 2 * phrase.plural]


def _noun_phrase(phrase: meaning.NounPhrase) -> str:
    noun = phrase.noun.fr_plural if phrase.plural else phrase.noun.fr
    words = noun
    if phrase.adjective:
        adjective = _agreeing(phrase.adjective.fr, phrase)
        words = f"{adjective} {noun}" if phrase.adjective.before else f"{noun} {adjective}"
    return f"{_determiner(phrase, words)} {words}"


def _determiner(phrase: meaning.NounPhrase, following: str) -> str:
    if phrase.plural:
        return phrase.determiner
    determiner = _DETERMINERS[phrase.determiner][phrase.noun.fr_gender == "f"]
    return _BEFORE_VOWEL.get(determiner, determiner) if following.startswith(_VOWELS) else determiner
