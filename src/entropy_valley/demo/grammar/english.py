"""English sentences of the synthetic corpus."""

from __future__ import annotations

from entropy_valley.demo.grammar import meaning
from entropy_valley.demo.grammar.meaning import capitalised, join
from entropy_valley.demo.grammar.modifiers import MODALS


def sentence(utterance: meaning.Utterance) -> str:
    """The English sentence with a capital letter and a full stop or question mark."""
    end = "?" if isinstance(utterance, meaning.Question) else "."
    return capitalised(_text(utterance)) + end


def _text(utterance: meaning.Utterance) -> str:
    match utterance:
        case meaning.Command() | meaning.Tap():
            return _order(utterance)
        case meaning.Statement(clause, opener):
            return join(opener.en if opener else "", _clause(clause))
        case meaning.Question(clause, word):
            return join(word.en if word else "", _inverted(clause))
        case meaning.Conditional(conjunction, condition, main):
            rest = _clause(main) if isinstance(main, meaning.Action) else _order(main)
            return f"{conjunction.en} {_clause(condition)}, {rest}"
        case meaning.Reason(clause, reason):
            return f"{_clause(clause)} because {_clause(reason)}"


def _order(order: meaning.Command | meaning.Tap) -> str:
    please = "please" if order.polite else ""
    if isinstance(order, meaning.Tap):
        return join(f"under {order.heading}," if order.heading else "", please, "tap", order.label.en)
    return join(please, "do not" if order.negative else "", order.action.verb.en.base, _rest(order.action))


def _clause(clause: meaning.Clause) -> str:
    subject, finite, rest = _parts(clause)
    return join(subject, finite, rest)


def _inverted(clause: meaning.Clause) -> str:
    subject, finite, rest = _parts(clause)
    if isinstance(clause, meaning.Action) and clause.mood in ("present", "want"):
        verb = "want to " + clause.verb.en.base if clause.mood == "want" else clause.verb.en.base
        return join("does" if clause.person == 1 else "do", subject, verb, _rest(clause))
    return join(finite, subject, rest)


def _parts(clause: meaning.Clause) -> tuple[str, str, str]:
    """Subject, the finite verb or auxiliary (in front in a question), and the rest."""
    match clause:
        case meaning.State(subject, adjective):
            return _noun_phrase(subject), "is", adjective.predicate
        case meaning.Change():
            return _change(clause)
        case meaning.Action(mood="present", verb=verb):
            return _subject(clause), verb.en.third if clause.person == 1 else verb.en.base, _rest(clause)
        case meaning.Action(mood="perfect", verb=verb):
            auxiliary = "has" if clause.person == 1 else "have"
            return _subject(clause), auxiliary, join("already", verb.en.participle, _rest(clause))
        case meaning.Action(mood="want", verb=verb) if clause.person == 1:
            return _subject(clause), "wants to", join(verb.en.base, _rest(clause))
        case meaning.Action(mood=mood, verb=verb):
            return _subject(clause), MODALS[mood].en, join(verb.en.base, _rest(clause))


def _change(clause: meaning.Change) -> tuple[str, str, str]:
    finite, verb = {
        "present": ("is", "rising" if clause.rises else "falling"),
        "perfect": ("has", "already risen" if clause.rises else "already fallen"),
        "will": ("will", "rise" if clause.rises else "fall"),
    }[clause.mood]
    subject = f"the {clause.measure.en}" + (f" in {clause.city.en}" if clause.city else "")
    return subject, finite, f"{verb} by {clause.percent}%"


def _subject(action: meaning.Action) -> str:
    return _noun_phrase(action.subject) if isinstance(action.subject, meaning.NounPhrase) else action.subject.en


def _rest(action: meaning.Action) -> str:
    recipient = f"to {_any(action.recipient)}" if action.recipient else ""
    adverbials = (words.en for words in (action.manner, action.place, action.time) if words)
    return join(action.verb.en.particle, _any(action.object), recipient, *adverbials)


def _any(phrase: meaning.Participant) -> str:
    return _noun_phrase(phrase) if isinstance(phrase, meaning.NounPhrase) else phrase.en


def _noun_phrase(phrase: meaning.NounPhrase) -> str:
    noun = phrase.noun.en_plural if phrase.plural else phrase.noun.en
    words = join(phrase.adjective.en if phrase.adjective else "", noun)
    article = "an" if phrase.determiner == "a" and words[0] in "aeiou" else phrase.determiner
    return f"{article} {words}"
