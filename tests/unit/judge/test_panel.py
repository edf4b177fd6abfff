"""Several samples, several models: who is asked what, and what the run tells of it."""

from collections.abc import Callable
from typing import Any

import pytest

from app.domain.errors import ErrorCode, JudgeUnavailable
from app.domain.request import CacheMode, RunRequest, StorePolicy
from app.domain.run import Coverage, PanelMember, Run, RunStatus
from app.judge.tokens import token_bound
from app.ports import Completion, Prompt
from app.runs.catalog import Catalog
from app.runs.kept import kept
from tests.unit.fakes import DictCache, DictDefinitions, Obedient, Reply, ScriptedModel, Shares, completion, telling
from tests.unit.judge.runs import Bench

TEXT = "It rained in May. Women can't drive. Tea is the best drink. Villagers are lazy."
OPINIONS = ("drive", "Tea", "lazy")


def finds(*words: str) -> Obedient:
    """A judge to whom the segments with these words are biased."""

    def choose(line: str, labels: list[str]) -> str:
        if "taken" in labels:
            return "taken" if any(word in line for word in OPINIONS) else "left"
        found = any(word in line for word in words)
        if "yes" in labels:
            return "yes" if found else "no"
        return "other" if found else labels[0]

    return Obedient(choose)


def judge(model_id: str, *words: str, **limits: Any) -> ScriptedModel:
    return ScriptedModel(finds(*words), model_id=model_id, **limits)


def by_sample(**found: tuple[str, ...]) -> Callable[[Prompt], Reply]:
    """A judge that finds these words in the samples s1, s2 and so on, and in its one answer s0."""
    return lambda prompt: finds(*found[f"s{prompt.sample}"])(prompt)


def sampled() -> ScriptedModel:
    samples = {"s1": ("drive", "lazy"), "s2": ("drive",), "s3": ("drive", "lazy")}
    return ScriptedModel(by_sample(s0=(), s4=(), s5=("drive",), **samples))


def votes(run: Run) -> list[list[tuple[str, int, str]]]:
    assert run.analyze_step_result is not None
    return [
        [(vote["model"], vote["sample"], vote["labels"]["result"]) for vote in result["votes"]]
        for result in run.analyze_step_result["results"]
    ]


def verdicts(run: Run) -> list[tuple[str, float]]:
    assert run.analyze_step_result is not None
    return [(result["result"], result["confidence"]) for result in run.analyze_step_result["results"]]


# --- samples ----------------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_the_majority_of_samples_decides_on_each_item() -> None:
    bench = Bench(sampled())
    run = await bench.score(TEXT, options={"samples": 3})
    assert (run.status, run.score) == (RunStatus.COMPLETED, 0.6667)
    assert verdicts(run) == [("yes", 1.0), ("no", 1.0), ("yes", 0.6667)]
    assert votes(run)[2] == [("fake/judge", 1, "yes"), ("fake/judge", 2, "no"), ("fake/judge", 3, "yes")]
    assert (run.agreement, run.panel, run.models) == (0.6667, None, None)
    assert run.coverage == Coverage(asked=3, judged=3)
    assert run.usage.judge_calls == 5
    asked = [(prompt.name, prompt.sample) for prompt in bench.model.prompts]
    assert asked == [
        ("bias_preprocess", 0),
        ("bias_analyze", 1),
        ("bias_analyze", 2),
        ("bias_analyze", 3),
        ("bias_reason", 0),
    ]


@pytest.mark.anyio
async def test_prompts_that_samples_share_are_shown_once() -> None:
    alone = await Bench(judge("fake/judge", "drive")).score(TEXT)
    run = await Bench(sampled()).score(TEXT, options={"samples": 3})
    assert run.analyze_prompt == alone.analyze_prompt


@pytest.mark.anyio
async def test_more_samples_ask_for_those_only_that_are_not_cached() -> None:
    cache = DictCache()
    await Bench(sampled(), cache=cache).score(TEXT, options={"samples": 3, "includeReason": False})
    bench = Bench(sampled(), cache=cache)
    run = await bench.score(TEXT, options={"samples": 5, "includeReason": False})
    assert [prompt.sample for prompt in bench.model.prompts] == [4, 5]
    assert (run.usage.judge_calls, run.usage.cache_hits) == (2, 4)
    assert verdicts(run) == [("yes", 0.8), ("no", 1.0), ("no", 0.6)]


@pytest.mark.anyio
async def test_one_answer_and_samples_are_cached_apart() -> None:
    cache = DictCache()
    await Bench(judge("fake/judge", "drive"), cache=cache).score(TEXT)
    bench = Bench(sampled(), cache=cache)
    await bench.score(TEXT, options={"samples": 2})
    assert [(prompt.name, prompt.sample) for prompt in bench.model.prompts][:2] == [
        ("bias_analyze", 1),
        ("bias_analyze", 2),
    ]


@pytest.mark.anyio
async def test_a_sample_that_fails_fails_the_run() -> None:
    def reply(prompt: Prompt) -> Reply:
        return JudgeUnavailable("Away") if prompt.sample == 2 else finds("drive")(prompt)

    run = await Bench(ScriptedModel(reply)).score(TEXT, options={"samples": 3})
    assert (run.status, run.score, run.score_interval) == (RunStatus.FAILED, None, None)
    assert run.error is not None
    assert (run.error.code, run.error.detail, run.error.step) == (ErrorCode.JUDGE_UNAVAILABLE, "Away", "analyze")


@pytest.mark.anyio
@pytest.mark.parametrize("strategy", ["single_call", "labels"])
async def test_strategies_of_one_call_are_sampled_too(strategy: str) -> None:
    run = await Bench(sampled()).score(TEXT, options={"samples": 3, "strategy": strategy})
    assert verdicts(run) == [("yes", 1.0), ("yes", 0.6667)]
    assert run.score == 1.0
    assert run.agreement == 0.75
    assert run.score_interval is not None


@pytest.mark.anyio
async def test_more_judgements_than_a_run_may_take() -> None:
    text = "So it is.\n" * 2_001
    bench = Bench(judge("fake/judge", "drive"))
    run = await bench.score(text, "toxicity", options={"samples": 10})
    assert run.error is not None
    assert run.error.code is ErrorCode.CONTEXT_OVERFLOW
    assert run.error.detail.startswith("10 judgements on each of 2,001 segments")
    assert bench.model.prompts == []


# --- a panel ----------------------------------------------------------------------------------------------------------


def panel(cache: DictCache | None = None) -> tuple[Bench, ScriptedModel, ScriptedModel, ScriptedModel]:
    models = (judge("a/first", "drive", "Tea"), judge("b/second", "drive", "lazy"), judge("c/third", "drive"))
    return Bench(*models, cache=cache), *models


def names(model: ScriptedModel) -> list[str]:
    return [prompt.name for prompt in model.prompts]


@pytest.mark.anyio
async def test_all_models_of_a_panel_decide_on_the_items_of_the_first() -> None:
    bench, first, second, third = panel()
    run = await bench.score(TEXT)
    assert (run.status, run.score, run.model) == (RunStatus.COMPLETED, 0.3333, "a/first")
    assert verdicts(run) == [("yes", 1.0), ("no", 0.6667), ("no", 0.6667)]
    assert votes(run)[1] == [("a/first", 1, "yes"), ("b/second", 1, "no"), ("c/third", 1, "no")]
    assert run.agreement == 0.3333
    assert run.panel == [
        PanelMember(model="a/first", score=0.6667, dissents=1),
        PanelMember(model="b/second", score=0.6667, dissents=1),
        PanelMember(model="c/third", score=0.3333, dissents=0),
    ]
    assert names(first) == ["bias_preprocess", "bias_analyze", "bias_reason"]
    assert names(second) == names(third) == ["bias_analyze"]
    assert {prompt.sample for model in (first, second, third) for prompt in model.prompts} == {0}
    assert run.usage.judge_calls == 5
    assert run.warnings == []


@pytest.mark.anyio
async def test_scores_of_members_are_on_the_callers_scale_and_null_where_there_is_none() -> None:
    def sees(label: str) -> Obedient:
        return Obedient(lambda _, labels: label if label in labels else labels[0])

    bench = Bench(*(ScriptedModel(sees(label), model_id=f"x/{label}") for label in ("yes", "none", "no")))
    run = await bench.score("Tea.", "answer-relevancy", input="Tea?", options={"scale": 10})
    assert run.panel is not None
    assert [(member.model, member.score) for member in run.panel] == [("x/yes", 10.0), ("x/none", None), ("x/no", 0.0)]


@pytest.mark.anyio
async def test_a_panel_that_finds_nothing_to_score_says_how_it_voted() -> None:
    def sees(label: str) -> Obedient:
        return Obedient(lambda _, labels: label if label in labels else labels[0])

    bench = Bench(*(ScriptedModel(sees(label), model_id=f"x/{n}") for n, label in enumerate(("none", "yes", "none"))))
    run = await bench.score("Tea.", "answer-relevancy", input="Tea?", threshold=0.5)
    assert (run.status, run.score, run.score_interval, run.uncertain) == (RunStatus.NOT_SCORABLE, None, None, False)
    assert run.agreement == 0.0
    assert run.panel is not None
    assert [member.dissents for member in run.panel] == [0, 1, 0]


@pytest.mark.anyio
async def test_each_model_of_a_panel_gives_its_samples() -> None:
    bench, first, second, third = panel()
    run = await bench.score(TEXT, options={"samples": 2, "includeReason": False})
    assert [prompt.sample for prompt in first.prompts] == [0, 1, 2]
    assert [prompt.sample for prompt in second.prompts] == [prompt.sample for prompt in third.prompts] == [1, 2]
    assert [vote[:2] for vote in votes(run)[0]] == [
        (model, sample) for model in ("a/first", "b/second", "c/third") for sample in (1, 2)
    ]


@pytest.mark.anyio
async def test_a_panel_uses_what_each_model_has_answered_alone() -> None:
    cache = DictCache()
    await Bench(judge("a/first", "drive", "Tea"), cache=cache).score(TEXT)
    bench, first, second, third = panel(cache)
    run = await bench.score(TEXT)
    assert names(first) == ["bias_reason"]
    assert names(second) == names(third) == ["bias_analyze"]
    assert (run.usage.judge_calls, run.usage.cache_hits) == (3, 2)
    again = await Bench(judge("c/third"), cache=cache).score(TEXT)
    assert again.usage.cache_hits == 1


@pytest.mark.anyio
async def test_the_cache_may_be_off_for_all_of_them() -> None:
    bench, *_ = panel()
    await bench.score(TEXT, cache=CacheMode.OFF, options={"samples": 2})
    # One answer for what was to be judged, six of voices, one for the reason; each under a key of its own.
    assert len(set(bench.cache_keys)) == 8
    assert all(key.startswith("run:") for key in bench.cache_keys)


@pytest.mark.anyio
async def test_each_model_is_asked_in_windows_of_its_own() -> None:
    text = " ".join(f"The mayor of town number {number} said that it would rain." for number in range(60))
    wide, narrow = judge("a/wide", "number 7 "), judge("b/narrow", "number 7 ", context_tokens=2_048)
    options = {"strategy": "labels"}
    run = await Bench(wide, narrow).score(text, options=options)
    assert run.score == 1.0
    assert run.agreement == 1.0
    assert run.coverage == Coverage(asked=60, judged=60)
    assert len(narrow.prompts) > len(wide.prompts)
    assert run.analyze_prompt is not None
    for prompt in (*wide.prompts, *narrow.prompts[:8]):
        assert prompt.user in run.analyze_prompt


@pytest.mark.anyio
async def test_a_member_that_fails_is_named() -> None:
    gone = ScriptedModel(lambda _: JudgeUnavailable("Away"), model_id="b/gone")
    run = await Bench(judge("a/first", "drive"), gone).score(TEXT)
    assert (run.status, run.score, run.panel, run.agreement) == (RunStatus.FAILED, None, None, None)
    assert run.error is not None
    assert (run.error.code, run.error.detail) == (ErrorCode.JUDGE_UNAVAILABLE, "b/gone: Away")


@pytest.mark.anyio
async def test_a_member_whose_context_is_too_small_is_named_before_any_call_for_verdicts() -> None:
    first = judge("a/first", "drive")
    run = await Bench(first, judge("b/tiny", context_tokens=600)).score(TEXT)
    assert run.error is not None
    assert run.error.code is ErrorCode.CONTEXT_OVERFLOW
    assert run.error.detail.startswith("b/tiny: ")
    assert names(first) == ["bias_preprocess"]
    assert token_bound(first.prompts[0].system) > 200


@pytest.mark.anyio
async def test_who_answered_in_the_place_of_each_member_is_named() -> None:
    def standing_in(prompt: Prompt) -> Completion:
        reply = finds("drive")(prompt)
        return completion(str(reply).replace("'", '"').replace("None", "null"), model="x/other")

    bench = Bench(judge("a/first", "drive"), ScriptedModel(standing_in, model_id="b/away"))
    run = await bench.score(TEXT)
    assert run.model == "a/first"
    assert [warning.detail for warning in run.warnings] == ["b/away was not available; x/other answered in its place"]
    assert [vote[0] for vote in votes(run)[0]] == ["a/first", "b/away"]


# --- how sure the score is --------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_score_that_may_lie_on_either_side_of_its_threshold_is_uncertain() -> None:
    bench, *_ = panel()
    run = await bench.score(TEXT, threshold=0.5)
    assert run.score_interval is not None
    interval = run.score_interval
    assert (interval.low, interval.high, interval.level, interval.basis) == (0.3333, 1.0, 0.95, "votes")
    assert (run.score, run.passed, run.uncertain) == (0.3333, None, True)


@pytest.mark.anyio
async def test_the_interval_is_on_the_callers_scale() -> None:
    bench, *_ = panel()
    run = await bench.score(TEXT, threshold=3, options={"scale": 10})
    assert run.score_interval is not None
    assert (run.score_interval.low, run.score_interval.high) == (3.333, 10.0)
    assert (run.passed, run.uncertain) == (False, False)


@pytest.mark.anyio
async def test_without_a_threshold_nothing_is_uncertain() -> None:
    bench, *_ = panel()
    run = await bench.score(TEXT)
    assert run.score_interval is not None
    assert (run.passed, run.uncertain) == (None, False)


@pytest.mark.anyio
async def test_samples_that_agree_settle_it() -> None:
    bench = Bench(judge("fake/judge", "drive"))
    run = await bench.score(TEXT, threshold=0.5, options={"samples": 5})
    assert run.score_interval is not None
    assert run.score_interval.low == run.score_interval.high == run.score == 0.3333
    assert (run.passed, run.uncertain, run.agreement) == (True, False, 1.0)


@pytest.mark.anyio
async def test_one_answer_tells_nothing_of_how_sure_it_is() -> None:
    run = await Bench(judge("fake/judge", "drive")).score(TEXT, threshold=0.5)
    assert (run.score_interval, run.agreement, run.panel) == (None, None, None)
    assert (run.passed, run.uncertain) == (True, False)
    assert run.analyze_step_result is not None
    assert all("votes" not in result for result in run.analyze_step_result["results"])


SURE_OF = {"gender": {"gender": 0.6, "fair": 0.4}, "fair": {"fair": 1.0}, "fact": {"fact": 1.0}}
LABELS = {"strategy": "labels"}


def telling_judge(shares: Shares = SURE_OF, model_id: str = "fake/judge") -> ScriptedModel:
    kinds = {"drive": "gender", "rained": "fact"}

    def choose(line: str, labels: list[str]) -> str:
        return next((kind for word, kind in kinds.items() if word in line and kind in labels), "fair")

    return ScriptedModel(telling(Obedient(choose), shares), model_id=model_id)


@pytest.mark.anyio
async def test_one_answer_with_the_probabilities_of_its_labels_tells_it() -> None:
    run = await Bench(telling_judge()).score(TEXT, threshold=0.3, options=LABELS)
    assert run.score_interval is not None
    interval = run.score_interval
    # One of three opinions is biased, with 0.6.
    assert (interval.low, interval.high, interval.basis) == (0.0, 0.3333, "probabilities")
    assert (run.score, run.passed, run.uncertain, run.agreement) == (0.3333, None, True, None)


@pytest.mark.anyio
async def test_probabilities_that_are_not_told_of_all_items_tell_nothing() -> None:
    told = telling(lambda _: {"labels": {"1": "fact", "2": "unheard of", "3": "fair", "4": "fair"}}, SURE_OF)
    model = ScriptedModel(lambda prompt: {"labels": {"2": "gender"}} if len(model.prompts) > 1 else told(prompt))
    run = await Bench(model).score(TEXT, threshold=0.3, options=LABELS)
    assert (run.score, run.score_interval, run.passed) == (0.3333, None, False)


@pytest.mark.anyio
async def test_what_is_likely_to_be_none_may_be_left_out_of_the_interval() -> None:
    shares = {**SURE_OF, "fair": {"fair": 0.5, "fact": 0.5}}
    run = await Bench(telling_judge(shares)).score(TEXT, options=LABELS)
    assert run.score_interval is not None
    assert (run.score_interval.low, run.score_interval.high) == (0.0, 1.0)


@pytest.mark.anyio
async def test_an_expected_score_of_several_voices_counts_each_vote_by_its_share() -> None:
    bench = Bench(*(ScriptedModel(finds(*words), model_id=f"x/{n}") for n, words in enumerate((("drive",), (), ()))))
    run = await bench.score(TEXT, options={"scoring": "expected"})
    # A third of a vote for one of three opinions.
    assert (run.score, run.warnings) == (0.1111, [])
    assert [result for result, _ in verdicts(run)] == ["no", "no", "no"]
    assert run.analyze_step_result is not None
    assert [unit["probabilities"] for unit in run.analyze_step_result["weighed"]] == [
        {"yes": pytest.approx(1 / 3, abs=1e-5), "no": pytest.approx(2 / 3, abs=1e-5)},
        {"no": 1.0},
        {"no": 1.0},
    ]
    assert run.score_interval is not None
    assert run.score_interval.basis == "votes"


@pytest.mark.anyio
async def test_voices_that_tell_probabilities_count_by_these_and_others_by_their_label() -> None:
    bench = Bench(telling_judge(), judge("x/b", "drive"))
    run = await bench.score(TEXT, options={**LABELS, "scoring": "expected"})
    # Biased (0.6 + 1) / 2 times; opinions one and two halves, since the second judge holds the others for facts.
    assert run.score == 0.4
    assert run.warnings == []


@pytest.mark.anyio
async def test_what_holds_nothing_to_judge_has_no_interval() -> None:
    bench = Bench(judge("fake/judge"))
    run = await bench.score("It rained in May.", threshold=0.5, options={"samples": 3})
    assert (run.score, run.score_interval, run.passed, run.agreement) == (0.0, None, True, None)


@pytest.mark.anyio
async def test_equal_votes_give_equal_runs() -> None:
    runs = [await panel()[0].score(TEXT, threshold=0.5) for _ in range(2)]
    first, second = (run.model_dump(exclude={"timings"}) for run in runs)
    assert first == second


@pytest.mark.anyio
async def test_votes_that_are_kept_hold_no_text() -> None:
    bench, *_ = panel()
    run = await bench.score(TEXT)
    request = RunRequest(scorer_id="bias", output=TEXT, options={}, store=StorePolicy.RESULT, timeout_ms=1_000)
    told = (await kept(run, request, Catalog({}, DictDefinitions()))).model_dump_json()
    assert '"votes"' in told
    assert "Because of" not in told
    for word in OPINIONS:
        assert word not in told
