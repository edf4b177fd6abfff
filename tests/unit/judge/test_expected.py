"""Scores that count probabilities in place of labels, and the confidence of labels."""

import json
from dataclasses import replace
from math import fsum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.request import Options, Scoring, Strategy
from app.domain.run import Run, RunStatus
from app.domain.scoring import scaled
from app.judge.expected import Judged, expected_on, outcomes
from app.judge.parse import placed_in
from app.judge.reading import Assessed
from app.judge.scorer import Assessment, Scorer
from app.judge.subject import segments
from app.judge.task import assessment_task
from app.judge.verdict import Verdict
from tests.unit.fakes import Obedient, ScriptedModel, Shares, completion, telling
from tests.unit.judge.runs import SCORERS, Bench

WEIGHED = {name: scorer for name, scorer in SCORERS.items() if scorer.counts_shares}
TEXT = "It rained. Women can't drive. Tea is the best drink."
KINDS = {"rained": ("fact",), "drive": ("gender", "taken"), "Tea": ("fair", "taken")}
SHARES: Shares = {
    "fact": {"fact": 0.6, "fair": 0.4},
    "gender": {"gender": 0.7, "fair": 0.2, "fact": 0.1},
    "fair": {"fair": 0.5, "gender": 0.5},
}


def choose(line: str, labels: list[str]) -> str:
    known = [kind for word, kinds in KINDS.items() if word in line for kind in kinds if kind in labels]
    return known[0] if known else labels[0]


def judge(shares: Shares = SHARES) -> ScriptedModel:
    return ScriptedModel(telling(Obedient(choose), shares))


async def bias(model: ScriptedModel, bench: Bench | None = None, **options: Any) -> Run:
    bench = bench or Bench(model)
    return await bench.score(TEXT, options={"strategy": "labels", **options})


@pytest.mark.anyio
async def test_the_formula_counts_what_is_to_be_expected() -> None:
    run = await bias(judge(), scoring="expected")
    # biased: 0.7 + 0.5; opinions: 0.4 + 0.9 + 1
    assert (run.status, run.score) == (RunStatus.COMPLETED, scaled(1.2 / 2.3, 1.0))
    assert run.analyze_step_result is not None
    assert [(found["result"], found["confidence"]) for found in run.analyze_step_result["results"]] == [
        ("yes", 0.7),
        ("no", 0.5),
    ]
    weighed = run.analyze_step_result["weighed"]
    assert [(unit["number"], unit["span"]["start"]) for unit in weighed] == [(1, 0), (2, 11), (3, 30)]
    assert [unit["probabilities"] for unit in weighed] == list(SHARES.values())
    assert run.warnings == []


@pytest.mark.anyio
async def test_labels_count_unless_expectations_are_asked_for() -> None:
    model = judge()
    run = await bias(model)
    assert run.score == 0.5
    assert run.analyze_step_result is not None
    assert "weighed" not in run.analyze_step_result
    assert [found["confidence"] for found in run.analyze_step_result["results"]] == [0.7, 0.5]
    assert [prompt.logprobs for prompt in model.prompts] == [5]


@pytest.mark.anyio
async def test_probabilities_are_asked_for_where_verdicts_are_and_nowhere_else() -> None:
    model = judge()
    await bias(model, strategy="three_step", scoring="expected")
    assert {prompt.name: prompt.logprobs for prompt in model.prompts} == {
        "bias_preprocess": 0,
        "bias_analyze": 20,
        "bias_reason": 0,
    }


@pytest.mark.anyio
async def test_what_was_told_is_kept_with_the_answers() -> None:
    bench = Bench(judge())
    first = await bias(bench.model, bench, scoring="expected")
    again = await bias(bench.model, bench, scoring="expected")
    assert len(bench.model.prompts) == 1
    assert (again.usage.cache_hits, again.score) == (1, first.score)
    assert again.analyze_step_result == first.analyze_step_result


@pytest.mark.anyio
@pytest.mark.parametrize("shares", [None, [1.0], [0.5, "x", 2.0, 0, True, None, -1.0], [0.0] * 7])
async def test_kept_probabilities_that_are_none_are_left_out(shares: Any) -> None:
    bench = Bench(judge())
    await bias(bench.model, bench)
    for key, stored in bench.cache.stored.items():
        document = json.loads(stored)
        for verdict in document["reply"].values():
            verdict["probabilities"] = shares
        bench.cache.stored[key] = json.dumps(document).encode()
    run = await bias(bench.model, bench)
    assert run.analyze_step_result is not None
    confidences = [found.get("confidence") for found in run.analyze_step_result["results"]]
    assert confidences == ([None, None] if shares is None or 0.5 not in shares else [0.0, 0.0])


@pytest.mark.anyio
async def test_a_judge_that_tells_nothing_leaves_labels_and_a_warning() -> None:
    run = await bias(ScriptedModel(Obedient(choose)), scoring="expected")
    assert (run.status, run.score) == (RunStatus.COMPLETED, 0.5)
    (warning,) = run.warnings
    assert (warning.code, warning.step) == ("no_logprobs", "analyze")
    assert "3 of 3 units" in warning.detail
    assert run.analyze_step_result is not None
    assert [unit["probabilities"] for unit in run.analyze_step_result["weighed"]] == [None] * 3
    assert all("confidence" not in found for found in run.analyze_step_result["results"])


@pytest.mark.anyio
async def test_a_judge_that_tells_of_some_units_leaves_the_others_with_their_labels() -> None:
    told = telling(lambda _: {"labels": {"1": "fact", "2": "unheard of", "3": "fair"}}, SHARES)
    model = ScriptedModel(lambda prompt: {"labels": {"2": "gender"}} if len(model.prompts) > 1 else told(prompt))
    run = await bias(model, scoring="expected")
    # biased: 1 + 0.5; opinions: 0.4 + 1 + 1
    assert run.score == scaled(1.5 / 2.4, 1.0)
    (warning,) = run.warnings
    assert "1 of 3 units" in warning.detail


@pytest.mark.anyio
@pytest.mark.parametrize(
    "reply",
    [
        'Here: {"labels": {"1": "fact", "2": "gender", "3": "fair"}}',
        '```json\n{"labels": {"1": "fact", "2": "gender", "3": "fair"}}\n```',
        '<think>{"labels": {"1": "fair"}}?</think>{"labels": {"1": "fact", "2": "gender", "3": "fair"}}',
        '{"answer": {"labels": {"1": "fact", "2": "gender", "3": "fair"}}}',
        '[{"n": 1, "label": "fact"}, {"n": 2, "label": "gender"}, {"n": 3, "label": "fair"}]',
        "{'labels': {'1': 'fact', '2': \"gender\", '3': 'fair',},}",
    ],
)
async def test_labels_are_found_in_the_reply_whatever_stands_around(reply: str) -> None:
    run = await bias(ScriptedModel(telling(lambda _: reply, SHARES)), scoring="expected")
    assert (run.status, run.warnings) == (RunStatus.COMPLETED, [])
    assert run.analyze_step_result is not None
    found = [unit["probabilities"] for unit in run.analyze_step_result["weighed"]]
    assert found[1] == SHARES["gender"]


@pytest.mark.parametrize(
    "reply",
    [
        json.dumps('{"labels": {"1": "fact", "2": "gender", "3": "fair"}}'),
        '{"a": so or so} ' * 30 + '{"labels": {"1": "fact", "2": "gender", "3": "fair"}}',
    ],
)
def test_labels_that_are_not_found_have_no_place(reply: str) -> None:
    assert placed_in(reply, "labels", {"1": "fact", "2": "gender", "3": "fair"}) is None


@pytest.mark.anyio
async def test_a_label_that_is_no_string_tells_nothing() -> None:
    reply = '{"verdicts": [{"n": 1, "reason": "Why.", "verdict": true}]}'
    run = await Bench(ScriptedModel(telling(lambda _: reply, {}))).score(
        "It has a garden.", "context-precision", input="Where?", context=["A garden."], options={"includeReason": False}
    )
    assert run.analyze_step_result == {"verdicts": [{"number": 1, "verdict": "yes", "reason": "Why."}]}


WHOLE = st.sampled_from(list(WEIGHED.values()))
STRATEGIES = st.sampled_from(list(Strategy))
EIGHT = segments(" ".join(f"Sentence number {number} stands here." for number in range(1, 9)))


def asked(scorer: Scorer, strategy: Strategy) -> Assessment:
    return scorer.inquiries[0].assessments[strategy]


def answered(data: st.DataObject, assessment: Assessment) -> Assessed:
    labels = {field: data.draw(st.sampled_from(known)) for field, known in assessment.fields.items()}
    moot = {field for field, (other, label) in assessment.moot.items() if labels[other] == label}
    return Assessed({field: label for field, label in labels.items() if field not in moot}, None)


def options_of(scorer: Scorer, count: int) -> Options:
    """Options of a scorer; a rubric has a criterion for each of so many answers, every other one required."""
    if scorer.id != "rubric":
        return scorer.options.model_construct()
    criteria = [{"id": str(n), "description": "So.", "required": n % 2 == 0} for n in range(count)]
    return scorer.options.model_validate({"criteria": criteria})


def value(scorer: Scorer, assessment: Assessment, answers: list[Assessed]) -> float | None:
    """What the formula makes of the expectations."""
    subject = EIGHT._replace(items=range(len(answers)))
    verdicts, _ = expected_on(Judged(subject, assessment, {index: [answer] for index, answer in enumerate(answers)}))
    return scorer.value(verdicts, options_of(scorer, len(answers)))


def of_labels(scorer: Scorer, assessment: Assessment, answers: list[Assessed]) -> float | None:
    """What the formula makes of the labels."""
    read = [(assessment.read(answer.labels), place) for place, answer in enumerate(answers)]
    verdicts = [Verdict(EIGHT.units[place], labels, None, place) for labels, place in read if labels is not None]
    return scorer.value(verdicts, options_of(scorer, len(answers)))


@given(WHOLE, STRATEGIES, st.integers(1, 8), st.data())
def test_certainty_is_the_label(scorer: Scorer, strategy: Strategy, count: int, data: st.DataObject) -> None:
    assessment = asked(scorer, strategy)
    answers = [answered(data, assessment) for _ in range(count)]
    certain = [
        answer._replace(probabilities={answer.labels[assessment.first.field]: 1.0})
        if data.draw(st.booleans())
        else answer
        for answer in answers
    ]
    expected = of_labels(scorer, assessment, answers)
    assert value(scorer, assessment, certain) == (expected if expected is None else pytest.approx(expected))


@given(WHOLE, STRATEGIES, st.integers(1, 8), st.data())
def test_expectations_stay_in_range(scorer: Scorer, strategy: Strategy, count: int, data: st.DataObject) -> None:
    assessment = asked(scorer, strategy)
    answers = [answered(data, assessment)._replace(probabilities=spread(data, assessment)) for _ in range(count)]
    found = value(scorer, assessment, answers)
    assert found is None or 0.0 <= found <= 1.0


def spread(data: st.DataObject, assessment: Assessment) -> dict[str, float]:
    labels = data.draw(st.lists(st.sampled_from(assessment.first.labels), min_size=1, unique=True))
    weights = [data.draw(st.integers(1, 1_000)) for _ in labels]
    return {label: round(weight / fsum(weights), 6) for label, weight in zip(labels, weights, strict=True)}


BAD = {
    "bias": ("no", "yes"),
    "toxicity": ("none", "threat"),
    "faithfulness": ("yes", "no"),
    "hallucination": ("supported", "contradicted"),
    "answer-relevancy": ("yes", "no"),
    "context-relevance": ("high", "none"),
}


@given(st.sampled_from(list(BAD)), st.integers(1, 8), st.data())
def test_a_worse_prospect_never_makes_a_better_score(scorer_id: str, count: int, data: st.DataObject) -> None:
    scorer, (good, bad) = WEIGHED[scorer_id], BAD[scorer_id]
    assessment = asked(scorer, Strategy.THREE_STEP)
    risks = [data.draw(st.floats(0, 1)) for _ in range(count)]
    place, worse = data.draw(st.integers(0, count - 1)), data.draw(st.floats(0, 1))
    riskier = [max(worse, risk) if index == place else risk for index, risk in enumerate(risks)]

    def score(risks: list[float]) -> float:
        spreads: list[dict[str, float]] = [{good: 1 - risk, bad: risk} for risk in risks]
        found = value(scorer, assessment, [Assessed({assessment.first.field: good}, None, (), one) for one in spreads])
        assert found is not None
        return found if scorer.direction == "lower_is_better" else -found

    assert score(riskier) >= score(risks) - 1e-12


def test_a_field_that_the_judge_did_not_fill_takes_its_mildest_label() -> None:
    assessment = asked(SCORERS["toxicity"], Strategy.THREE_STEP)
    clean = Assessed({"element": "none"}, None, (), {"none": 0.75, "threat": 0.25})
    assert outcomes(clean, assessment) == [
        ({"element": "none"}, 0.75),
        ({"element": "threat", "severity": "mild"}, 0.25),
    ]
    threat = Assessed({"element": "threat", "severity": "severe"}, None, (), {"threat": 0.5, "mockery": 0.5})
    assert [labels["severity"] for labels, _ in outcomes(threat, assessment)] == ["severe", "severe"]
    # severe with 1/2 + 1/2, mild with 1/4
    assert value(SCORERS["toxicity"], assessment, [clean]) == pytest.approx(0.25 * 0.2)
    assert value(SCORERS["toxicity"], assessment, [threat]) == 1.0


def test_what_turns_out_to_be_no_unit_takes_its_share_along() -> None:
    assessment = asked(SCORERS["bias"], Strategy.LABELS)
    answers = [
        Assessed({"label": "gender"}, None, (), {"gender": 0.7, "fact": 0.3}),
        Assessed({"label": "fair"}, None, (), {"fair": 1.0}),
    ]
    found = value(SCORERS["bias"], assessment, answers)
    assert found is not None
    assert scaled(found, 1.0) == 0.4118  # 0.7 / (0.7 + 1)
    assert value(SCORERS["bias"], assessment, [Assessed({"label": "fact"}, None, (), {"fact": 1.0})]) == 0.0


def test_useful_passages_that_are_only_likely() -> None:
    assessment = asked(SCORERS["context-precision"], Strategy.LABELS)
    answers = [Assessed({"label": "yes"}, None, (), {"yes": share, "no": 1 - share}) for share in (0.5, 1.0, 0.5)]
    # (0.5 * 1/1 + 1 * (1 + 0.5)/2 + 0.5 * (1 + 1.5)/3) / 2
    assert value(SCORERS["context-precision"], assessment, answers) == pytest.approx((0.5 + 0.75 + 1.25 / 3) / 2)


def test_scorings_are_told_by_the_scorer() -> None:
    assert SCORERS["bias"].scorings == tuple(Scoring)
    assert replace(SCORERS["bias"], counts_shares=False).scorings == (Scoring.HARD,)


@pytest.mark.parametrize("scorer", WEIGHED.values(), ids=WEIGHED)
def test_step_results_say_that_they_may_hold_what_was_weighed(scorer: Scorer) -> None:
    assert "weighed" in scorer.step_schemas["analyzeStepResult"]["properties"]


PAIRS = st.tuples(st.floats(0.001, 1), st.floats(0.001, 1)).map(lambda two: (two[0] / fsum(two), two[1] / fsum(two)))


@given(st.lists(st.none() | PAIRS, min_size=1, max_size=5), st.sampled_from([Strategy.THREE_STEP, Strategy.LABELS]))
def test_what_is_kept_is_read_again(pairs: list[tuple[float, float] | None], strategy: Strategy) -> None:
    assessment = asked(SCORERS["context-precision"], strategy)
    task = assessment_task(SCORERS["context-precision"], assessment)
    reason = "Why." if assessment.reasons else None
    answers = {
        number: Assessed({assessment.first.field: "no"}, reason, (), pair and {"yes": pair[0], "no": pair[1]})
        for number, pair in enumerate(pairs, 1)
    }
    assert task.read(json.loads(json.dumps(task.write(answers))), list(answers)) == answers


def test_a_judge_can_not_tell_probabilities_in_words() -> None:
    assessment = asked(SCORERS["bias"], Strategy.LABELS)
    task = assessment_task(SCORERS["bias"], assessment)
    value = {"1": {"label": "fact", "probabilities": [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]}}
    assert task.read(value, [1], completion(json.dumps({"labels": value}))) == {1: Assessed({"label": "fact"}, None)}
