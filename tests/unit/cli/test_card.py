"""A run in the terminal: score, marked spans, verdicts, and nothing that steers the terminal."""

import io
import re
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

from app.cli.card import COLOURS, _headline, _marked, card

TEXT = "The bus leaves at nine. Old people never learn."


def run(**changes: Any) -> dict[str, Any]:
    return {
        "runId": "run-00000001",
        "scorerId": "bias",
        "scorerVersion": "1",
        "status": "completed",
        "score": 1.0,
        "scale": 1.0,
        "direction": "lower_is_better",
        "interpretation": "openly discriminatory or stereotyped",
        "passed": None,
        "reason": "It claims that a whole age group can't learn.",
        "analyzeStepResult": {
            "results": [
                {
                    "result": "yes",
                    "category": "other",
                    "reason": "generalises",
                    "opinion": "Old people never learn.",
                    "span": {"start": 24, "end": 47},
                }
            ]
        },
        "warnings": [],
        "error": None,
        "model": "stub/judge",
        "usage": {"judgeCalls": 3, "cacheHits": 0},
        "timings": {"totalMs": 1234.5},
    } | changes


def printed(run: dict[str, Any], text: str = TEXT) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(card(run, text))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_shows_score_band_text_verdict_reason_and_cost() -> None:
    shown = printed(run())
    for piece in (
        "1 of 1",
        "openly discriminatory",
        "Old people never learn.",
        "yes",
        "generalises",
        "whole age group",
        "1.2 s, 3 judge calls",
        "run-00000001",
        "stub/judge",
    ):
        assert piece in shown


@pytest.mark.parametrize(
    ("verdict", "shown"),
    [
        ({"verdict": "yes", "kind": "unsupported", "claim": "Buses leave."}, "yes      unsupported  Buses leave."),
        ({"verdict": "no", "statement": "Buses leave."}, "no             Buses leave."),
        ({"relevance": "high", "number": 3}, "high           passage 3"),
        ({"impact": "severe", "dimension": "accuracy"}, "impact severe        accuracy"),
        ({"verdict": "no", "id": "is-polite", "required": True, "weight": 2.0}, "no             is-polite"),
        ({"verdict": "no", "number": 3, "call": "look_up {}"}, "no             look_up {}"),
    ],
)
def test_verdicts_of_every_shape_are_shown(verdict: dict[str, Any], shown: str) -> None:
    for direction in COLOURS:
        assert shown in printed(
            run(direction=direction, analyzeStepResult={"verdicts": [{**verdict, "reason": "So."}]})
        )


def test_verdicts_of_several_lists_are_shown_and_spans_of_the_input_are_not_marked() -> None:
    elsewhere = {"start": 0, "end": 9}
    result = {
        "requirements": [{"verdict": "no", "requirement": "Be kind.", "inputSpan": elsewhere, "reason": "Rude."}],
        "dimensions": [{"verdict": "partial", "dimension": "tone", "reason": None}],
        "questions": [{"verdict": "yes", "question": "Is it nine?", "inputSpan": elsewhere, "reason": "Told."}],
        "coverage": 1.0,
    }
    shown = printed(run(direction="higher_is_better", analyzeStepResult=result))
    for line in ("no             Be kind.     Rude.", "partial        tone", "yes            Is it nine?  Told."):
        assert line in shown
    assert _marked(TEXT, result["questions"], COLOURS["higher_is_better"]).spans == []  # type: ignore[arg-type]


def test_missing_tool_calls_are_shown() -> None:
    shown = printed(run(analyzeStepResult={"verdicts": [], "missingCalls": [{"tool": "look_up", "reason": "So."}]}))
    assert "missing        look_up  So." in shown


@pytest.mark.parametrize(
    ("direction", "result", "style"),
    [
        ("lower_is_better", "yes", "red underline"),
        ("lower_is_better", "no", "green underline"),
        ("higher_is_better", "yes", "green underline"),
        ("higher_is_better", "no", "red underline"),
        ("higher_is_better", "unsure", "yellow underline"),
        ("higher_is_better", "something new", "yellow underline"),
    ],
)
def test_spans_are_marked_by_verdict(direction: str, result: str, style: str) -> None:
    marked = _marked(TEXT, [{"result": result, "span": {"start": 24, "end": 47}}], COLOURS[direction])
    assert [(str(span.style), span.start, span.end) for span in marked.spans] == [(style, 24, 47)]


@pytest.mark.parametrize(("scorer", "marked"), [("answer-similarity", {"Old"}), ("faithfulness", {"The bus", "Old"})])
def test_spans_that_point_into_the_reference_answer_are_not_marked(scorer: str, marked: set[str]) -> None:
    claim = {"verdict": "exact", "claim": "The bus.", "reason": None, "span": {"start": 0, "end": 7}}
    extra = {"verdict": "extra", "statement": "Old", "reason": None, "span": {"start": 24, "end": 27}}
    found = run(
        scorerId=scorer, direction="higher_is_better", analyzeStepResult={"verdicts": [claim], "extras": [extra]}
    )
    console = Console(file=io.StringIO(), width=100, force_terminal=True)
    console.print(card(found, TEXT))
    assert isinstance(console.file, io.StringIO)
    assert set(re.findall("\x1b\\[4;\\d+m([^\x1b]*)", console.file.getvalue())) == marked


def test_how_sure_the_score_is_stands_beside_it() -> None:
    interval = {"low": 0.25, "high": 1.0, "level": 0.95, "basis": "votes"}
    assert "0.25 to 1 when judged again" in _headline(run(scoreInterval=interval)).plain
    assert "again" not in _headline(run()).plain


def test_spans_count_code_points() -> None:
    text = "👵🏽 Old. \r\x07 Never learn."
    start = text.index("Never")
    verdict = {"verdict": "yes", "span": {"start": start, "end": len(text)}}
    marked = _marked(text, [verdict], COLOURS["lower_is_better"])
    span = marked.spans[0]
    assert marked.plain[span.start : span.end] == "Never learn."


@pytest.mark.parametrize("where", ["text", "reason", "verdict"])
@pytest.mark.parametrize("steering", ["\x1b[2J", "\x1b]0;title\x07", "\x9b2J", "\r", "\u202e"])
def test_nothing_steers_the_terminal(where: str, steering: str) -> None:
    hostile = f"a{steering}b"
    changes: dict[str, Any] = {"analyzeStepResult": {"results": []}}
    if where == "reason":
        changes["reason"] = hostile
    if where == "verdict":
        changes["analyzeStepResult"] = {"results": [{"result": "yes", "reason": hostile, "opinion": hostile}]}
    shown = printed(run(**changes), hostile if where == "text" else TEXT)
    assert not set("\x1b\x07\x9b\r\u202e") & set(shown)


def test_failed_run_has_no_number() -> None:
    error = {"title": "The reply was cut short", "code": "judge_output_invalid", "detail": "Give it more room."}
    shown = printed(run(status="failed", score=None, reason=None, analyzeStepResult=None, error=error))
    assert "no score: failed" in shown
    assert "judge_output_invalid" in shown
    assert "0 of" not in shown


@pytest.mark.parametrize(("passed", "says"), [(True, "passed"), (False, "not passed"), (None, None)])
def test_threshold(passed: bool | None, says: str | None) -> None:
    shown = printed(run(passed=passed))
    assert (says in shown) if says else ("passed" not in shown)


@pytest.mark.parametrize(
    ("score", "direction", "style"),
    [(0.0, "lower_is_better", "green"), (0.0, "higher_is_better", "red"), (1.0, "higher_is_better", "green")],
)
def test_colour_follows_the_direction(score: float, direction: str, style: str) -> None:
    headline: Text = _headline(run(score=score, direction=direction))
    assert any(style in str(span.style) for span in headline.spans)
