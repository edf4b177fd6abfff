"""The yardstick: a bare FastAPI POST that validates a model of the size of ours and returns a prepared dict."""

import sys
from typing import Any

import uvicorn
from fastapi import FastAPI

from app.domain.request import ScoreRequest

app = FastAPI()
PREPARED: dict[str, Any] = {
    "runId": "0" * 36,
    "status": "completed",
    "score": 0.6667,
    "analyzeStepResult": {
        "results": [
            {
                "result": "yes",
                "reason": "A made-up reason of usual length for a verdict.",
                "opinion": "x" * 60,
                "span": {"start": 0, "end": 60},
            }
            for _ in range(3)
        ]
    },
    "analyzePrompt": "x" * 2500,
    "preprocessPrompt": "x" * 2000,
    "generateReasonPrompt": "x" * 1500,
}


@app.post("/echo")
async def echo(body: ScoreRequest) -> dict[str, Any]:
    """Validate and answer."""
    return PREPARED


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
