"""Verbs of the synthetic corpus, with their inflected forms in the four languages."""

from __future__ import annotations

from typing import NamedTuple


class English(NamedTuple):
    """Infinitive, third person and participle; ``particle`` follows the verb (``switch`` … ``on``)."""

    base: str
    third: str
    participle: str
    particle: str


class German(NamedTuple):
    """Infinitive, first and third person singular and participle, all without their particle.

    ``particle`` closes the clause: one word is a separable prefix, several are a fixed phrase.
    """

    base: str
    first: str
    third: str
    participle: str
    particle: str


class French(NamedTuple):
    """Infinitive, je, il, nous, vous and participle; ``particle`` follows the verb (``mettre`` … ``à jour``)."""

    infinitive: str
    je: str
    il: str
    nous: str
    vous: str
    participle: str
    particle: str


class Verb(NamedTuple):
    """A transitive verb; ``objects`` are the kinds of noun it takes (see :class:`.nouns.Noun`).

    ``zh`` is a template of ``{o}`` (object), ``{p}`` (recipient, of ditransitive verbs only) and ``{le}`` (了).
    ``de_preposition`` governs an accusative object.
    """

    objects: str
    en: English
    zh: str
    de: German
    fr: French
    de_preposition: str


# Kinds of object, English, Chinese, German, French, a German preposition. A particle stands behind "…".
_TABLE = """
ox|open opens opened|打开{le}{o}|öffnen öffne öffnet geöffnet|ouvrir ouvre ouvre ouvrons ouvrez ouvert
o|close closes closed|关上{le}{o}|machen mache macht gemacht … zu|fermer ferme ferme fermons fermez fermé
d|read reads read|读{le}{o}|lesen lese liest gelesen|lire lis lit lisons lisez lu
d|sign signs signed|签署{le}{o}|unterschreiben unterschreibe unterschreibt unterschrieben|signer signe signe signons signez signé
d|print prints printed|打印{le}{o}|drucken drucke druckt gedruckt … aus|imprimer imprime imprime imprimons imprimez imprimé
x|delete deletes deleted|删除{le}{o}|löschen lösche löscht gelöscht|supprimer supprime supprime supprimons supprimez supprimé
dmo|check checks checked|检查{le}{o}|überprüfen überprüfe überprüft überprüft|vérifier vérifie vérifie vérifions vérifiez vérifié
x|update updates updated|更新{le}{o}|bringen bringe bringt gebracht … auf den neuesten Stand|mettre mets met mettons mettez mis … à jour
dtmp|look looks looked … for|寻找{le}{o}|suchen suche sucht gesucht|chercher cherche cherche cherchons cherchez cherché
dtmp|find finds found|找到{le}{o}|finden finde findet gefunden|trouver trouve trouve trouvons trouvez trouvé
tm|buy buys bought|买{le}{o}|kaufen kaufe kauft gekauft|acheter achète achète achetons achetez acheté
tm|sell sells sold|卖掉{le}{o}|verkaufen verkaufe verkauft verkauft|vendre vends vend vendons vendez vendu
tm|order orders ordered|订购{le}{o}|bestellen bestelle bestellt bestellt|commander commande commande commandons commandez commandé
mo|repair repairs repaired|修理{le}{o}|reparieren repariere repariert repariert|réparer répare répare réparons réparez réparé
m|switch switches switched … off|关掉{le}{o}|schalten schalte schaltet geschaltet … aus|éteindre éteins éteint éteignons éteignez éteint
m|start starts started … up|把{o}投入使用{le}|nehmen nehme nimmt genommen … in Betrieb|mettre mets met mettons mettez mis … en service
mo|clean cleans cleaned|把{o}擦干净{le}|reinigen reinige reinigt gereinigt|nettoyer nettoie nettoie nettoyons nettoyez nettoyé
dt|forget forgets forgotten|忘记{le}{o}|vergessen vergesse vergisst vergessen|oublier oublie oublie oublions oubliez oublié
t|lose loses lost|弄丢{le}{o}|verlieren verliere verliert verloren|perdre perds perd perdons perdez perdu
t|pick picks picked … up|取{le}{o}|holen hole holt geholt … ab|récupérer récupère récupère récupérons récupérez récupéré
mx|use uses used|使用{le}{o}|benutzen benutze benutzt benutzt|utiliser utilise utilise utilisons utilisez utilisé
dm|inspect inspects inspected|仔细查看{le}{o}|nehmen nehme nimmt genommen … unter die Lupe|examiner examine examine examinons examinez examiné … de près
dtm|send sends sent … back|退回{le}{o}|schicken schicke schickt geschickt … zurück|renvoyer renvoie renvoie renvoyons renvoyez renvoyé
d|translate translates translated|翻译{le}{o}|übersetzen übersetze übersetzt übersetzt|traduire traduis traduit traduisons traduisez traduit
dt|throw throws thrown … away|扔掉{le}{o}|werfen werfe wirft geworfen … weg|jeter jette jette jetons jetez jeté
p|call calls called|给{o}打{le}电话|rufen rufe ruft gerufen … an|appeler appelle appelle appelons appelez appelé
p|visit visits visited|拜访{le}{o}|besuchen besuche besucht besucht|rendre rends rend rendons rendez rendu … visite à
p|invite invites invited|邀请{le}{o}|laden lade lädt geladen … ein|inviter invite invite invitons invitez invité
p|inform informs informed|通知{le}{o}|benachrichtigen benachrichtige benachrichtigt benachrichtigt|prévenir préviens prévient prévenons prévenez prévenu
p|wait waits waited … for|等{o}|warten warte wartet gewartet|attendre attends attend attendons attendez attendu|auf
dt|send sends sent|把{o}寄给{le}{p}|schicken schicke schickt geschickt|envoyer envoie envoie envoyons envoyez envoyé
dtmx|show shows shown|给{p}看{le}{o}|zeigen zeige zeigt gezeigt|montrer montre montre montrons montrez montré
dtm|give gives given|把{o}交给{le}{p}|geben gebe gibt gegeben|donner donne donne donnons donnez donné
dmx|explain explains explained|向{p}说明{le}{o}|erklären erkläre erklärt erklärt|expliquer explique explique expliquons expliquez expliqué
"""  # noqa: E501 - a table


def _verb(objects: str, en: str, zh: str, de: str, fr: str, de_preposition: str = "") -> Verb:
    return Verb(objects, English(*_forms(en)), zh, German(*_forms(de)), French(*_forms(fr)), de_preposition)


def _forms(cell: str) -> list[str]:
    forms, _, particle = cell.partition(" … ")
    return [*forms.split(), particle]


_ALL = tuple(_verb(*line.split("|")) for line in _TABLE.strip().splitlines())
VERBS = tuple(verb for verb in _ALL if "{p}" not in verb.zh)
DITRANSITIVE = tuple(verb for verb in _ALL if "{p}" in verb.zh)
INVOLUNTARY = ("forget", "lose")
