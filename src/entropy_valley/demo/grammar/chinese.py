"""Chinese sentences of the synthetic corpus."""

from __future__ import annotations

from entropy_valley.demo.grammar import meaning
from entropy_valley.demo.grammar.modifiers import MODALS

_POSSESSIVES = {"my": "我的", "our": "我们的", "your": "您的"}


def sentence(utterance: meaning.Utterance) -> str:
    """The Chinese sentence with a full-width full stop or question mark."""
    return _text(utterance) + ("？" if isinstance(utterance, meaning.Question) else "。")


def _text(utterance: meaning.Utterance) -> str:
    match utterance:
        case meaning.Command() | meaning.Tap():
            return _order(utterance)
        case meaning.Statement(clause, opener):
            return (opener.zh if opener else "") + _clause(clause)
        case meaning.Question(meaning.State(subject, adjective)):
            return f"{_noun_phrase(subject)}{adjective.zh}吗"
        case meaning.Question(clause, word):
            return _clause(clause, word.zh) if word else _clause(clause) + "吗"
        case meaning.Conditional(conjunction, condition, main):
            rest = _clause(main) if isinstance(main, meaning.Action) else _order(main)
            return conjunction.zh.format(_clause(condition)) + rest
        case meaning.Reason(clause, reason):
            return f"{_clause(clause)}，因为{_clause(reason)}"


def _order(order: meaning.Command | meaning.Tap) -> str:
    please = "请" if order.polite else ""
    if isinstance(order, meaning.Tap):
        return (f"在{order.heading}下，" if order.heading else "") + f"{please}点击{order.label.zh}"
    return please + ("不要" if order.negative else "") + _predicate(order.action, "", "", "")


def _clause(clause: meaning.Clause, question: str = "") -> str:
    match clause:
        case meaning.State(subject, adjective):
            return f"{_noun_phrase(subject)}很{adjective.zh}"
        case meaning.Change():
            return _change(clause)
        case meaning.Action(mood=mood):
            auxiliary = MODALS[mood].zh if mood in MODALS else {"present": "", "perfect": "已经"}[mood]
            completed = "了" if mood == "perfect" else ""
            return _any(clause.subject) + _predicate(clause, question, auxiliary, completed)


def _change(clause: meaning.Change) -> str:
    before, after = {"present": ("正在", ""), "perfect": ("已经", "了"), "will": ("会", "")}[clause.mood]
    place = f"{clause.city.zh}的" if clause.city else ""
    verb = "上升" if clause.rises else "下降"
    return f"{place}{clause.measure.zh}{before}{verb}{after}{clause.percent}%"


def _predicate(action: meaning.Action, question: str, auxiliary: str, completed: str) -> str:
    time, place, manner = (words.zh if words else "" for words in (action.time, action.place, action.manner))
    recipient = _any(action.recipient) if action.recipient else ""
    verb = action.verb.zh.format(o=_any(action.object), p=recipient, le=completed)
    return time + question + auxiliary + place + manner + verb


def _any(phrase: meaning.Participant) -> str:
    return _noun_phrase(phrase) if isinstance(phrase, meaning.NounPhrase) else phrase.zh


def _noun_phrase(phrase: meaning.NounPhrase) -> str:
    adjective = f"{phrase.adjective.zh}的" if phrase.adjective else ""
    return _determiner(phrase) + adjective + phrase.noun.zh


def _determiner(phrase: meaning.NounPhrase) -> str:
    """Nothing for a definite noun; a classifier after a number, *one* or *this*."""
    if phrase.determiner == "the":
        return ""
    if phrase.determiner in _POSSESSIVES:
        return _POSSESSIVES[phrase.determiner]
    return {"a": "一", "this": "这"}.get(phrase.determiner, phrase.determiner) + phrase.noun.classifier
