"""Verbs of the synthetic corpus, with their inflected forms in the four languages."""

from __future__ import annotations

from entropy_valley.demo.grammar.inflection import English, French, German, Verb


def _weak(stem: str, participle: str, particle: str = "") -> German:
    return German(stem + "en", stem + "e", stem + ("et" if stem[-1] in "td" else "t"), participle, particle)


def _er(stem: str, particle: str = "") -> French:
    return French(stem + "er", stem + "e", stem + "e", stem + "ons", stem + "ez", stem + "é", particle)


_METTRE = ("mettre", "mets", "met", "mettons", "mettez", "mis")

VERBS = (
    Verb(
        "ox",
        English("open", "opens", "opened"),
        "打开{le}{o}",
        German("öffnen", "öffne", "öffnet", "geöffnet"),
        French("ouvrir", "ouvre", "ouvre", "ouvrons", "ouvrez", "ouvert"),
    ),
    Verb("o", English("close", "closes", "closed"), "关上{le}{o}", _weak("mach", "zugemacht", "zu"), _er("ferm")),
    Verb(
        "d",
        English("read", "reads", "read"),
        "读{le}{o}",
        German("lesen", "lese", "liest", "gelesen"),
        French("lire", "lis", "lit", "lisons", "lisez", "lu"),
    ),
    Verb(
        "d",
        English("sign", "signs", "signed"),
        "签署{le}{o}",
        German("unterschreiben", "unterschreibe", "unterschreibt", "unterschrieben"),
        _er("sign"),
    ),
    Verb(
        "d", English("print", "prints", "printed"), "打印{le}{o}", _weak("druck", "ausgedruckt", "aus"), _er("imprim")
    ),
    Verb("x", English("delete", "deletes", "deleted"), "删除{le}{o}", _weak("lösch", "gelöscht"), _er("supprim")),
    Verb("dmo", English("check", "checks", "checked"), "检查{le}{o}", _weak("überprüf", "überprüft"), _er("vérifi")),
    Verb(
        "x",
        English("update", "updates", "updated"),
        "更新{le}{o}",
        German("bringen", "bringe", "bringt", "auf den neuesten Stand gebracht", "auf den neuesten Stand"),
        French(*_METTRE, "à jour"),
    ),
    Verb("dtmp", English("look", "looks", "looked", "for"), "寻找{le}{o}", _weak("such", "gesucht"), _er("cherch")),
    Verb(
        "dtmp",
        English("find", "finds", "found"),
        "找到{le}{o}",
        German("finden", "finde", "findet", "gefunden"),
        _er("trouv"),
    ),
    Verb(
        "tm",
        English("buy", "buys", "bought"),
        "买{le}{o}",
        _weak("kauf", "gekauft"),
        French("acheter", "achète", "achète", "achetons", "achetez", "acheté"),
    ),
    Verb(
        "tm",
        English("sell", "sells", "sold"),
        "卖掉{le}{o}",
        _weak("verkauf", "verkauft"),
        French("vendre", "vends", "vend", "vendons", "vendez", "vendu"),
    ),
    Verb("tm", English("order", "orders", "ordered"), "订购{le}{o}", _weak("bestell", "bestellt"), _er("command")),
    Verb("mo", English("repair", "repairs", "repaired"), "修理{le}{o}", _weak("reparier", "repariert"), _er("répar")),
    Verb(
        "m",
        English("switch", "switches", "switched", "off"),
        "关掉{le}{o}",
        _weak("schalt", "ausgeschaltet", "aus"),
        French("éteindre", "éteins", "éteint", "éteignons", "éteignez", "éteint"),
    ),
    Verb(
        "m",
        English("start", "starts", "started", "up"),
        "把{o}投入使用{le}",
        German("nehmen", "nehme", "nimmt", "in Betrieb genommen", "in Betrieb"),
        French(*_METTRE, "en service"),
    ),
    Verb(
        "mo",
        English("clean", "cleans", "cleaned"),
        "把{o}擦干净{le}",
        _weak("reinig", "gereinigt"),
        French("nettoyer", "nettoie", "nettoie", "nettoyons", "nettoyez", "nettoyé"),
    ),
    Verb(
        "dt",
        English("forget", "forgets", "forgotten"),
        "忘记{le}{o}",
        German("vergessen", "vergesse", "vergisst", "vergessen"),
        _er("oubli"),
        voluntary=False,
    ),
    Verb(
        "t",
        English("lose", "loses", "lost"),
        "弄丢{le}{o}",
        German("verlieren", "verliere", "verliert", "verloren"),
        French("perdre", "perds", "perd", "perdons", "perdez", "perdu"),
        voluntary=False,
    ),
    Verb(
        "t",
        English("pick", "picks", "picked", "up"),
        "取{le}{o}",
        _weak("hol", "abgeholt", "ab"),
        French("récupérer", "récupère", "récupère", "récupérons", "récupérez", "récupéré"),
    ),
    Verb("mx", English("use", "uses", "used"), "使用{le}{o}", _weak("benutz", "benutzt"), _er("utilis")),
    Verb(
        "dm",
        English("inspect", "inspects", "inspected"),
        "仔细查看{le}{o}",
        German("nehmen", "nehme", "nimmt", "unter die Lupe genommen", "unter die Lupe"),
        _er("examin", "de près"),
    ),
    Verb(
        "dtm",
        English("send", "sends", "sent", "back"),
        "退回{le}{o}",
        _weak("schick", "zurückgeschickt", "zurück"),
        French("renvoyer", "renvoie", "renvoie", "renvoyons", "renvoyez", "renvoyé"),
    ),
    Verb(
        "d",
        English("translate", "translates", "translated"),
        "翻译{le}{o}",
        _weak("übersetz", "übersetzt"),
        French("traduire", "traduis", "traduit", "traduisons", "traduisez", "traduit"),
    ),
    Verb(
        "dt",
        English("throw", "throws", "thrown", "away"),
        "扔掉{le}{o}",
        German("werfen", "werfe", "wirft", "weggeworfen", "weg"),
        French("jeter", "jette", "jette", "jetons", "jetez", "jeté"),
    ),
    Verb(
        "p",
        English("call", "calls", "called"),
        "给{o}打{le}电话",
        German("rufen", "rufe", "ruft", "angerufen", "an"),
        French("appeler", "appelle", "appelle", "appelons", "appelez", "appelé"),
    ),
    Verb(
        "p",
        English("visit", "visits", "visited"),
        "拜访{le}{o}",
        _weak("besuch", "besucht"),
        French("rendre", "rends", "rend", "rendons", "rendez", "rendu", "visite à"),
    ),
    Verb(
        "p",
        English("invite", "invites", "invited"),
        "邀请{le}{o}",
        German("laden", "lade", "lädt", "eingeladen", "ein"),
        _er("invit"),
    ),
    Verb(
        "p",
        English("inform", "informs", "informed"),
        "通知{le}{o}",
        _weak("benachrichtig", "benachrichtigt"),
        French("prévenir", "préviens", "prévient", "prévenons", "prévenez", "prévenu"),
    ),
    Verb(
        "p",
        English("wait", "waits", "waited", "for"),
        "等{o}",
        _weak("wart", "gewartet")._replace(preposition="auf"),
        French("attendre", "attends", "attend", "attendons", "attendez", "attendu"),
    ),
)

DITRANSITIVE = (
    Verb(
        "dt",
        English("send", "sends", "sent"),
        "把{o}寄给{le}{p}",
        _weak("schick", "geschickt"),
        French("envoyer", "envoie", "envoie", "envoyons", "envoyez", "envoyé"),
    ),
    Verb("dtmx", English("show", "shows", "shown"), "给{p}看{le}{o}", _weak("zeig", "gezeigt"), _er("montr")),
    Verb(
        "dtm",
        English("give", "gives", "given"),
        "把{o}交给{le}{p}",
        German("geben", "gebe", "gibt", "gegeben"),
        _er("donn"),
    ),
    Verb(
        "dmx",
        English("explain", "explains", "explained"),
        "向{p}说明{le}{o}",
        _weak("erklär", "erklärt"),
        _er("expliqu"),
    ),
)
