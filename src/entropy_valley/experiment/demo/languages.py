"""The four languages of the synthetic corpus: the records of a meaning, and the rules that express it in each language.

:class:`English`, :class:`Chinese`, :class:`German` and :class:`French` are functions of the meaning alone, and there
are no synonyms: the source determines the translation. The words are in ``lexicon.json``.
"""

import json
import re
from abc import ABC, abstractmethod
from collections import namedtuple
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

LEXICON = json.loads(Path(__file__).with_name("lexicon.json").read_text("utf-8"))


# Words. A noun's `kinds` decide which verbs and adjectives it takes: d document, x digital, t thing, m machine,
# o something to open, p person; its `classifier` is the Chinese measure word, `oblique` the German singular outside the
# nominative where it differs (weak nouns). An adjective's `fr` is masculine, feminine and their plurals; one with
# `before` precedes a French noun; one that is not `predicative` stands only with a noun.
Words = namedtuple("Words", "en zh de fr")  # a fixed expression, a name or a whole sentence
Noun = namedtuple(
    "Noun", "kinds en en_plural zh classifier de_gender de de_plural fr_gender fr fr_plural oblique", defaults=[""]
)
Adjective = namedtuple("Adjective", "kinds en zh de fr before predicative")
# A verb takes `objects` of these kinds. Its forms are, in `en`, base, third person and participle; in `de`, infinitive,
# ich, er and participle; in `fr`, infinitive, je, il, nous, vous and participle. A particle or "" comes last: in German
# one word is a separable prefix, several are a fixed phrase. `zh` is a template of {o} (object), {p} (recipient, of
# ditransitive verbs only) and {le} (了). `de_preposition` governs an accusative object.
Verb = namedtuple("Verb", "objects en zh de fr de_preposition", defaults=[""])
# `person`: 0 I, 1 he, she and every noun, 2 we, 3 the formal you. A recipient is a German dative; `fr_stressed` is its
# form after a French imperative.
Pronoun = namedtuple("Pronoun", "en zh de fr person fr_stressed", defaults=[""])
Opener = namedtuple("Opener", "en zh de fr order")  # the German word order after it: main, inverted or final


class NounPhrase(NamedTuple):
    """``determiner`` is one of the, a, this, my, our, your, or digits (then the noun is plural)."""

    noun: Noun
    determiner: str = "the"
    adjective: Adjective | None = None

    @property
    def plural(self) -> bool:
        return self.determiner.isdigit()


class Action(NamedTuple):
    """Someone does something; ``mood``: present, perfect, imperative, or a modal verb of the lexicon."""

    subject: Pronoun | NounPhrase | Words
    verb: Verb
    object: NounPhrase | Words
    mood: str = "present"
    recipient: NounPhrase | Words | Pronoun | None = None
    time: Words | None = None
    place: Words | None = None
    manner: Words | None = None

    @property
    def person(self) -> int:
        return self.subject.person if isinstance(self.subject, Pronoun) else 1


State = namedtuple("State", "subject adjective")
Change = namedtuple("Change", "measure city rises percent mood")  # by `percent`; present, perfect or will
Clause = Action | State | Change

Command = namedtuple("Command", "action polite negative", defaults=[False, False])
Tap = namedtuple("Tap", "label heading polite")  # a label of an app, under a heading that is a placeholder, or ""
Statement = namedtuple("Statement", "clause opener", defaults=[None])
Question = namedtuple("Question", "clause word", defaults=[None])  # without a word a yes-no question
Conditional = namedtuple("Conditional", "conjunction condition main")
Reason = namedtuple("Reason", "clause reason")
Utterance = Command | Tap | Statement | Question | Conditional | Reason

MODALS = {mood: Words(*forms) for mood, forms in LEXICON["modals"].items()}


def join(*parts: str) -> str:
    """The non-empty parts, separated by a space."""
    return " ".join(part for part in parts if part)


def capitalised(text: str) -> str:
    """The text with its first letter in upper case."""
    return text[0].upper() + text[1:]


class Language(ABC):
    """What the languages share."""

    code: str
    stop, question_mark, because = ".", "?", ""

    @abstractmethod
    def command(self, command: Command, first: bool) -> str:
        """A command; ``first`` where it begins the sentence."""

    @abstractmethod
    def clause(self, clause: Clause, order: str = "main") -> str:
        """A clause. ``order`` matters in German: its finite verb comes second (``main``), first (``inverted``) or last
        (``final``)."""

    @abstractmethod
    def noun_phrase(self, phrase: NounPhrase, case: int = 0) -> str:
        """A noun phrase. ``case`` matters in German: 0 nominative, 1 accusative, 2 dative."""

    def sentence(self, utterance: Utterance) -> str:
        """The sentence with a capital letter and a full stop or question mark."""
        end = self.question_mark if isinstance(utterance, Question) else self.stop
        return capitalised(self.text(utterance)) + end

    def text(self, utterance: Utterance) -> str:
        match utterance:
            case Statement(clause, opener):
                return self.statement(clause, opener)
            case Question(clause, word):
                return self.question(clause, self.phrase(word))
            case Conditional(conjunction, condition, main):
                rest = self.clause(main, "inverted") if isinstance(main, Action) else self.order(main, first=False)
                return self.conditional(self.phrase(conjunction), self.clause(condition, "final"), rest)
            case Reason(clause, reason):
                return f"{self.clause(clause)}{self.because}{self.clause(reason, 'final')}"
        return self.order(utterance)

    def order(self, order: Command | Tap, first: bool = True) -> str:
        """A command or a tap."""
        if isinstance(order, Command):
            return self.command(order, first)
        # Plain, polite, and polite behind a condition; each without a heading, and with one.
        template = LEXICON["taps"][self.code][order.polite * (1 if first else 2)][bool(order.heading)]
        return template.format(heading=order.heading, label=self.phrase(order.label))

    def statement(self, clause: Clause, opener: Opener | None) -> str:
        return join(self.phrase(opener), self.clause(clause))

    def question(self, clause: Clause, word: str) -> str:
        return join(word, self.clause(clause, "inverted"))

    def conditional(self, conjunction: str, condition: str, main: str) -> str:
        return f"{conjunction} {condition}, {main}"

    def phrase(self, phrase: Any, case: int = 0) -> str:
        """A noun phrase, a pronoun or a fixed expression; empty for None."""
        if isinstance(phrase, NounPhrase):
            return self.noun_phrase(phrase, case)
        return getattr(phrase, self.code) if phrase else ""

    def change(self, change: Change, preposition: str = "") -> list[str]:
        """What changes, then the words that say how, as the lexicon parts them. German parts them in three."""
        place = f" {preposition} {self.phrase(change.city)}" if change.city else ""
        forms = LEXICON["changes"][self.code][change.mood][change.rises]
        return [self.phrase(change.measure) + place, *(form.format(change.percent) for form in forms)]

    def circumstances(self, action: Action) -> str:
        return join(*map(self.phrase, (action.manner, action.place, action.time)))


class English(Language):
    code, because = "en", " because "

    def command(self, command: Command, first: bool) -> str:
        words = ("please" if command.polite else "", "do not" if command.negative else "", command.action.verb.en[0])
        return join(*words, self.rest(command.action))

    def clause(self, clause: Clause, order: str = "main") -> str:
        return join(*self.parts(clause))

    def question(self, clause: Clause, word: str) -> str:
        subject, finite, rest = self.parts(clause)
        if isinstance(clause, Action) and clause.mood in ("present", "want"):
            finite = "does" if clause.person == 1 else "do"
            rest = join("want to" if clause.mood == "want" else "", clause.verb.en[0], self.rest(clause))
        return join(word, finite, subject, rest)

    def parts(self, clause: Clause) -> tuple[str, str, str]:
        """Subject, the finite verb or auxiliary (in front in a question), and the rest."""
        match clause:
            case State(subject, adjective):
                return self.phrase(subject), "is", adjective.en
            case Change():
                subject, finite, rest = self.change(clause, "in")
                return f"the {subject}", finite, rest
        base, third, participle, _ = clause.verb.en
        subject, singular, rest = self.phrase(clause.subject), clause.person == 1, self.rest(clause)
        if clause.mood == "present":
            return subject, third if singular else base, rest
        verb = f"already {participle}" if clause.mood == "perfect" else base
        return subject, MODALS[clause.mood].en[singular], join(verb, rest)

    def rest(self, action: Action) -> str:
        recipient = f"to {self.phrase(action.recipient)}" if action.recipient else ""
        return join(action.verb.en[-1], self.phrase(action.object), recipient, self.circumstances(action))

    def noun_phrase(self, phrase: NounPhrase, case: int = 0) -> str:
        words = join(self.phrase(phrase.adjective), phrase.noun.en_plural if phrase.plural else phrase.noun.en)
        article = "an" if phrase.determiner == "a" and words[0] in "aeiou" else phrase.determiner
        return f"{article} {words}"


class Chinese(Language):
    code, stop, question_mark, because = "zh", "。", "？", "，因为"

    def command(self, command: Command, first: bool) -> str:
        return "请" * command.polite + "不要" * command.negative + self.predicate(command.action)

    def clause(self, clause: Clause, order: str = "main") -> str:
        match clause:
            case State(subject, adjective):
                return f"{self.phrase(subject)}很{adjective.zh}"
            case Change():
                _, predicate = self.change(clause)
                return (f"{clause.city.zh}的" if clause.city else "") + clause.measure.zh + predicate
        return self.phrase(clause.subject) + self.predicate(clause)

    def statement(self, clause: Clause, opener: Opener | None) -> str:
        return self.phrase(opener) + self.clause(clause)

    def question(self, clause: Clause, word: str) -> str:
        if isinstance(clause, State):
            return f"{self.phrase(clause.subject)}{clause.adjective.zh}吗"
        if word and isinstance(clause, Action):
            return self.phrase(clause.subject) + self.predicate(clause, word)
        return self.clause(clause) + "吗"

    def conditional(self, conjunction: str, condition: str, main: str) -> str:
        return conjunction.format(condition) + main

    def predicate(self, action: Action, question: str = "") -> str:
        auxiliary = self.phrase(MODALS.get(action.mood))
        time, place, manner = map(self.phrase, (action.time, action.place, action.manner))
        verb = action.verb.zh.format(
            o=self.phrase(action.object), p=self.phrase(action.recipient), le="了" if action.mood == "perfect" else ""
        )
        return time + question + auxiliary + place + manner + verb

    def noun_phrase(self, phrase: NounPhrase, case: int = 0) -> str:
        """A definite noun stands alone; a classifier follows a number, *one* or *this*."""
        counted = {"a": "一", "this": "这"}.get(phrase.determiner, phrase.determiner) + phrase.noun.classifier
        adjective = f"{phrase.adjective.zh}的" if phrase.adjective else ""
        return LEXICON["determiners_zh"].get(phrase.determiner, counted) + adjective + phrase.noun.zh


class German(Language):
    """Cases, separable verbs, and three positions of the finite verb."""

    code, because = "de", ", weil "

    def command(self, command: Command, first: bool) -> str:
        """An imperative; *bitte* begins a sentence, else it follows the verb."""
        please = "bitte" if command.polite else ""
        before, after = (please, "") if first else ("", please)
        infinitive, *_, particle = command.action.verb.de
        return join(before, infinitive, "Sie", self.middle(command.action, command.negative, after), particle)

    def statement(self, clause: Clause, opener: Opener | None) -> str:
        text = self.clause(clause, opener.order if opener else "main")
        if opener and opener.order == "main":  # after a colon
            text = capitalised(text)
        return join(self.phrase(opener), text)

    def clause(self, clause: Clause, order: str = "main") -> str:
        subject, finite, middle, tail = self.parts(clause)
        if order == "main":
            return join(subject, finite, middle, tail)
        if order == "inverted":
            return join(finite, subject, middle, tail)
        if isinstance(clause, Action) and clause.mood == "present":
            return join(subject, middle, self.attached(tail, finite))
        return join(subject, middle, tail, finite)

    def parts(self, clause: Clause) -> Sequence[str]:
        """Subject, finite verb, the words between them and the end of the clause, and its last words."""
        match clause:
            case State(subject, adjective):
                return self.phrase(subject), "ist", "", adjective.de
            case Change():
                return self.change(clause, "in")
        infinitive, first, third, participle, particle = clause.verb.de
        subject, person, mood = self.phrase(clause.subject), min(clause.person, 2), clause.mood
        middle = self.middle(clause, negative=mood == "cannot")
        if mood == "present":
            return subject, (first, third, infinitive)[person], middle, particle
        verb = participle if mood == "perfect" else infinitive
        return subject, MODALS[mood].de[person], middle, self.attached(particle, verb)

    def attached(self, particle: str, verb: str) -> str:
        """A separable prefix joins its verb; a fixed phrase keeps its space."""
        return join(particle, verb) if " " in particle else particle + verb

    def middle(self, action: Action, negative: bool = False, please: str = "") -> str:
        """Weak pronoun, *bitte*, time, recipient, object, negation, place or manner, in this order."""
        recipient, no = self.phrase(action.recipient, 2), "nicht" if negative else ""
        weak, full = (recipient, "") if isinstance(action.recipient, Pronoun) else ("", recipient)
        already = "schon" if action.mood == "perfect" else ""
        preposition, target = action.verb.de_preposition, self.phrase(action.object, 1)
        patient = (no, preposition, target) if preposition else (target, no)
        time, place, manner = map(self.phrase, (action.time, action.place, action.manner))
        return join(weak, please, time, already, full, *patient, place, manner)

    def noun_phrase(self, phrase: NounPhrase, case: int = 0) -> str:
        noun, determiner, endings = phrase.noun, phrase.determiner, LEXICON["endings_de"]
        if phrase.plural:
            article, ending = determiner, endings["plural"][case]
        else:
            article = LEXICON["articles_de"][determiner][noun.de_gender][case]
            declension = "weak" if determiner in ("the", "this") else "mixed"
            ending = endings[declension][noun.de_gender][case]
        singular = noun.oblique if case and noun.oblique else noun.de
        adjective = phrase.adjective.de + ending if phrase.adjective else ""
        return join(article, adjective, noun.de_plural if phrase.plural else singular)


_ELISION = re.compile(r"\b([jnmld]|qu)[ea] (?=[aeiouéèêàâhAEIOUÉ])")


class French(Language):
    """Agreement, clitics, elision and contraction."""

    code, question_mark, because = "fr", " ?", " parce que "

    def text(self, utterance: Utterance) -> str:
        elided = _ELISION.sub(r"\1'", super().text(utterance))
        return elided.replace("à le ", "au ").replace("si il ", "s'il ")

    def command(self, command: Command, first: bool) -> str:
        action, clitic = command.action, self.clitic(command.action)
        infinitive, *_, vous, _, particle = action.verb.fr
        if command.polite:
            verb = join("veuillez", "ne pas" if command.negative else "", clitic, infinitive)
        elif command.negative:
            verb = join("ne", clitic, vous, "pas")
        else:
            verb = f"{vous}-{action.recipient.fr_stressed}" if clitic else vous
        return join(verb, particle, self.rest(action))

    def question(self, clause: Clause, word: str) -> str:
        return join(word, "est-ce que", self.clause(clause))

    def clause(self, clause: Clause, order: str = "main") -> str:
        match clause:
            case State(subject, adjective):
                return f"{self.phrase(subject)} est {self.agreeing(adjective, subject)}"
            case Change():
                return join(*self.change(clause, "à"))
        predicate, particle = self.predicate(clause), clause.verb.fr[-1]
        return join(self.phrase(clause.subject), predicate, particle, self.rest(clause))

    def predicate(self, action: Action) -> str:
        """The verb with its auxiliary, clitic and negation."""
        (infinitive, *finite, participle, _), clitic = action.verb.fr, self.clitic(action)
        if action.mood == "present":
            return join(clitic, finite[action.person])
        modal = MODALS[action.mood].fr[action.person]
        if action.mood == "perfect":
            return join(clitic, modal, "déjà", participle)
        return join(f"ne {modal} pas" if action.mood == "cannot" else modal, clitic, infinitive)

    def clitic(self, action: Action) -> str:
        return action.recipient.fr if isinstance(action.recipient, Pronoun) else ""

    def rest(self, action: Action) -> str:
        spoken = action.recipient and not self.clitic(action)
        recipient = f"à {self.phrase(action.recipient)}" if spoken else ""
        return join(self.phrase(action.object), recipient, self.circumstances(action))

    def agreeing(self, adjective: Adjective, phrase: NounPhrase) -> str:
        return adjective.fr[(phrase.noun.fr_gender == "f") + 2 * phrase.plural]

    def noun_phrase(self, phrase: NounPhrase, case: int = 0) -> str:
        noun = phrase.noun.fr_plural if phrase.plural else phrase.noun.fr
        if adjective := phrase.adjective:
            words = (self.agreeing(adjective, phrase), noun)
            noun = join(*(words if adjective.before else reversed(words)))
        if phrase.plural:
            return f"{phrase.determiner} {noun}"
        determiner = LEXICON["determiners_fr"][phrase.determiner][phrase.noun.fr_gender == "f"]
        if noun.startswith(tuple("aeiouéèêhAEIOUÉ")):
            determiner = {"ce": "cet", "ma": "mon"}.get(determiner, determiner)
        return f"{determiner} {noun}"


LANGUAGES = {language.code: language for language in (English(), Chinese(), German(), French())}


def express(utterance: Utterance) -> Words:
    """The sentence in each language."""
    return Words(*(language.sentence(utterance) for language in LANGUAGES.values()))
