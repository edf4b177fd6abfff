from pathlib import Path

import pytest

from bench.labelled.records import RecordFile
from tests.unit.bench.records import record


def test_records_are_found_again_by_their_key(tmp_path: Path) -> None:
    path = tmp_path / "out" / "results.jsonl"
    kept = record("row1", 0.25)
    RecordFile(path).add(kept)
    again = RecordFile(path)
    assert again.has(kept.key)
    assert again.of([kept.key, record("row2").key]) == [kept]


@pytest.mark.parametrize("other", [{"scorer_version": "2"}, {"options": "{}"}, {"model": "a/b"}, {"attack": "a1"}])
def test_another_version_judge_option_or_attack_is_judged_anew(tmp_path: Path, other: dict[str, str]) -> None:
    file = RecordFile(tmp_path / "results.jsonl")
    file.add(record("row1"))
    assert not file.has(record("row1", **other).key)


def test_a_line_that_was_cut_is_passed_over_and_the_next_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    file = RecordFile(path)
    file.add(record("row1"))
    with path.open("a") as cut:
        cut.write('{"model": "fa')
    RecordFile(path).add(record("row2"))
    assert {found.row for found in RecordFile(path).records.values()} == {"row1", "row2"}


def test_what_the_endpoint_failed_at_is_tried_again_and_what_the_judge_failed_at_is_not(tmp_path: Path) -> None:
    file = RecordFile(tmp_path / "results.jsonl")
    away, refused = record("row1", None, error="judge_unavailable"), record("row2", None, error="judge_refused")
    file.add(away)
    file.add(refused)
    assert not file.has(away.key)
    assert file.has(refused.key)
    file.add(record("row1", 0.5))
    assert [found.score for found in RecordFile(file.path).of([away.key])] == [0.5]
