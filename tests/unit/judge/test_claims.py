from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from app.domain.errors import WrongReply
from app.judge.claims import CLAIMS, found_claims
from app.judge.reply_schema import MOST_STATEMENTS, STATEMENT_LENGTH
from app.judge.segment import Segment
from app.judge.task import extraction_task

TASK = extraction_task(CLAIMS)


def entry(n: Any, *claims: Any) -> dict[str, Any]:
    return {"n": n, "claims": list(claims)}


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ([entry(1, "a", "b"), entry(2), entry(3, "c")], {1: ("a", "b"), 2: (), 3: ("c",)}),
        ([entry("[1]", "a"), entry(2.0), entry("3.", " c ")], {1: ("a",), 2: (), 3: ("c",)}),
        ([{"n": 1, "claim": "a"}, {"n": 1, "claim": "b"}, entry(2), entry(3)], {1: ("a", "b"), 2: (), 3: ()}),
        ({"1": ["a"], "2": [], "3": "c"}, {1: ("a",), 2: (), 3: ("c",)}),
        (entry(1, "a"), {1: ("a",)}),
        ([entry(1, "a", "a", "a")] * 2, {1: ("a",)}),
        ([entry(1, "a"), entry(2), entry(3), entry(4, "d")], {1: ("a",), 2: (), 3: ()}),
        ([entry(1, *map(str, range(MOST_STATEMENTS)))], {1: tuple(map(str, range(MOST_STATEMENTS)))}),
        ([entry(1, *map(str, range(MOST_STATEMENTS + 1))), entry(2)], {2: ()}),
        ([entry(1, "x" * (STATEMENT_LENGTH + 1)), entry(2, "x" * STATEMENT_LENGTH)], {2: ("x" * STATEMENT_LENGTH,)}),
        ([entry(1, "a", ""), entry(2, None), entry(3, 5)], {}),
        ([{"n": 1}, {"n": 2, "claims": None}, {"n": 3, "reason": "none"}], {}),
        ([entry(1, "a"), entry(1, ["nested"])], {}),
        (["a", "b"], {}),
        ("none", {}),
        (None, {}),
    ],
)
def test_what_is_read(value: Any, found: dict[int, tuple[str, ...]]) -> None:
    assert TASK.read(value, [1, 2, 3]) == found


def test_claims_that_are_numbered_otherwise_are_of_no_use() -> None:
    with pytest.raises(WrongReply):
        TASK.read([entry(0, "a"), entry(1, "b"), entry(2)], [1, 2, 3])


CLAIM = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=50).map(str.strip)
FOUND = st.dictionaries(
    st.integers(1, 9), st.lists(CLAIM.filter(bool), max_size=MOST_STATEMENTS, unique=True).map(tuple), min_size=1
)


@given(FOUND)
def test_what_is_written_fits_the_schema_and_is_read_again(found: dict[int, tuple[str, ...]]) -> None:
    numbers = sorted(found)
    written = TASK.write(found)
    Draft202012Validator(TASK.schema(numbers)).validate({TASK.key: written})
    assert TASK.read(written, numbers) == found


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 12) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["n", "claims", "claim", "1"]), inner),
    max_leaves=12,
)


@given(JSON, st.lists(st.integers(1, 9), min_size=1, unique=True))
def test_nothing_is_read_that_was_not_asked_or_is_out_of_bounds(value: Any, numbers: list[int]) -> None:
    try:
        found = TASK.read(value, numbers)
    except WrongReply:
        return
    assert found.keys() <= set(numbers)
    for claims in found.values():
        assert len(claims) <= MOST_STATEMENTS
        assert all(0 < len(claim) <= STATEMENT_LENGTH for claim in claims)


def test_the_step_result() -> None:
    assert found_claims([Segment(3, 9, "A claim.")]).model_dump(mode="json") == {
        "claims": ["A claim."],
        "items": [{"claim": "A claim.", "span": {"start": 3, "end": 9}}],
    }
