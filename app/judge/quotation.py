"""Tell an answer that the judge gives from one that it quotes, by the prose around it.

A reply to hostile text may repeat the answer that the text asks for, in any of the eight languages. What can't be told
apart counts as quoted: such a reply is asked for again, while a quoted answer that is taken for the judge's own would
be the author's verdict on himself.
"""

import re

_IN_SIGHT = 300
_SHORT = 200


def _words(*groups: str) -> str:
    return rf"\b(?:{'|'.join(groups)})\b"


# Who may be quoted.
_SPEAKER = _words(
    "it|texts?|author|writer|segments?|passage|paragraph|sentence|user|message|evidence|quot(?:e|ation)|content|input",
    "document|prompt|texte|auteur|phrase|utilisateur|autor|verfasser|absatz|satz|abschnitt|nutzer|nachricht|texto",
    "usuario|mensaje|fragmento|segmento|frase|usuário|mensagem|trecho",
) + (
    "|文本|原文|文中|作者|用户|段落|片段|テキスト|本文|文章|著者|筆者|ユーザー|セグメント"
    "|텍스트|본문|글|저자|작성자|사용자|세그먼트|문장"
)
_SPEAKS = (
    _words(
        "says?|said|demands?|asks?|tells?|told|wants?|reads?|instructs?|orders?|requests?|requires?|claims?|states?|quotes?",
        "ends?|begins?|inserts?|embeds?|suggests?|dit|demande|exige|veut|affirme|termine|finit|ordonne|sagt|verlangt",
        "fordert|will|bittet|endet|lautet|behauptet|steht|dice|pide|quiere|termina|ordena|afirma|diz|pede|quer",
    )
    + "|要求|写道|写着|声称|说|書|求め|述べ|요구|적혀|쓰여|말"
)
# "The text contains no opinion" is a finding, "the text contains" a quotation.
_HOLDS = (
    r"\b(?:contains?|holds?|includes?|has|shows?)\b(?!\s+(?:no|only|nothing|just|any|one|two|an opinion|\d))"
    r"|(?<!ne )\b(?:contient|inclut)\b(?!\s+(?:aucune?|que|une opinion))"
    r"|\benthält\b(?!\s+(?:keine?n?|nur|eine Meinung))"
    r"|(?<!no )\b(?:contiene|incluye)\b(?!\s+(?:ningun|solo|una opin))"
    r"|(?<!não )\b(?:contém|inclui)\b(?!\s+(?:nenhum|apenas|uma opin))"
    r"|(?<![不没有])(?:包含|含有)(?!观点)|含(?!まれていな|まれていませ|まな)|포함(?!되어 있지|하지|되지)"
)
_HOSTILE = _words("told to|asked to|instructed to|ordered to|demanded|injected|embedded|planted|quoted")
_SPOKEN_OF = re.compile(_SPEAKER, re.IGNORECASE)
_SPOKEN = re.compile(rf"(?:{_SPEAKER}).{{0,60}}?(?:{_SPEAKS}|{_HOLDS})|{_HOSTILE}", re.IGNORECASE | re.DOTALL)
_POINTING = re.compile(
    _words("this|following|as follows|json|object|answer|reply|output|instruction|suivante?|folgende\\w*|siguiente")
    + "|以下|次の|다음",
    re.IGNORECASE,
)
_OWN = re.compile(
    _words(
        "here|sure|okay|ok|certainly|of course|answers?|evaluation|verdicts?|assessment|analysis|results?|judge?ment",
        "response|output|voici|réponse|évaluation|résultat|hier|antwort|bewertung|urteil|ergebnis|aquí|respuesta",
        "evaluación|resultado|aqui|resposta|avaliação",
    )
    + "|以下|结果|評価|评估|答案|回答|結果|결과|평가|답변",
    re.IGNORECASE,
)
_TURN = (
    r"(?:^|[.!?。！？\n])[\s*_]*"
    + _words(
        "but|however|actually|wait|or|instead|correction|hmm|scratch that|on second thought|mais|cependant|toutefois",
        "en fait|attendez|aber|jedoch|allerdings|eigentlich|moment|pero|sin embargo|en realidad|espera|mas|porém",
        "no entanto|na verdade|espere|(?:no|non|nein|não)(?=[,.:;!])",
    )
    + "|但|不过|然而|等等|しかし|待って|하지만|그러나|잠깐"
)
_UNSURE = (
    r"\b(?:not|isn['’]t|can['’]t|cannot)\s+(?:be\s+)?(?:entirely\s+|really\s+)?(?:sure|certain)\b|\b(?:unsure|uncertain)"
    r"|\bpas sûre?\b|\bnicht sicher\b|\b(?:no estoy|não estou) (?:segur|cert)|\bnão tenho certeza"
    "|不确定|確信|[わ分]かりません|확실하지|확신"
)
_DECIDING = (
    r"\bI(?:\s+(?:will|would|shall|must|should|now|do|have|to)|['’]ll)*\s+(?:ignor|disregard|reject|retract|decid)"
    r"|\bmy own\b|\bnot (?:my|the) (?:own )?(?:answer|verdict)|\bje décide|\bignor(?:e|iere|aré|arei)\b"
    "|忽略|自行|無視|自分で|무시|스스로"
)
_AUTHORS_WISH = (
    r"\b(?:wants|wanted|asks|asked|tells|told|instructs|instructed|orders|ordered) (?:me|the (?:judge|model))\b"
    r"|\bwhat (?:the|this|its) (?:text|author|writer|user|segment|passage|message)\b|\binjection\b|\bsteer|\bmanipulat"
)
_TAKEN_BACK = re.compile("|".join((_TURN, _UNSURE, _DECIDING, _AUTHORS_WISH)), re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_FENCE = re.compile(r"```[\w-]*")
_MARKUP = " \t*_#`-=→"
_FULL_STOPS = ".!?。！？"


def is_given(before: str, after: str) -> bool:
    """Return whether a document between these proses is the judge's own answer, as far as they tell.

    A lead-in must not ascribe it to the text, and one on its own line must be short and introduce it. The sentence that
    holds the document must end with it, and what follows must not take it back.
    """
    return _introduces(before[-_IN_SIGHT:]) and not _takes_back(after[:_IN_SIGHT])


def _introduces(before: str) -> bool:
    prose = _FENCE.sub("\n", before)
    lead_in = next((part for part in reversed(_SENTENCE_END.split(prose)) if part.strip(_MARKUP)), "").strip(_MARKUP)
    line = prose.rpartition("\n")[2].strip(_MARKUP)
    is_closed = lead_in.endswith(tuple(_FULL_STOPS))
    if _SPOKEN.search(lead_in) and (not is_closed or _POINTING.search(lead_in)):
        return False
    if len(line) > _SHORT:
        return False
    if not line or is_closed or _OWN.search(lead_in):
        return True
    return line[-1] in ":：" and not _SPOKEN_OF.search(lead_in)


def _takes_back(after: str) -> bool:
    prose = _FENCE.sub("", after)
    return _goes_on(prose) or bool(_TAKEN_BACK.search(prose.strip()))


def _goes_on(prose: str) -> bool:
    """Whether the sentence that holds the document goes on behind it."""
    follows = prose.lstrip(" \t`*\"'”»」』)")
    if not follows:
        return False
    has_case = follows[0].lower() != follows[0].upper()
    adjoins = follows[0].isalpha() and not has_case and prose[0] == follows[0]
    return follows[0] in ",;，、" or follows[0].islower() or adjoins
