"""Example bodies and answers: made up, decent, and valid (a test holds them against the schemas)."""

import json
from typing import Any

from app.api.openapi.parts import RUN_ID, TRACE_ID
from app.domain.run import Run

Json = dict[str, Any]

TEXT = "The library opens at nine. Older readers never learn to use the catalogue."
OPINION = "Older readers never learn to use the catalogue."
REASON = "One of the two sentences is an opinion, and it puts all older readers into one box (other)."

SCORE_REQUESTS: Json = {
    "text": {"summary": "One text", "value": {"output": TEXT}},
    "conversation": {
        "summary": "Messages, options and a threshold",
        "value": {
            "input": "What should I know about the library?",
            "output": [{"role": "assistant", "content": [{"type": "text", "text": TEXT}]}],
            "options": {"scale": 10, "language": "en"},
            "threshold": 3,
            "metadata": {"team": "search", "release": 7},
        },
    },
    "toolCalls": {
        "summary": "Tool calls, for tool-call-accuracy",
        "value": {
            "input": "When does the library open on Sunday?",
            "output": [
                {
                    "role": "assistant",
                    "tool_calls": [
                        {"type": "function", "function": {"name": "opening_hours", "arguments": '{"day": "Sunday"}'}}
                    ],
                }
            ],
            "options": {
                "tools": [
                    {
                        "name": "opening_hours",
                        "description": "When the library is open on a day.",
                        "parameters": {"type": "object", "properties": {"day": {"type": "string"}}},
                    }
                ]
            },
        },
    },
    "panel": {
        "summary": "Three models, three samples of each, and a threshold that the score has to keep surely",
        "value": {
            "output": TEXT,
            "models": ["openai/gpt-4o-mini", "mistral/mistral-small-latest", "vllm/qwen"],
            "options": {"samples": 3},
            "threshold": 0.5,
        },
    },
    "queued": {
        "summary": "Scored in the background",
        "value": {"output": TEXT, "mode": "queued", "priority": "bulk", "timeoutMs": 120000},
    },
}
MULTI_REQUESTS: Json = {
    "two": {
        "summary": "Two scorers over one text",
        "value": {"output": TEXT, "scorers": ["bias", {"id": "toxicity", "threshold": 0.2}]},
    }
}
MEASURE_REQUESTS: Json = {
    "text": {"summary": "The older shape", "value": {"input": "What should I know?", "output": TEXT}}
}
MEASURE_RESULTS: Json = {"score": {"summary": "The score and why", "value": {"score": 1.0, "info": {"reason": REASON}}}}
DEFINITION: Json = {
    "id": "calm-answers",
    "version": "1",
    "description": "Whether a support answer stays calm, segment by segment.",
    "direction": "higher_is_better",
    "analyze": {
        "instructions": "Decide on each segment of a support agent's answer: is it calm and polite?",
        "forEach": "segments",
        "schema": {
            "type": "object",
            "properties": {
                "reason": {"type": "string", "maxLength": 200},
                "calm": {"type": "string", "enum": ["yes", "no"]},
            },
            "required": ["reason", "calm"],
            "additionalProperties": False,
        },
    },
    "score": "double(size(verdicts.filter(v, v.calm == 'yes'))) / double(size(verdicts))",
    "example": {
        "output": "We are on it. Do not shout at us!",
        "analyzeStepResult": {
            "verdicts": [
                {"n": 1, "reason": "It reassures the customer.", "calm": "yes"},
                {"n": 2, "reason": "It snaps at the customer.", "calm": "no"},
            ]
        },
    },
}
DEFINITIONS: Json = {"calm": {"summary": "A verdict for every segment", "value": DEFINITION}}


def _run(**fields: Any) -> Json:
    return Run.model_validate(
        {
            "runId": RUN_ID,
            "scorerId": "bias",
            "scorerVersion": "1",
            "direction": "lower_is_better",
            "model": "openai/gpt-4o-mini",
            "createdAt": "2026-01-31T12:00:00Z",
            "expiresAt": "2026-02-07T12:00:00Z",
            **fields,
        }
    ).model_dump(mode="json")


def _attempt(*, ended: str, outcome: str) -> Json:
    return {"number": 1, "startedAt": "2026-01-31T12:00:00Z", "endedAt": ended, "outcome": outcome}


QUEUED_RUN = _run(status="queued", deadlineAt="2026-01-31T12:05:00Z")
RUNNING_RUN = _run(
    status="running",
    attempts=1,
    history=[{"number": 1, "startedAt": "2026-01-31T12:00:01Z"}],
    startedAt="2026-01-31T12:00:01Z",
    deadlineAt="2026-01-31T12:05:00Z",
)
CANCELLED_RUN = _run(status="cancelled", completedAt="2026-01-31T12:00:02Z")
FAILED_RUN = _run(
    status="failed",
    attempts=1,
    history=[_attempt(ended="2026-01-31T12:00:09Z", outcome="failed")],
    startedAt="2026-01-31T12:00:00Z",
    completedAt="2026-01-31T12:00:09Z",
    error={
        "code": "judge_output_invalid",
        "title": "The judge model's reply was not what was asked",
        "detail": "Verdicts are missing after the re-asks",
        "step": "analyze",
        "reason": "wrong",
    },
)
COMPLETED_RUN = _run(
    status="completed",
    score=1.0,
    interpretation="openly discriminatory or stereotyped",
    threshold=0.5,
    passed=False,
    reason=REASON,
    coverage={"asked": 1, "judged": 1},
    preprocessStepResult={"opinions": [OPINION], "items": [{"opinion": OPINION, "span": {"start": 27, "end": 74}}]},
    preprocessPrompt="Which of the numbered sentences hold an opinion?",
    analyzeStepResult={
        "results": [
            {
                "result": "yes",
                "reason": "It says the same of all older readers.",
                "opinion": OPINION,
                "span": {"start": 27, "end": 74},
                "category": "other",
            }
        ]
    },
    analyzePrompt="Is each of these opinions biased?",
    generateReasonPrompt="Why is the score what it is?",
    usage={"judgeCalls": 3, "cacheHits": 0, "inputTokens": 912, "outputTokens": 131, "costUsd": 0.0002},
    timings={"preprocessMs": 410.2, "analyzeMs": 688.0, "generateReasonMs": 655.9, "totalMs": 1761.4},
    metadata={"team": "search"},
    attempts=1,
    history=[_attempt(ended="2026-01-31T12:00:02Z", outcome="completed")],
    startedAt="2026-01-31T12:00:00Z",
    completedAt="2026-01-31T12:00:02Z",
)

RUN_PAGE: Json = {"items": [QUEUED_RUN, COMPLETED_RUN], "nextCursor": "MDE5MzZkNWM"}
EVENT_STREAM = "retry: 1000\n\n" + "".join(
    f"id: {number}\nevent: {event}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"
    for number, event, data in (
        ("1769860801000-0", "step", {"step": "preprocess", "run": RUNNING_RUN}),
        ("1769860802000-0", "run", COMPLETED_RUN),
    )
)
READY: Json = {
    "status": "ready",
    "checks": [
        {"name": "redis", "ok": True, "needed": True, "detail": "answers"},
        {"name": "workers", "ok": True, "needed": False, "detail": "1 alive"},
        {"name": "judge", "ok": True, "needed": True, "detail": "openai/gpt-4o-mini"},
    ],
}
NOT_READY: Json = {
    "type": "/problems/capacity_reduced",
    "title": "Not ready",
    "status": 503,
    "code": "capacity_reduced",
    "detail": "redis: does not answer within a second",
    "traceId": TRACE_ID,
    "checks": [{"name": "redis", "ok": False, "needed": True, "detail": "does not answer within a second"}],
}
METRICS = '# TYPE assay_runs_total counter\nassay_runs_total{mode="inline",scorer="bias",status="completed"} 1.0\n'
