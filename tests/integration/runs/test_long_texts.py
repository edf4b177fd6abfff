"""Texts of 200 kB: every segment is judged, once, and what stands in their middle is found; or a clear error comes."""

import uuid
from itertools import count
from typing import Any

import pytest

from app.domain.scoring import scaled
from tests.integration.service import Service

SIZE = 200_000  # bytes
PLANTED = "The women of the village are inferior; hush."
"""Biased, an opinion, toxic (moderate), and no claim."""


def filled(unit: str, size: int = SIZE // 2) -> str:
    """Return repeated units of so many bytes at least, each with a number of its own where it has room for one."""
    pieces: list[str] = []
    for number in count():
        pieces.append(unit.format(number))
        size -= len(pieces[-1].encode())
        if size < 0:
            return "".join(pieces)
    raise AssertionError


def planted(unit: str, before: str = "", after: str = "") -> str:
    """Return a text that no other test has cached, with the planted sentence in its middle."""
    half = filled(unit)
    return f"{half}{before}{PLANTED}{after}{half} {uuid.uuid4().hex}"


ENGLISH = "The ferry number {} leaves the old harbour at nine and the tide is low. "
TEXTS = {
    "english": (ENGLISH, "", " "),
    "chinese": ("第{}号轮船早上九点离开码头，海水很低。", "", "。"),
    "one line without spaces": ("x{}y", " ", " "),
    "emoji": ("👩\u200d🚀🇫🇷👍🏽{}", " ", " "),
    "lines": ("A line of text\n", "", "\n"),
}


def ended(service: Service, scorer: str, mode: str, **body: Any) -> dict[str, Any]:
    answer = service.score(scorer, mode=mode, **body)
    assert answer.status_code in (200, 202), answer.text
    run = answer.json()
    while run["status"] in ("queued", "running"):
        run = service.run(run["runId"])
    return service.run(run["runId"])


@pytest.mark.parametrize("mode", ["inline", "queued"])
@pytest.mark.parametrize("kind", ["english", "one line without spaces"])
def test_toxicity(service: Service, kind: str, mode: str) -> None:
    output = planted(*TEXTS[kind])
    run = ended(service, "toxicity", mode, output=output)
    assert (run["status"], run["score"]) == ("completed", 0.5)
    (found,) = run["analyzeStepResult"]["verdicts"]
    assert output[found["span"]["start"] : found["span"]["end"]] == found["text"]
    assert PLANTED in found["text"]
    assert run["coverage"]["judged"] == run["coverage"]["asked"] > 300


@pytest.mark.parametrize("kind", ["chinese", "emoji", "lines"])
def test_bias(service: Service, kind: str) -> None:
    output = planted(*TEXTS[kind])
    run = ended(service, "bias", "inline", output=output)
    assert (run["status"], run["score"]) == ("completed", 1.0)
    (found,) = run["analyzeStepResult"]["results"]
    assert (found["category"], output[found["span"]["start"] : found["span"]["end"]]) == ("gender", found["opinion"])
    assert PLANTED in found["opinion"]


@pytest.mark.parametrize("mode", ["inline", "queued"])
def test_faithfulness(service: Service, mode: str) -> None:
    sentences = filled(ENGLISH)
    context = [ENGLISH.format(7), filled("Gulls {} cry. ", 1_000), ENGLISH.format(500)]
    run = ended(service, "faithfulness", mode, output=f"{sentences}{uuid.uuid4().hex}", context=context)
    claims = len(run["preprocessStepResult"]["claims"])
    assert claims >= sentences.count("ferry")
    verdicts = [verdict["verdict"] for verdict in run["analyzeStepResult"]["verdicts"]]
    assert (len(verdicts), verdicts.count("yes")) == (claims, 2)
    assert run["score"] == scaled(2 / claims, 1.0)


@pytest.mark.parametrize(("mode", "where"), [("inline", "code"), ("queued", "error")])
def test_a_text_of_too_many_segments_is_an_error_before_any_call(service: Service, mode: str, where: str) -> None:
    answer = service.score("bias", output="a\n" * 20_001, mode=mode)
    code = answer.json()["code"] if mode == "inline" else service.run(answer.json()["runId"])[where]["code"]
    assert code == "context_overflow"
    assert service.judge_calls() == 0


@pytest.mark.parametrize(
    ("size", "status", "code"), [(1_000_001, 422, "invalid_request"), (4_200_000, 413, "content_too_large")]
)
def test_a_text_that_is_too_long_is_refused(service: Service, size: int, status: int, code: str) -> None:
    answer = service.score("bias", output="x" * size)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
