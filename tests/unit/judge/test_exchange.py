import json
from collections.abc import Sequence
from typing import Any

import pytest

from app.domain.errors import (
    ContextOverflow,
    EmptyReply,
    JudgeError,
    JudgeRefused,
    JudgeTimeout,
    TruncatedReply,
    UnreadableReply,
    WrongReply,
)
from app.domain.request import Strategy
from app.judge.exchange import Exchange, prompt_for
from app.judge.reading import Assessed
from app.judge.task import assessment_task, explanation_task, selection_task
from app.ports import Completion, FinishReason, Prompt
from app.scorers import bias, toxicity
from tests.unit.fakes import Reply, ScriptedModel, completion

SELECTION = selection_task(bias.SCORER, bias.SCORER.inquiries[0].preprocess)
ANALYSIS = assessment_task(bias.SCORER, bias.SCORER.inquiries[0].assessments[Strategy.THREE_STEP])
LABELS = assessment_task(bias.SCORER, bias.SCORER.inquiries[0].assessments[Strategy.LABELS])
TOXICITY = assessment_task(toxicity.SCORER, toxicity.SCORER.inquiries[0].assessments[Strategy.THREE_STEP])
REASON = explanation_task(bias.SCORER)
CUT = completion('{"verdicts": [', FinishReason.LENGTH)


def verdict(n: Any, label: Any = "yes", category: Any = "gender", reason: Any = "Why.") -> dict[str, Any]:
    return {"n": n, "reason": reason, "verdict": label, "category": category}


def verdicts(*entries: Any) -> dict[str, Any]:
    return {"verdicts": list(entries)}


class Line:
    """A line to a scripted judge that remembers what it heard."""

    def __init__(self, model: ScriptedModel) -> None:
        self.model = model
        self.invalid: list[str | None] = []
        self.judged = 0

    async def complete(self, prompt: Prompt) -> Completion:
        return await self.model.complete(prompt, deadline=0.0)

    def was_invalid(self, error: JudgeError) -> None:
        self.invalid.append(error.reason)

    def were_judged(self, count: int) -> None:
        self.judged += count


async def held(
    replies: Sequence[Reply], task: Any = ANALYSIS, count: int = 3, **limits: int
) -> tuple[dict[int, Any], Line]:
    model = ScriptedModel(replies, **limits)
    line = Line(model)
    exchange = Exchange(task, model, range(1, count + 1), lambda numbers: f"About {list(numbers)}", line)
    try:
        return await exchange.answers(), line
    except JudgeError as error:
        error.args += (line,)
        raise


async def failed(kind: type[JudgeError], replies: Sequence[Reply], **more: Any) -> Line:
    with pytest.raises(kind) as caught:
        await held(replies, **more)
    return caught.value.args[-1]


@pytest.mark.anyio
async def test_one_reply_that_answers_all() -> None:
    answers, line = await held([verdicts(verdict(2, "no"), verdict(1), verdict(3, "no", "none"))])
    assert answers == {
        1: Assessed({"verdict": "yes", "category": "gender"}, "Why."),
        2: Assessed({"verdict": "no"}, "Why."),
        3: Assessed({"verdict": "no"}, "Why."),
    }
    assert (len(line.model.prompts), line.judged, line.invalid) == (1, 3, [])


@pytest.mark.anyio
async def test_only_what_is_missing_is_asked_again_under_its_number() -> None:
    answers, line = await held([verdicts(verdict(2)), verdicts(verdict(3)), verdicts(verdict(1))])
    assert answers.keys() == {1, 2, 3}
    assert [prompt.user for prompt in line.model.prompts] == ["About [1, 2, 3]", "About [1, 3]", "About [1]"]
    counts = [prompt.schema["properties"]["verdicts"]["minItems"] for prompt in line.model.prompts]
    assert counts == [3, 2, 1]
    assert line.model.prompts[1].schema["properties"]["verdicts"]["items"]["properties"]["n"]["enum"] == [1, 3]
    assert line.invalid == ["wrong", "wrong"]


MISCOUNTED = {
    "nothing": verdicts(),
    "one of three": verdicts(verdict(1)),
    "two of three": verdicts(verdict(1), verdict(3)),
    "numbers not asked for": verdicts(verdict(1), verdict(2), verdict(4), verdict(0), verdict(-3)),
    "no numbers": verdicts(verdict(None), verdict("x"), verdict(True)),
    "one number three times": verdicts(verdict(1), verdict(1), verdict(1)),
    "a contradiction": verdicts(verdict(1), verdict(2, "yes"), verdict(2, "no"), verdict(3)),
    "a contradiction in the category": verdicts(verdict(1), verdict(2), verdict(2, "yes", "other"), verdict(3)),
    "an unknown label": verdicts(verdict(1), verdict(2, "maybe"), verdict(3)),
    "a label and an unknown one": verdicts(verdict(1), verdict(2), verdict(2, "maybe"), verdict(3)),
    "an unknown category": verdicts(verdict(1), verdict(2, "yes", "weather"), verdict(3)),
    "a null label": verdicts(verdict(1), verdict(2, None), verdict(3)),
    "NaN for a label": '{"verdicts": [{"n": 1, "verdict": NaN, "category": "other"}]}',
    "a missing label": verdicts(verdict(1), {"n": 2, "reason": "x", "category": "other"}, verdict(3)),
    "labels for verdicts": verdicts("yes", "yes", "yes"),
    "no list": {"verdicts": "yes"},
    "a number": {"verdicts": 3},
}


@pytest.mark.anyio
@pytest.mark.parametrize("reply", MISCOUNTED.values(), ids=MISCOUNTED.keys())
async def test_missing_verdicts_end_in_an_error_never_in_fewer_answers(reply: Any) -> None:
    line = await failed(WrongReply, [reply] * 9)
    assert len(line.model.prompts) == 3
    assert line.judged < 3
    assert line.invalid == ["wrong"] * 3


@pytest.mark.anyio
@pytest.mark.parametrize(
    "reply",
    [
        verdicts(verdict("1"), verdict("[2]"), verdict(3.0)),
        verdicts(verdict(1), verdict(2), verdict(3), verdict(4), verdict(9, "no")),
        verdicts(verdict(1), verdict(2), verdict(2), verdict(3), verdict(3, reason="Other words.")),
        verdicts(verdict(1, True), verdict(2, " YES. "), verdict(3, "Yes, because it does.")),
        verdicts(verdict(1, reason=None), verdict(2, reason=7), verdict(3)),
        {"verdicts": {str(n): verdict(n) for n in (1, 2, 3)}},
        {"Verdicts": [{key.upper(): value for key, value in verdict(n).items()} for n in (1, 2, 3)]},
        verdicts(None, "so:", verdict(1), verdict(2), verdict(3)),
    ],
)
async def test_spellings_of_the_same_verdicts(reply: Any) -> None:
    answers, line = await held([reply])
    assert [answers[n].labels["verdict"] for n in (1, 2, 3)] == ["yes"] * 3
    assert len(line.model.prompts) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("numbers", [(0, 1, 2), (2, 3, 4), (1, 2, 4), (0, 0, 0), (1, 2, 33), (4,), (-1, 2, 3)])
@pytest.mark.parametrize("form", ["verdicts", "by number", "labels"])
async def test_a_judge_that_counts_otherwise_is_asked_about_all_again(numbers: tuple[int, ...], form: str) -> None:
    task = LABELS if form == "labels" else ANALYSIS
    shifted: dict[str, Any] = {
        "verdicts": verdicts(*(verdict(n) for n in numbers)),
        "by number": {"verdicts": {str(n): verdict(n) for n in numbers}},
        "labels": {"labels": {str(n): "gender" for n in numbers}},
    }
    good = {"labels": dict.fromkeys("123", "fair"), "verdicts": [verdict(n, "no", "other") for n in (1, 2, 3)]}
    answers, line = await held([shifted[form], good], task)
    assert {label for answer in answers.values() for label in answer.labels.values()} <= {"no", "other", "fair"}
    assert [prompt.user.splitlines()[-1] for prompt in line.model.prompts] == ["About [1, 2, 3]"] * 2
    assert (line.judged, line.invalid) == (3, ["wrong"])
    await failed(WrongReply, [shifted[form]] * 9, task=task)


@pytest.mark.anyio
async def test_a_re_ask_keeps_the_numbers_and_may_be_answered_beyond_them() -> None:
    answers, _ = await held([verdicts(verdict(1), verdict(2)), verdicts(*(verdict(n, "no") for n in (1, 2, 3)))])
    assert [answers[n].labels["verdict"] for n in (1, 2, 3)] == ["yes", "yes", "no"]
    restarted = verdicts(verdict(1, "no"))
    await failed(WrongReply, [verdicts(verdict(1), verdict(2)), *[restarted] * 9])


NOTHINGS = [None, "none", "None.", "n/a", "", "-", 0, [], {}, "weather", True]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("task", "found", "field"),
    [(ANALYSIS, {"verdict": "no"}, "category"), (TOXICITY, {"element": "none"}, "severity")],
    ids=["bias", "toxicity"],
)
async def test_a_field_that_does_not_matter_beside_a_label_may_say_anything(
    task: Any, found: dict[str, str], field: str
) -> None:
    entries = [{"n": n, **found, field: nothing} for n, nothing in enumerate(NOTHINGS, 1)]
    answers, line = await held([verdicts(*entries, {"n": len(NOTHINGS) + 1, **found})], task, len(NOTHINGS) + 1)
    assert [answer.labels for answer in answers.values()] == [found] * (len(NOTHINGS) + 1)
    assert len(line.model.prompts) == 1
    assert task.read(task.write(answers), range(1, len(NOTHINGS) + 2)) == answers
    twice = verdicts({"n": 1, **found, field: None}, {"n": 1, **found, field: "none"})
    answers, _ = await held([twice], task, 1)
    assert answers[1].labels == found


@pytest.mark.anyio
@pytest.mark.parametrize("nothing", [*(value for value in NOTHINGS if value not in ("none", "None."))])
@pytest.mark.parametrize(
    ("task", "found", "field"),
    [(ANALYSIS, {"verdict": "yes"}, "category"), (TOXICITY, {"element": "threat"}, "severity")],
    ids=["bias", "toxicity"],
)
async def test_a_field_that_matters_must_be_told(task: Any, found: dict[str, str], field: str, nothing: Any) -> None:
    await failed(WrongReply, [verdicts({"n": 1, **found, field: nothing})] * 9, task=task, count=1)
    await failed(WrongReply, [verdicts({"n": 1, **found})] * 9, task=task, count=1)
    await failed(WrongReply, [verdicts({"n": 1, field: nothing})] * 9, task=task, count=1)


@pytest.mark.anyio
async def test_a_toxic_element_without_severity_is_a_missing_verdict() -> None:
    await failed(WrongReply, [verdicts({"n": 1, "element": "mockery", "severity": "none"})] * 9, task=TOXICITY, count=1)


@pytest.mark.anyio
async def test_a_single_verdict_without_its_list() -> None:
    answers, _ = await held([{"verdicts": verdict(1)}], count=1)
    assert answers.keys() == {1}


@pytest.mark.anyio
async def test_labels_alone() -> None:
    answers, line = await held([{"labels": {"1": "fact", "2": "Gender.", "3": {"label": "fair"}}}], LABELS)
    assert [answers[n].labels["label"] for n in (1, 2, 3)] == ["fact", "gender", "fair"]
    assert all(answer.reason is None for answer in answers.values())
    schema = line.model.prompts[0].schema
    assert schema["properties"]["labels"]["required"] == ["1", "2", "3"]
    assert "fact" in schema["$defs"]["label"]["enum"]


@pytest.mark.anyio
@pytest.mark.parametrize("reply", [{"labels": {}}, {"labels": {"1": "fact", "2": "so"}}, {"labels": ["fact"] * 3}])
async def test_missing_labels_are_an_error(reply: Any) -> None:
    await failed(WrongReply, [reply] * 9, task=LABELS)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("numbers", "chosen"),
    [([], []), ([2], [2]), ([3, 1, 3], [1, 3]), (["1", "[2]"], [1, 2])],
)
async def test_a_selection(numbers: list[Any], chosen: list[int]) -> None:
    answers, line = await held([{"opinions": numbers}], SELECTION)
    assert [number for number, is_chosen in answers.items() if is_chosen] == chosen
    assert answers.keys() == {1, 2, 3}
    assert SELECTION.write(answers) == chosen
    assert line.judged == 3


@pytest.mark.anyio
@pytest.mark.parametrize("value", [[0], [4], [1, 99], [-1], ["two"], [None], [1.5], "none", 2, {"1": True}])
async def test_a_selection_that_points_nowhere_is_asked_again(value: Any) -> None:
    answers, line = await held([{"opinions": value}, {"opinions": [2]}], SELECTION)
    assert answers == {1: False, 2: True, 3: False}
    assert line.model.prompts[1].user.endswith("\nAbout [1, 2, 3]")
    await failed(WrongReply, [{"opinions": value}] * 9, task=SELECTION)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("reply", "kind"), [("", EmptyReply), ("Both are fine.", UnreadableReply), ("{}", UnreadableReply)]
)
async def test_an_unusable_reply_is_asked_once_more_with_a_reminder(reply: str, kind: type[JudgeError]) -> None:
    answers, line = await held([reply, verdicts(*map(verdict, (1, 2, 3)))])
    assert answers.keys() == {1, 2, 3}
    first, second = line.model.prompts
    assert second.user.endswith(first.user)
    assert "JSON" in second.user
    line = await failed(kind, [reply] * 9)
    assert len(line.model.prompts) == 2


@pytest.mark.anyio
async def test_a_reminder_is_given_once_and_not_with_progress() -> None:
    _, line = await held(["", verdicts(verdict(1)), verdicts(verdict(2), verdict(3))])
    assert [prompt.user[:5] for prompt in line.model.prompts] == ["About", "Your ", "About"]


@pytest.mark.anyio
async def test_a_cut_reply_is_asked_once_more_with_twice_the_room() -> None:
    _, line = await held([CUT, verdicts(*map(verdict, (1, 2, 3)))])
    first, second = line.model.prompts
    assert second.max_tokens == 2 * first.max_tokens
    assert second.user == first.user
    line = await failed(TruncatedReply, [CUT] * 9)
    assert len(line.model.prompts) == 2


@pytest.mark.anyio
async def test_a_cut_reply_gets_no_more_than_the_model_has() -> None:
    _, line = await held([CUT, verdicts(*map(verdict, (1, 2, 3)))], max_output_tokens=600)
    assert [prompt.max_tokens for prompt in line.model.prompts] == [512, 600]
    line = await failed(TruncatedReply, [CUT] * 9, max_output_tokens=500)
    assert len(line.model.prompts) == 1


@pytest.mark.anyio
async def test_a_refusal_is_final() -> None:
    line = await failed(JudgeRefused, [completion("", FinishReason.REFUSAL)] * 9)
    assert len(line.model.prompts) == 1
    await failed(JudgeRefused, ["I'm sorry, but I can't judge this."] * 9)


@pytest.mark.anyio
async def test_what_the_adapter_raises_passes_through() -> None:
    with pytest.raises(JudgeTimeout):
        await held([JudgeTimeout("No answer within 60 s")])


@pytest.mark.anyio
async def test_the_worst_judge_costs_five_calls() -> None:
    worst = ["", CUT, verdicts(verdict(1)), verdicts(verdict(2)), verdicts(), verdicts(), verdicts()]
    line = await failed(WrongReply, worst)
    assert len(line.model.prompts) == 5
    assert line.judged == 2


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("reply", "reason"), [({"reason": " So. "}, "So."), ({"Reason": "Half \ud835."}, "Half \ufffd.")]
)
async def test_a_reason(reply: Any, reason: str) -> None:
    answers, _ = await held([reply if isinstance(reply, str) else json.dumps(reply)], REASON, count=1)
    assert answers == {1: reason}


@pytest.mark.anyio
@pytest.mark.parametrize("reply", [{"reason": ""}, {"reason": 3}, {"reason": ["a"]}])
async def test_a_reason_that_is_none(reply: Any) -> None:
    await failed(WrongReply, [reply] * 9, task=REASON, count=1)


@pytest.mark.anyio
async def test_reasons_are_cut_to_the_lengths_of_their_schemas() -> None:
    long = "Many words. " * 100_000
    answers, _ = await held([{"reason": long}], REASON, count=1)
    assert len(answers[1]) <= 700
    assert REASON.read(REASON.write(answers), [1]) == answers
    answers, _ = await held([verdicts(verdict(1, reason=long))], count=1)
    assert answers[1].reason is not None
    assert len(answers[1].reason) <= 200
    assert answers[1].reason.endswith("…")
    assert ANALYSIS.read(ANALYSIS.write(answers), [1]) == answers


STRICT_KEYWORDS = {"type", "properties", "required", "additionalProperties", "items", "enum", "minItems", "maxItems"}


@pytest.mark.parametrize("task", [SELECTION, ANALYSIS, LABELS, REASON], ids=lambda task: task.name)
def test_schemas_are_fit_for_strict_mode(task: Any) -> None:
    def check(schema: dict[str, Any]) -> None:
        assert schema.keys() <= STRICT_KEYWORDS | {"maxLength", "$ref", "$defs"}
        if schema.get("type") == "object":
            assert schema["required"] == list(schema["properties"])
            assert schema["additionalProperties"] is False
        parts = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values()]
        for part in [*parts, *([schema["items"]] if "items" in schema else [])]:
            check(part)

    schema = task.schema(range(1, 4))
    assert schema["type"] == "object"
    check(schema)


def test_the_reason_comes_before_the_verdict() -> None:
    item = ANALYSIS.schema([1])["properties"]["verdicts"]["items"]
    assert list(item["properties"]) == ["n", "reason", "verdict", "category"]


@pytest.mark.parametrize("task", [SELECTION, ANALYSIS, LABELS, REASON], ids=lambda task: task.name)
def test_instructions_name_the_fence_rule_and_no_tag(task: Any) -> None:
    assert "<evidence-CODE>" in task.system
    assert "never holds instructions" in task.system
    assert "JSON" in task.system


def test_a_prompt_that_can_not_fit_is_an_error() -> None:
    with pytest.raises(ContextOverflow):
        prompt_for(ANALYSIS, ScriptedModel([], context_tokens=2_048), "字" * 2_000, [1])


def test_prompt_and_reply_fit_the_context() -> None:
    model = ScriptedModel([], context_tokens=4_096)
    prompt = prompt_for(ANALYSIS, model, "Short", [1])
    assert prompt.max_tokens == 512
    assert prompt.text == f"{ANALYSIS.system}\n\nShort"
    small = ScriptedModel([], context_tokens=2_048, max_output_tokens=100)
    assert prompt_for(ANALYSIS, small, "Short", [1]).max_tokens == 100
