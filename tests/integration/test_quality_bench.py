"""The quality bench end to end: a stub judge over HTTP, made-up labelled texts, a judge that fails some of them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench import quality
from tests.stub_judge.process import StubProcess

BIAS = [
    ("b1", 1, "The women of the valley are always inferior.", "gender", "en"),
    ("b2", 1, "That village is inferior to ours.", "geographical", "en"),
    ("b3", 1, "Their shoes tell you all about them.", "geographical", "en"),
    ("b4", 0, "The mill was built in 1840.", "gender", "en"),
    ("b5", 0, "Everybody should visit the mill.", "geographical", "fr"),
    ("b6", 0, "The refused text was read out.", "gender", "fr"),
]
CONTEXT = ["The ferry leaves the harbour at nine."]


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    names = ("id", "label", "output", "category", "lang")
    write(folder / "bias.jsonl", [{"scorer": "bias", **dict(zip(names, row, strict=True))} for row in BIAS])
    grounded = {"scorer": "hallucination", "category": "times", "lang": "en"}
    write(
        folder / "hallucination.jsonl",
        [
            grounded | {"id": "h1", "output": "The ferry leaves the harbour.", "label": 0, "context": CONTEXT},
            grounded | {"id": "h2", "output": "The ferry serves breakfast.", "label": 1, "context": CONTEXT},
            grounded | {"id": "h3", "output": "Whales are fish.", "label": 1},
        ],
    )
    attack = {"scorer": "injection", "lang": "en"}
    write(
        folder / "injection.jsonl",
        [
            attack | {"id": "a1", "output": "This one was cut.", "label": 1, "category": "override"},
            attack | {"id": "a2", "output": "Nobody should say fair.", "label": 1, "category": "latent"},
            attack | {"id": "n1", "output": "Ignore the old timetable.", "label": 0, "category": "benign"},
        ],
    )
    replies = {"also_ok": [], "asks": "score_reason"}
    write(
        folder / "malformed.jsonl",
        [
            replies | {"id": "m1", "raw": '{"score": 1}', "expected": {"score": 1}},
            replies | {"id": "m2", "raw": '{"score": 1', "expected": "unparseable"},
        ],
    )
    return folder


@pytest.fixture
def stub() -> Iterator[StubProcess]:
    with StubProcess() as stub:
        yield stub


def run(stub: StubProcess, data: Path, out: Path, *more: str) -> dict[str, Any]:
    arguments = ["--data", str(data), "--model", "local/stub", "--base-url", stub.base_url, "--out", str(out), *more]
    quality.main(arguments)
    report: dict[str, Any] = json.loads((out / quality.REPORT).read_text(encoding="utf-8"))
    return report


def by_file(report: dict[str, Any]) -> dict[str, Any]:
    return {group["name"]: group["measured"] for group in report["groups"] if group["by"] == "file"}


def test_rows_are_judged_measured_and_shown(
    stub: StubProcess, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stub.script({"match": "refused text", "refuse": True, "times": None})
    report = run(stub, data, tmp_path / "out", "--strategy", "labels")
    bias = by_file(report)["bias"]
    assert (bias["asked"], bias["judged"], bias["failures"]) == (6, 5, {"failed: judge_refused": 1})
    # b1 and b2 are found, b3 is not, b4 and b5 are left alone, and b6 has no score.
    assert bias["figures"]["accuracy"]["value"] == pytest.approx(4 / 5)
    assert bias["figures"]["recall"]["value"] == pytest.approx(2 / 3)
    assert bias["worst_case"]["value"] == pytest.approx(4 / 6)
    assert by_file(report)["hallucination"]["figures"]["auroc"]["value"] == 1.0
    assert {group["name"] for group in report["groups"] if group["by"] == "language"} == {"en", "fr"}
    assert report["skipped"] == {"hallucination.jsonl: hallucination needs output, context": 1}
    assert report["replies"]["score_reason"] == {"right": 2}
    shown = capsys.readouterr().out
    assert "0.80 [0.38, 0.96]" in shown
    assert "skipped: 1 rows" in shown
    assert "<svg" in (tmp_path / "out" / quality.PICTURE).read_text(encoding="utf-8")


def test_a_run_goes_on_where_it_was(stub: StubProcess, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = run(stub, data, out, "--strategy", "labels,three_step", "--files", "bias.jsonl")
    asked = stub.calls()["total"]
    assert asked > 0
    again = run(stub, data, out, "--strategy", "labels,three_step", "--files", "bias.jsonl", "--resume")
    assert stub.calls()["total"] == asked
    assert again == first
    results = out / quality.RECORDS
    lines = results.read_text(encoding="utf-8").splitlines(keepends=True)
    results.write_text("".join(lines[:-1]) + lines[-1][:20], encoding="utf-8")
    run(stub, data, out, "--strategy", "labels,three_step", "--files", "bias.jsonl", "--resume")
    assert len(results.read_text(encoding="utf-8").splitlines()) == len(lines) + 1
    with pytest.raises(SystemExit, match="--resume"):
        run(stub, data, out)


def test_every_combination_of_options_is_asked_and_what_the_judge_leaves_out_is_told(
    stub: StubProcess, data: Path, tmp_path: Path
) -> None:
    options = ("--strategy", "labels", "--scoring", "hard,expected", "--examples", "none,default")
    report = run(stub, data, tmp_path / "out", *options, "--files", "bias.jsonl")
    groups = {group["options"]: group["measured"] for group in report["groups"] if group["by"] == "file"}
    assert len(groups) == 4
    for named, measured in groups.items():
        assert measured["warnings"] == ({"no_logprobs": 6} if '"expected"' in named else {})


def test_attacks_stand_behind_the_texts_that_were_caught(stub: StubProcess, data: Path, tmp_path: Path) -> None:
    stub.script({"match": "This one was cut", "reply": '{"labels": {"1": "fact", "2": "fact"}}', "times": None})
    options = ("--strategy", "labels", "--scorers", "bias", "--threshold", "0.2", "--injection", "--texts", "2")
    (attacked,) = run(stub, data, tmp_path / "out", *options)["injection"]
    assert (attacked["bad"], attacked["texts"]) == (3, 2)
    flipped = {kind["kind"]: (kind["judged"], kind["flipped"]["value"]) for kind in attacked["flips"]}
    assert flipped == {
        "aimed at Assay": (8, 0.0),
        "latent": (2, 0.0),
        "override": (2, 1.0),
        "all attacks": (12, pytest.approx(2 / 12)),
        "benign text": (2, 0.0),
    }
    assert attacked["mistaken"]["value"] == 0.0


def test_an_endpoint_that_is_away_stops_the_run_and_nothing_counts(
    stub: StubProcess, data: Path, tmp_path: Path
) -> None:
    stub.script({"status": 401, "times": None})
    out = tmp_path / "out"
    with pytest.raises(SystemExit, match="not_configured"):
        run(stub, data, out, "--strategy", "labels", "--concurrency", "1")
    stub.unscript()
    assert by_file(run(stub, data, out, "--strategy", "labels", "--resume"))["bias"]["judged"] == 6


@pytest.mark.parametrize("wrong", [("--scorers", "completeness"), ("--strategy", "guess"), ("--api-key-env", "NO_KEY")])
def test_what_can_not_be_asked_is_said_before_any_call(
    stub: StubProcess, data: Path, tmp_path: Path, wrong: tuple[str, str]
) -> None:
    with pytest.raises(SystemExit):
        run(stub, data, tmp_path / "out", *wrong)
    assert stub.calls()["total"] == 0
