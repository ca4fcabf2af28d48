"""Nouns, people and places of the synthetic corpus, with their equivalents in the four languages."""

from __future__ import annotations

from typing import NamedTuple


class Noun(NamedTuple):
    """A countable noun.

    ``kinds`` decide which verbs and adjectives it takes: d document, x digital, t thing, m machine, o something to
    open, p person. ``classifier`` is the Chinese measure word; ``oblique`` the German singular outside the nominative,
    if it differs (weak nouns).
    """

    kinds: str
    en: str
    en_plural: str
    zh: str
    classifier: str
    de_gender: str
    de: str
    de_plural: str
    fr_gender: str
    fr: str
    fr_plural: str
    oblique: str = ""


class Words(NamedTuple):
    """An expression that no language inflects."""

    en: str
    zh: str
    de: str
    fr: str


_TABLE = """
d|letter|letters|信|封|m|Brief|Briefe|f|lettre|lettres
dx|file|files|文件|份|f|Datei|Dateien|m|fichier|fichiers
d|report|reports|报告|份|m|Bericht|Berichte|m|rapport|rapports
d|invoice|invoices|发票|张|f|Rechnung|Rechnungen|f|facture|factures
d|contract|contracts|合同|份|m|Vertrag|Verträge|m|contrat|contrats
dx|message|messages|消息|条|f|Nachricht|Nachrichten|m|message|messages
d|manual|manuals|使用说明书|本|f|Bedienungsanleitung|Bedienungsanleitungen|m|mode d'emploi|modes d'emploi
dx|list|lists|清单|份|f|Liste|Listen|f|liste|listes
d|application form|application forms|申请表|张|n|Antragsformular|Antragsformulare|m|formulaire de demande|formulaires de demande
dx|timetable|timetables|时刻表|张|m|Fahrplan|Fahrpläne|m|horaire|horaires
dt|book|books|书|本|n|Buch|Bücher|m|livre|livres
t|key|keys|钥匙|把|m|Schlüssel|Schlüssel|f|clé|clés
t|ticket|tickets|票|张|f|Fahrkarte|Fahrkarten|m|billet|billets
t|credit card|credit cards|信用卡|张|f|Kreditkarte|Kreditkarten|f|carte de crédit|cartes de crédit
to|parcel|parcels|包裹|个|n|Paket|Pakete|m|colis|colis
to|bag|bags|包|个|f|Tasche|Taschen|m|sac|sacs
t|coat|coats|大衣|件|m|Mantel|Mäntel|m|manteau|manteaux
t|bicycle|bicycles|自行车|辆|n|Fahrrad|Fahrräder|m|vélo|vélos
tx|picture|pictures|图片|张|n|Bild|Bilder|f|image|images
m|printer|printers|打印机|台|m|Drucker|Drucker|f|imprimante|imprimantes
m|computer|computers|电脑|台|m|Computer|Computer|m|ordinateur|ordinateurs
m|mobile phone|mobile phones|手机|部|n|Handy|Handys|m|téléphone portable|téléphones portables
m|washing machine|washing machines|洗衣机|台|f|Waschmaschine|Waschmaschinen|f|machine à laver|machines à laver
m|camera|cameras|相机|台|f|Kamera|Kameras|m|appareil photo|appareils photo
o|door|doors|门|扇|f|Tür|Türen|f|porte|portes
o|window|windows|窗户|扇|n|Fenster|Fenster|f|fenêtre|fenêtres
x|account|accounts|帐户|个|n|Konto|Konten|m|compte|comptes
x|app|apps|应用|个|f|App|Apps|f|application|applications
p|customer|customers|客户|位|m|Kunde|Kunden|m|client|clients|Kunden
p|doctor|doctors|医生|位|m|Arzt|Ärzte|m|médecin|médecins
p|neighbour|neighbours|邻居|位|m|Nachbar|Nachbarn|m|voisin|voisins|Nachbarn
p|teacher|teachers|老师|位|m|Lehrer|Lehrer|m|professeur|professeurs
p|manager|managers|经理|位|m|Geschäftsführer|Geschäftsführer|m|directeur|directeurs
p|colleague|colleagues|同事|位|f|Kollegin|Kolleginnen|f|collègue|collègues
p|nurse|nurses|护士|位|f|Krankenschwester|Krankenschwestern|f|infirmière|infirmières
p|tax adviser|tax advisers|税务顾问|位|m|Steuerberater|Steuerberater|m|conseiller fiscal|conseillers fiscaux
p|guest|guests|客人|位|m|Gast|Gäste|m|invité|invités
"""  # noqa: E501 - a table
NOUNS = tuple(Noun(*line.split("|")) for line in _TABLE.strip().splitlines())

_NAMES = {
    "Anna": "安娜", "Peter": "彼得", "Maria": "玛丽亚", "Thomas": "托马斯", "Julia": "朱莉娅", "Paul": "保罗",
    "Li Wei": "李伟", "Wang Fang": "王芳", "#NAME#": "#NAME#", "#PRS_ORG#": "#PRS_ORG#",
}  # fmt: skip
PEOPLE = tuple(Words(name, zh, name, name) for name, zh in _NAMES.items())

PRODUCT = Words("#PRODUCT#", "#PRODUCT#", "#PRODUCT#", "#PRODUCT#")

CITIES = (
    Words("Berlin", "柏林", "Berlin", "Berlin"),
    Words("Paris", "巴黎", "Paris", "Paris"),
    Words("London", "伦敦", "London", "Londres"),
    Words("Vienna", "维也纳", "Wien", "Vienne"),
    Words("Beijing", "北京", "Peking", "Pékin"),
)

PLACES = (
    Words("in the kitchen", "在厨房里", "in der Küche", "dans la cuisine"),
    Words("at the station", "在车站", "am Bahnhof", "à la gare"),
    Words("in the office", "在办公室", "im Büro", "au bureau"),
    Words("at home", "在家", "zu Hause", "à la maison"),
    Words("on the ground floor", "在一楼", "im Erdgeschoss", "au rez-de-chaussée"),
    Words("at the post office", "在邮局", "bei der Post", "à la poste"),
    *(Words(f"in {city.en}", f"在{city.zh}", f"in {city.de}", f"à {city.fr}") for city in CITIES),
)
