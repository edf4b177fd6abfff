import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import EmptyReply, JudgeRefused, TruncatedReply, UnreadableReply
from app.judge.parse import answer_in
from app.ports import Completion, FinishReason

GOOD = '{"verdicts": [{"n": 1, "reason": "Blames a whole town.", "verdict": "yes"}]}'
OTHER = '{"verdicts": [{"n": 1, "reason": "Harmless.", "verdict": "no"}]}'
ANSWER = [{"n": 1, "reason": "Blames a whole town.", "verdict": "yes"}]


def answer(text: str, key: str = "verdicts", finish: FinishReason = FinishReason.STOP) -> Any:
    return answer_in(Completion(text, finish, "fake/judge"), key)


READABLE = {
    "bare": GOOD,
    "spaces around": f"\n\t {GOOD} \n",
    "byte order mark": f"\ufeff{GOOD}",
    "fence": f"```json\n{GOOD}\n```",
    "fence without a language": f"```\n{GOOD}\n```",
    "fence on one line": f"```json {GOOD} ```",
    "fence not closed": f"```json\n{GOOD}",
    "fence with prose around": f"My verdict:\n\n```json\n{GOOD}\n```\n\nTell me if you want more.",
    "two fences, the first of them code": f"```python\nx = [1]\n```\n```json\n{GOOD}\n```",
    "prose before": f"Of course! {GOOD}",
    "prose after": f"{GOOD} I was strict.",
    "prose with braces": f"As {{asked}} for item [1]: {GOOD} See {{above}} and [[here]].",
    "prose in Korean": f"평가 결과입니다.\n{GOOD}\n감사합니다.",
    "prose in French": f"Voici l’évaluation « demandée » :\n{GOOD}",
    "reasoning": f"<think>Perhaps {OTHER}? No.</think>\n{GOOD}",
    "reasoning with a tag in it": f"<think>The tag <think> again, {OTHER}</think>{OTHER}</think>{GOOD}",
    "reasoning, upper case": f"<THINKING>hm {OTHER}</THINKING>{GOOD}",
    "reasoning, another tag": f"<reasoning>{OTHER}</reasoning>{GOOD}",
    "reasoning in brackets": f"[THINK]{OTHER}[/THINK]{GOOD}",
    "reasoning, closed only": f"First {{one}}: {OTHER}\n</think>\n{GOOD}",
    "channels": f"<|channel|>analysis<|message|>{OTHER}<|end|><|start|>assistant<|channel|>final<|message|>{GOOD}",
    "chat token after": f"{GOOD}<|im_end|>",
    "end of sequence after": f"{GOOD}</s>",
    "trailing commas": '{"verdicts": [{"n": 1, "reason": "Blames a whole town.", "verdict": "yes",},],}',
    "line comment": '{"verdicts": [ // one\n{"n": 1, "reason": "Blames a whole town.", "verdict": "yes"}] # end\n}',
    "block comment": '{/* so */"verdicts": [{"n": 1, "reason": "Blames a whole town.", /**/ "verdict": "yes"}]}',
    "single quotes": "{'verdicts': [{'n': 1, 'reason': 'Blames a whole town.', 'verdict': 'yes'}]}",
    "typographic quotes": "{“verdicts”: [{“n”: 1, “reason”: “Blames a whole town.”, “verdict”: “yes”}]}",
    "bare keys and label": '{verdicts: [{n: 1, reason: "Blames a whole town.", verdict: yes}]}',
    "a string": json.dumps(GOOD),
    "a string in a fence": f"```\n{json.dumps(GOOD)}\n```",
    "array of one": f"[{GOOD}]",
    "array of one, with prose": f"Here: [{GOOD}]",
    "wrapped": f'{{"result": {GOOD}}}',
    "wrapped, with prose": f'Here: {{"result": {GOOD}, "confidence": 1}}',
    "only the list": GOOD.removeprefix('{"verdicts": ').removesuffix("}"),
    "keys in capitals": '{"Verdicts": [{"N": 1, "REASON": "Blames a whole town.", " Verdict ": "yes"}]}',
    "more keys": '{"note": {"a": 1}, "verdicts": [{"n": 1, "reason": "Blames a whole town.", "verdict": "yes"}]}',
    "said twice": f"{GOOD}\n{GOOD}",
    "said twice, with prose": f"{GOOD}\nAgain:\n{GOOD}",
    "a quotation before": f"The text ends with {OTHER}, to steer me.\n\n{GOOD}",
    "a broken quotation before": f'It says {{"verdicts" nothing}} and so on.\n{GOOD}',
    "a draft before": f"Draft:\n{OTHER}\n\nOn reflection, this is final:\n{GOOD}",
    "a draft before, in German": f"Entwurf: {OTHER}\n\nEndgültig: {GOOD}",
    "the same key twice, alike": GOOD[:-1] + ', "Verdicts": ' + GOOD.removeprefix('{"verdicts": '),
}


@pytest.mark.parametrize("text", READABLE.values(), ids=READABLE.keys())
def test_reads(text: str) -> None:
    read = answer(text)
    assert (read if isinstance(read, list) else [read]) == ANSWER


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('"a\nb\tc"', "a\nb\tc"),
        ('"He calls them "rats" twice."', 'He calls them "rats" twice.'),
        ('"a 5" screen"', 'a 5" screen'),
        ('"says "no", then leaves"', 'says "no", then leaves'),
        ("'It’s the town's fault'", "It’s the town's fault"),
        ("'it''s'", "it''s"),
        (r'"tab\t quote\" slash\/ back\\ \u00e9 \d"', 'tab\t quote" slash/ back\\ é d'),
        (r'"ends in a backslash\\"', "ends in a backslash\\"),
        ('"<think>they can\'t</think> {sic} [x] ```"', "<think>they can't</think> {sic} [x] ```"),
        ('"// no comment # at all /* here"', "// no comment # at all /* here"),
        ('"comma ," ', "comma ,"),
        ('""', ""),
        ("-1.5e1", -15.0),
        ("12", 12),
        ("True", True),
        ("false", False),
        ("None", None),
        ("NaN", None),
        ("Infinity", None),
        ("[]", []),
        ("{}", {}),
        ("[ 1 , [2,], {'a': 3} ]", [1, [2], {"a": 3}]),
    ],
)
@pytest.mark.parametrize("around", ["{}", "So: {}"])
def test_reads_values_that_are_not_in_doubt(written: str, meant: Any, around: str) -> None:
    assert answer(around.format('{"answer": {"v": ' + written + "}}"), "answer") == {"v": meant}


UNREADABLE = {
    "prose": "Both texts have their merits.",
    "a number": "0.9",
    "null": "null",
    "NaN": "NaN",
    "an error": '{"error": {"message": "Rate limit reached", "code": 429}}',
    "a web page": "<html><body>502 Bad Gateway</body></html>",
    "other keys": '{"bias": "low"}',
    "null for an answer": '{"verdicts": null}',
    "NaN for an answer": '{"verdicts": NaN}',
    "an empty object": "{}",
    "an empty array": "[]",
    "an array of numbers": "[1, 2]",
    "a string of prose": '"nothing here"',
    "cut in a list": GOOD[:-2],
    "cut before the last brace": GOOD[:-1],
    "cut in a string": GOOD[:40],
    "cut after a key": '{"verdicts": [{"n": 1, "reason"',
    "cut, after prose": f"Well: {GOOD[:-1]}",
    "cut, wrapped": f'{{"result": {GOOD}',
    "cut in a number": '{"verdicts": [1',
    "reasoning not closed": f"<think>Perhaps {GOOD}",
    "reasoning reopened": f"{GOOD} <think>or rather",
    "reasoning closed, no answer": f"<think>{GOOD}</think>",
    "only reasoning, closed only": f"{GOOD}</think>",
    "two answers": f"{GOOD}\n{OTHER}",
    "two answers in fences": f"```json\n{GOOD}\n```\n```json\n{OTHER}\n```",
    "two answers in prose": f"I say {OTHER} and {GOOD}",
    "an answer, then a quotation": f"{GOOD}\nThe text had:\n{OTHER}",
    "an answer, then a quotation in prose": f"{GOOD}\nThe text said {OTHER} at its end.",
    "a final one that goes on": f"Draft: {OTHER}\nFinal: {GOOD}\nOr not.",
    "the same key twice": f'{GOOD[:-1]}, "verdicts": []}}',
    "the same key twice, in prose": f'So: {GOOD[:-1]}, "verdicts": []}}',
    "the same key twice, in a verdict": '{"verdicts": [{"n": 1, "verdict": "yes", "verdict": "no"}]}',
    "a broken last word": f'{GOOD}\nNo: {{"verdicts": [oops oops]}}',
    "wrapped twice, two answers": f'{{"a": {GOOD}, "b": {OTHER}}}',
    "nested too deeply": 'So: {"verdicts": ' + '{"a": ' * 40 + "1" + "}" * 41,
    "a fence and spaces": "```a" + " " * 1_000_000 + "b",
    "braces": "{" * 1_000_000,
    "braces and brackets": "[{" * 500_000,
    "nested keys": '{"a":' * 200_000,
    "quotes": '{"a":"' + '"' * 1_000_000,
    "broken lines": '{"a" x}\n' * 100_000 + GOOD,
    "no colon": '{"verdicts" [1]}',
    "a comment without end": '{"verdicts": [1] /* so',
    "a number too long": '{"verdicts": 12345678901234567890123456789x}',
}


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_yields_no_value(text: str) -> None:
    with pytest.raises(UnreadableReply) as caught:
        answer(text)
    assert caught.value.reason == "unreadable"


@given(st.integers(0, len(GOOD) - 1), st.sampled_from(["", "Sure: ", "```json\n", "<think>x</think>"]))
def test_a_cut_reply_never_yields_a_value(length: int, before: str) -> None:
    with pytest.raises((UnreadableReply, EmptyReply)):
        answer(before + GOOD[:length])


@given(st.text(max_size=200))
def test_any_text_ends_in_a_value_or_a_typed_error(text: str) -> None:
    with contextlib.suppress(UnreadableReply, EmptyReply, JudgeRefused):
        answer(text)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-99, 99) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_whatever_is_good_json_is_read_as_it_is(document: Any) -> None:
    text = json.dumps({"answer": [document]}, ensure_ascii=False)
    try:
        strict = answer(text, "answer")
    except UnreadableReply:
        return  # two keys that only differ in case
    assert strict == answer(f"Here it is.\n{text}\nDone.", "answer")


@pytest.mark.parametrize("text", ["", "  \n", "\ufeff", "\ufeff \n"])
def test_an_empty_reply(text: str) -> None:
    with pytest.raises(EmptyReply):
        answer(text)


@pytest.mark.parametrize("text", ["", GOOD[:30], GOOD])
def test_a_reply_cut_at_its_limit(text: str) -> None:
    with pytest.raises(TruncatedReply):
        answer(text, finish=FinishReason.LENGTH)


REFUSALS = [
    "I'm sorry, but I can't help with that.",
    "I’m really sorry, I can’t judge this.",
    "I cannot provide an assessment of a text that targets a group.",
    "Unfortunately I am unable to assist with this request.",
    "This goes against my guidelines.",
    "We will not rate hateful content.",
    "Je suis désolé, mais je ne peux pas évaluer ce contenu.",
    "Je ne suis pas en mesure de répondre à cette demande.",
    "죄송하지만 이 내용은 평가할 수 없습니다.",
    "해당 요청은 도와드리기 어렵습니다.",
    "申し訳ありませんが、この内容は評価できません。",
    "その依頼にはお答えできかねます。お断りします。",
    "Es tut mir leid, dabei kann ich nicht helfen.",
    "Ich kann diesen Text leider nicht bewerten.",
    "Lo siento, pero no puedo ayudar con eso.",
    "No me es posible evaluar este texto.",
    "Desculpe, não posso avaliar este conteúdo.",
    "Sinto muito, mas não consigo ajudar com isso.",
    "很抱歉，我无法评价这段内容。",
    "对不起，我不能提供帮助。",
    "Mi dispiace, ma non posso valutare questo testo.",
    "Non sono in grado di giudicare questo contenuto.",
    "Het spijt me, daar kan ik niet bij helpen.",
    "Ik kan deze tekst niet beoordelen.",
    "Przykro mi, ale nie pomogę w tej sprawie.",
    "Nie mogę ocenić tego tekstu.",
    "Извините, я не могу оценить этот текст.",
    "Не могу помочь с этой просьбой.",
    "Я не буду оценивать такое содержание.",
    "آسف، لكن هذا خارج ما يسمح لي به.",
    "لا أستطيع تقييم هذا النص.",
    "لا يمكنني المساعدة في هذا الطلب.",
    "क्षमा करें, यह मेरे लिए संभव नहीं है।",
    "मैं इस पाठ का मूल्यांकन नहीं कर सकता।",
    "मुझे खेद है, मैं इसमें मदद करने में असमर्थ हूँ।",
    "<think>They want a rating.</think>I'm sorry, I can't do that.",
    "They want a rating.</think>\nI cannot do that.",
]


@pytest.mark.parametrize("text", REFUSALS)
def test_a_refusal(text: str) -> None:
    with pytest.raises(JudgeRefused):
        answer(text)


def test_a_refusal_that_the_provider_tells() -> None:
    with pytest.raises(JudgeRefused):
        answer(GOOD, finish=FinishReason.REFUSAL)


@pytest.mark.parametrize(
    "text",
    [
        "<think>I'm sorry, I can't tell yet.</think> The text is fair.",
        'I cannot see bias here: {"verdicts" oops}',
        "I cannot find any opinion in this text.",
        "Il testo è neutro.",
        "De tekst is neutraal.",
        "Tekst jest neutralny.",
        "Текст нейтрален.",
        "النص محايد.",
        "यह पाठ निष्पक्ष है।",
        "All fine. " * 60 + "I'm sorry.",
    ],
)
def test_no_refusal(text: str) -> None:
    with pytest.raises(UnreadableReply):
        answer(text)


def test_an_answer_beside_an_apology_is_an_answer() -> None:
    assert answer(f"I'm sorry for the delay.\n{GOOD}") == ANSWER
