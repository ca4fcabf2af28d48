"""Chinese sentences of the synthetic corpus."""

from __future__ import annotations

from entropy_valley.demo.grammar.meaning import (
    Action,
    Change,
    Clause,
    Command,
    Conditional,
    NounPhrase,
    Participant,
    Question,
    Reason,
    State,
    Statement,
    Tap,
    Utterance,
)
from entropy_valley.demo.grammar.modifiers import MODALS

_POSSESSIVES = {"my": "我的", "our": "我们的", "your": "您的"}


def sentence(utterance: Utterance) -> str:
    """The Chinese sentence with a full-width full stop or question mark."""
    return _text(utterance) + ("？" if isinstance(utterance, Question) else "。")


def _text(utterance: Utterance) -> str:
    match utterance:
        case Command() | Tap():
            return _order(utterance)
        case Statement(clause, opener):
            return (opener.zh if opener else "") + _clause(clause)
        case Question(State(subject, adjective)):
            return f"{_noun_phrase(subject)}{adjective.zh}吗"
        case Question(clause, word):
            return _clause(clause, word.zh) if word else _clause(clause) + "吗"
        case Conditional(conjunction, condition, main):
            rest = _clause(main) if isinstance(main, Action) else _order(main)
            return conjunction.zh.format(_clause(condition)) + rest
        case Reason(clause, reason):
            return f"{_clause(clause)}，因为{_clause(reason)}"


def _order(order: Command | Tap) -> str:
    please = "请" if order.polite else ""
    if isinstance(order, Tap):
        return (f"在{order.heading}下，" if order.heading else "") + f"{please}点击{order.label.zh}"
    return please + ("不要" if order.negative else "") + _predicate(order.action, "", "", "")


def _clause(clause: Clause, question: str = "") -> str:
    match clause:
        case State(subject, adjective):
            return f"{_noun_phrase(subject)}很{adjective.zh}"
        case Change():
            return _change(clause)
        case Action(mood=mood):
            auxiliary = MODALS[mood].zh if mood in MODALS else {"present": "", "perfect": "已经"}[mood]
            completed = "了" if mood == "perfect" else ""
            return _any(clause.subject) + _predicate(clause, question, auxiliary, completed)


def _change(clause: Change) -> str:
    before, after = {"present": ("正在", ""), "perfect": ("已经", "了"), "will": ("会", "")}[clause.mood]
    place = f"{clause.city.zh}的" if clause.city else ""
    verb = "上升" if clause.rises else "下降"
    return f"{place}{clause.measure.zh}{before}{verb}{after}{clause.percent}%"


def _predicate(action: Action, question: str, auxiliary: str, completed: str) -> str:
    time, place, manner = (words.zh if words else "" for words in (action.time, action.place, action.manner))
    recipient = _any(action.recipient) if action.recipient else ""
    verb = action.verb.zh.format(o=_any(action.object), p=recipient, le=completed)
    return time + question + auxiliary + place + manner + verb


def _any(phrase: Participant) -> str:
    return _noun_phrase(phrase) if isinstance(phrase, NounPhrase) else phrase.zh


def _noun_phrase(phrase: NounPhrase) -> str:
    adjective = f"{phrase.adjective.zh}的" if phrase.adjective else ""
    return _determiner(phrase) + adjective + phrase.noun.zh


def _determiner(phrase: NounPhrase) -> str:
    """Nothing for a definite noun; a classifier after a number, *one* or *this*."""
    if phrase.determiner == "the":
        return ""
    if phrase.determiner in _POSSESSIVES:
        return _POSSESSIVES[phrase.determiner]
    return {"a": "一", "this": "这"}.get(phrase.determiner, phrase.determiner) + phrase.noun.classifier
