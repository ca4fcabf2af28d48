"""Adjectives, adverbials, modal verbs and fixed expressions of the synthetic corpus."""

from __future__ import annotations

from typing import NamedTuple

from entropy_valley.demo.grammar.nouns import PEOPLE, Words


class Adjective(NamedTuple):
    """``fr`` has four forms (masculine, feminine, and their plurals); ``before``: it precedes a French noun.

    ``predicate`` is the English after *is*, empty where the adjective is only used with a noun.
    """

    kinds: str
    en: str
    zh: str
    de: str
    fr: tuple[str, str, str, str]
    before: bool = False
    predicate: str = ""


class Modal(NamedTuple):
    """A finite auxiliary: German forms for ich, er, wir; French for je, il, nous, vous."""

    en: str
    zh: str
    de: tuple[str, str, str]
    fr: tuple[str, str, str, str]
    negative: bool = False


class Opener(NamedTuple):
    """Words before a statement; ``order`` is the German word order after them: main, inverted or final."""

    en: str
    zh: str
    de: str
    fr: str
    order: str


def _regular(stem: str, feminine: str = "e") -> tuple[str, str, str, str]:
    return stem, stem + feminine, stem + "s", stem + feminine + "s"


ADJECTIVES = (
    Adjective("tmo", "large", "大", "groß", _regular("grand"), True, "large"),
    Adjective("tmo", "small", "小", "klein", _regular("petit"), True, "small"),
    Adjective("d", "important", "重要", "wichtig", _regular("important"), False, "important"),
    Adjective("d", "long", "长", "lang", ("long", "longue", "longs", "longues"), True, "long"),
    Adjective("tm", "heavy", "重", "schwer", _regular("lourd"), False, "heavy"),
    Adjective("to", "red", "红色", "rot", _regular("rouge", "")),
    Adjective("to", "black", "黑色", "schwarz", _regular("noir")),
    Adjective("tm", "brand-new", "全新", "nagelneu", ("tout neuf", "toute neuve", "tout neufs", "toutes neuves")),
    Adjective("tm", "cheap", "便宜", "günstig", ("bon marché",) * 4, False, "cheap"),
    Adjective("dx", "outdated", "过时", "veraltet", _regular("dépassé"), False, "outdated"),
    Adjective("mp", "reliable", "可靠", "zuverlässig", _regular("fiable", ""), False, "reliable"),
)

MODALS = {
    "can": Modal("can", "可以", ("kann", "kann", "können"), ("peux", "peut", "pouvons", "pouvez")),
    "cannot": Modal("cannot", "不能", ("kann", "kann", "können"), ("peux", "peut", "pouvons", "pouvez"), True),
    "must": Modal("must", "必须", ("muss", "muss", "müssen"), ("dois", "doit", "devons", "devez")),
    "should": Modal("should", "应该", ("sollte", "sollte", "sollten"), ("devrais", "devrait", "devrions", "devriez")),
    "will": Modal("will", "会", ("werde", "wird", "werden"), ("vais", "va", "allons", "allez")),
    "want": Modal("want to", "想", ("möchte", "möchte", "möchten"), ("veux", "veut", "voulons", "voulez")),
}

_HOURS = tuple(Words(f"at {n} o'clock", f"{n}点", f"um {n} Uhr", f"à {n} heures") for n in range(2, 13))
_DELAYS = tuple(Words(f"in {n} minutes", f"{n}分钟后", f"in {n} Minuten", f"dans {n} minutes") for n in range(5, 60, 5))

TIMES = (
    Words("now", "现在", "jetzt", "maintenant"),
    Words("today", "今天", "heute", "aujourd'hui"),
    Words("tomorrow", "明天", "morgen", "demain"),
    Words("tonight", "今晚", "heute Abend", "ce soir"),
    Words("immediately", "立刻", "sofort", "immédiatement"),
    Words("as soon as possible", "尽快", "so bald wie möglich", "dès que possible"),
    Words("next week", "下周", "nächste Woche", "la semaine prochaine"),
    Words("on Monday", "星期一", "am Montag", "lundi"),
    Words("on Friday", "星期五", "am Freitag", "vendredi"),
)
CLOCK = _HOURS + _DELAYS
HABITS = (
    Words("every day", "每天", "jeden Tag", "tous les jours"),
    Words("from time to time", "时不时", "ab und zu", "de temps en temps"),
    Words("in the afternoon", "下午", "am Nachmittag", "l'après-midi"),
)
PAST = (Words("today", "今天", "heute", "aujourd'hui"), Words("this morning", "今天早上", "heute Morgen", "ce matin"))
MANNERS = (Words("in person", "亲自", "persönlich", "en personne"),)
COMPANY = tuple(
    Words(f"together with {one.en}", f"和{one.zh}一起", f"zusammen mit {one.de}", f"avec {one.fr}") for one in PEOPLE
)

LABELS = (
    Words("Reset", "重置", "Zurücksetzen", "Réinitialiser"),
    Words("Sign out", "退出", "Abmelden", "Se déconnecter"),
    Words("Settings", "设置", "Einstellungen", "Paramètres"),
    Words("Save", "保存", "Speichern", "Enregistrer"),
    Words("Next", "下一步", "Weiter", "Suivant"),
    Words("Help", "帮助", "Hilfe", "Aide"),
    Words("Cancel", "取消", "Abbrechen", "Annuler"),
    Words("#PRODUCT#", "#PRODUCT#", "#PRODUCT#", "#PRODUCT#"),
)

CONJUNCTIONS = (
    Words("If", "如果{}，", "Wenn", "Si"),
    Words("Whenever", "每当{}时，", "Immer wenn", "Chaque fois que"),
    Words("As soon as", "一旦{}，", "Sobald", "Dès que"),
)

QUESTIONS = (Words("Why", "为什么", "Warum", "Pourquoi"), Words("When", "什么时候", "Wann", "Quand"))

OPENERS = (
    Opener("I think that", "我认为", "Ich glaube, dass", "Je pense que", "final"),
    Opener("Unfortunately,", "可惜", "Leider", "Malheureusement,", "inverted"),
    Opener("As far as I know,", "据我所知，", "Meines Wissens", "À ma connaissance,", "inverted"),
)
LONG_OPENERS = (
    Opener("It goes without saying that", "当然，", "Selbstverständlich", "Il va de soi que", "inverted"),
    Opener("Rumour has it that", "听说", "Angeblich", "Il paraît que", "inverted"),
    Opener("FYI:", "供您参考：", "Nur zu Ihrer Information:", "Pour votre information :", "main"),
)

MEASURES = (
    Words("price", "价格", "der Preis", "le prix"),
    Words("rent", "租金", "die Miete", "le loyer"),
    Words("demand", "需求", "die Nachfrage", "la demande"),
)
