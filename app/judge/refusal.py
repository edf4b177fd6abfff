"""Tell a refusal from other replies that hold no answer."""

import re

_IN_SIGHT = 300

_REFUSALS = (
    # English
    r"\bI(?:'|’)?(?: a)?m (?:really |very |so |truly )?sorry\b(?! for the (?:delay|wait))",
    r"\b(?:I|we) (?:can ?not|can(?:'|’)t|could ?n(?:o|'|’)t)\b(?! (?:find|see|detect|identify|be (?:sure|certain))\b)",
    r"\b(?:I|we) (?:won(?:'|’)t|will not|must decline|have to decline)\b",
    r"\b(?:I(?:'|’)m|I am|we are) (?:not able|unable|not comfortable|not allowed)\b",
    r"\b(?:my|our|content|usage) (?:guidelines|polic(?:y|ies))\b",
    # French
    r"\b(?:désolée?|navrée?)\b",
    r"\bje ne (?:peux|puis|suis pas en mesure|suis pas capable|souhaite)\b",
    r"\bil m(?:'|’)est impossible\b",
    # German
    r"\btut mir leid\b",
    r"\bich kann\b[^.!?\n]{0,80}\bnicht\b",
    r"\bich (?:darf|werde)\b[^.!?\n]{0,80}\bnicht\b",
    # Spanish
    r"\blo siento\b",
    r"\b(?:no puedo|no me es posible|no estoy en condiciones)\b",
    # Portuguese
    r"\b(?:sinto muito|desculpe|lamento)\b",
    r"\bnão (?:posso|consigo|estou apto)\b",
    # Italian
    r"\b(?:mi dispiace|mi scuso|sono spiacente)\b",
    r"\bnon (?:posso|riesco a|sono in grado di|mi è possibile)\b",
    # Dutch
    r"\b(?:het spijt me|sorry, maar)\b",
    r"\bik (?:kan|mag|zal|wil)\b[^.!?\n]{0,80}\bniet\b",
    # Polish
    r"\bprzykro mi\b|\bprzepraszam\b",
    r"\bnie (?:mogę|jestem w stanie|wolno mi)\b",
    # Russian
    r"\b(?:извините|простите|прошу прощения)\b",
    r"\bя не (?:могу|буду|в состоянии|вправе)\b|\bне могу (?:оценить|помочь|выполнить|ответить|обсуждать)",
    # Arabic
    r"آسف|أعتذر|عذر[اًا]|لا (?:أستطيع|يمكنني|أقدر)|لن أ(?:ستطيع|تمكن)|غير قادر",
    # Hindi
    r"माफ़? ?क(?:रें|ीजिए)|क्षमा|खेद|नहीं (?:कर|दे) (?:सकत|पाऊ)|असमर्थ",
    # Korean
    r"죄송|유감|(?:할|드릴|줄|답변할|평가할)\s?수\s?(?:가\s?)?없|도와드리기\s?어렵|거절",
    # Japanese
    r"申し訳|すみません|できません|いたしかねます|致しかねます|お断り|お答えできな",
    # Chinese
    r"抱歉|对不起|對不起|无法|無法|不能(?:提供|协助|回答|评|評|帮)|拒绝|拒絕",
)
_REFUSAL = re.compile("|".join(_REFUSALS), re.IGNORECASE)


def is_refusal(text: str) -> bool:
    """Return whether a reply without an answer declines the task, in the languages that models refuse in most."""
    return bool(_REFUSAL.search(text[:_IN_SIGHT]))
