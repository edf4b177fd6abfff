from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from app.custom.reading import Misfit, objects_in, read
from app.custom.schema import shape_of
from app.custom.shape import Shape
from app.domain.errors import WrongReply
from tests.unit.custom.test_schema import FULL, text_of

GOOD = {
    "verdict": "not sure",
    "why": "So it reads.",
    "sure": 0.5,
    "count": 2,
    "fine": True,
    "parts": [{"words": ["a", "b"]}],
}


def shape_from(schema: Any) -> Shape:
    shape = shape_of(schema, "#", [])
    assert shape is not None
    return shape


SHAPE = shape_from(FULL)
SURE = shape_from(text_of({"sure": {"type": "number", "minimum": 0, "maximum": 1}}))


def test_a_good_reply_is_read_as_it_is() -> None:
    assert read(SHAPE, GOOD) == GOOD


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"verdict": " NOT_SURE. "}, {"verdict": "not sure"}),
        ({"verdict": "Yes, because it is."}, {"verdict": "yes"}),
        ({"verdict": True}, {"verdict": "yes"}),
        ({"fine": "No."}, {"fine": False}),
        ({"count": "[3]"}, {"count": 3}),
        ({"sure": "0.25"}, {"sure": 0.25}),
        ({"sure": 1}, {"sure": 1.0}),
        ({"why": ""}, {"why": ""}),
        ({"why": "word " * 40}, {"why": "word " * 17 + "word…"}),
        ({"extra": 1}, {}),
    ],
)
def test_what_does_not_matter_is_put_right(changes: dict[str, Any], expected: dict[str, Any]) -> None:
    assert read(SHAPE, GOOD | changes) == GOOD | expected


def test_names_of_any_case_are_known() -> None:
    assert read(SHAPE, {name.upper(): value for name, value in GOOD.items()}) == GOOD


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"verdict": "maybe"}, ("verdict",)),
        ({"why": None}, ("why",)),
        ({"why": 3}, ("why",)),
        ({"sure": 1.01}, ("sure",)),
        ({"sure": -0.1}, ("sure",)),
        ({"sure": float("nan")}, ("sure",)),
        ({"sure": float("inf")}, ("sure",)),
        ({"sure": "4/10"}, ("sure",)),
        ({"sure": True}, ("sure",)),
        ({"sure": None}, ("sure",)),
        ({"count": 0}, ("count",)),
        ({"count": 1.5}, ("count",)),
        ({"fine": "perhaps"}, ("fine",)),
        ({"parts": []}, ("parts",)),
        ({"parts": [{"words": []}] * 4}, ("parts",)),
        ({"parts": "a"}, ("parts",)),
        ({"parts": [{"words": [1]}]}, ("parts", 0, "words", 0)),
        ({"parts": ["a"]}, ("parts", 0)),
    ],
)
def test_what_does_not_fit_is_never_guessed(changes: dict[str, Any], path: tuple[str | int, ...]) -> None:
    with pytest.raises(Misfit) as misfit:
        read(SHAPE, GOOD | changes)
    assert misfit.value.path == path


def test_a_missing_property_is_a_misfit() -> None:
    with pytest.raises(Misfit) as misfit:
        read(SHAPE, {name: value for name, value in GOOD.items() if name != "fine"})
    assert misfit.value.path == ("fine",)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*GOOD, "words"]), inner, max_size=6)
        ),
        max_leaves=12,
    )
)
def test_whatever_is_read_fits_the_schema_that_was_sent(value: Any) -> None:
    try:
        found = read(SHAPE, {**GOOD, **value} if isinstance(value, dict) else value)
    except Misfit:
        return
    Draft202012Validator(SHAPE.schema()).validate(found)


def test_objects_are_read_by_their_numbers() -> None:
    replies = [{"n": 2, "sure": 0.5}, {"n": "[1]", "sure": 1}, {"n": 2, "sure": 0.5}, "noise", {"n": None, "sure": 1}]
    assert objects_in(SURE, replies, [1, 2]) == {1: {"sure": 1.0}, 2: {"sure": 0.5}}
    assert objects_in(SURE, {"n": 1, "sure": 0}, [1]) == {1: {"sure": 0.0}}
    assert objects_in(SURE, "noise", [1]) == {}


def test_an_item_with_two_answers_or_a_misfit_has_none() -> None:
    replies = [{"n": 1, "sure": 0}, {"n": 1, "sure": 1}, {"n": 2, "sure": 7}, {"n": 3, "sure": 1}, {"n": 4, "sure": 1}]
    assert objects_in(SURE, replies, [1, 2, 3]) == {3: {"sure": 1.0}}


def test_numbers_that_take_the_place_of_others_spoil_the_reply() -> None:
    with pytest.raises(WrongReply):
        objects_in(SURE, [{"n": 0, "sure": 1}, {"n": 1, "sure": 1}], [1, 2])
