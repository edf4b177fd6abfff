import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bench.labelled.rows import Row, read_rows, sampled


def row(number: int, label: int = 0, category: str = "a", **fields: Any) -> Row:
    return Row("f.jsonl", f"r{number:03}", "bias", "Tea is best.", label, category, "en", **fields)


def write(folder: Path, *lines: dict[str, Any] | str) -> None:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    (folder / "f.jsonl").write_text(text, encoding="utf-8")


def test_rows_are_read_and_named_after_the_scorer_that_answers(tmp_path: Path) -> None:
    said = {"id": "1", "scorer": "relevancy", "output": "At nine.", "input": "When?", "label": 1, "pair_id": "p"}
    write(
        tmp_path,
        said,
        "",
        {"id": "2", "scorer": "bias", "output": "Tea.", "label": 0, "context": [], "groundTruth": "x"},
    )
    first, second = read_rows(tmp_path, ["f.jsonl"])
    assert (first.scorer, first.group, first.given("input"), first.given("context")) == (
        "answer-relevancy",
        "p",
        True,
        False,
    )
    assert (second.scorer, second.group, second.context) == ("bias", "2", None)
    assert (second.given("groundTruth"), first.given("groundTruth")) == (True, False)


@pytest.mark.parametrize("line", ["{", '{"id": "1"}', '{"id": "1", "scorer": "bias", "output": "x", "label": 2}', "[]"])
def test_a_line_that_is_no_row_is_named(tmp_path: Path, line: str) -> None:
    write(tmp_path, {"id": "0", "scorer": "bias", "output": "x", "label": 0}, line)
    with pytest.raises(ValueError, match=r"f\.jsonl, line 2"):
        read_rows(tmp_path, ["f.jsonl"])


def test_a_sample_keeps_the_shares_of_labels_and_categories() -> None:
    rows = [row(n, label=n % 2, category="b" if n < 20 else "a") for n in range(80)]
    drawn = sampled(rows, 20, seed=1)
    counted = Counter((one.label, one.category) for one in drawn)
    assert len(drawn) == 20
    assert all(
        abs(counted[label, category] - share) <= 1 for label in (0, 1) for category, share in (("a", 7.5), ("b", 2.5))
    )


def test_a_larger_sample_holds_the_smaller_one_and_no_limit_holds_all() -> None:
    rows = [row(n, label=n % 2) for n in range(50)]
    small, large = ({one.id for one in sampled(rows, limit, seed=2)} for limit in (10, 20))
    assert small < large
    assert sampled(rows, None, seed=2) == rows


def test_pairs_are_drawn_together() -> None:
    rows = [row(n, label=n % 2, pair_id=f"p{n // 2}") for n in range(40)]
    counts = Counter(one.pair_id for one in sampled(rows, 11, seed=3))
    assert set(counts.values()) == {2}
    assert sum(counts.values()) == 10


def test_every_file_and_scorer_has_its_own_limit() -> None:
    rows = [row(n) for n in range(9)] + [Row("g.jsonl", f"g{n}", "toxicity", "x", 1, "", "ja") for n in range(9)]
    assert Counter(one.file for one in sampled(rows, 4, seed=0)) == {"f.jsonl": 4, "g.jsonl": 4}
