from hypothesis import given
from hypothesis import strategies as st

from app.domain.request import RunRequest
from app.judge.subject import (
    context_passages,
    distinct,
    ground_truth_segments,
    input_segments,
    listed,
    output_segments,
)

REQUEST = RunRequest(
    scorer_id="any",
    output="One. Two.",
    input="Why? How?",
    context=["First.  It has two sentences.", " \n", "Third."],
    ground_truth="Eins. Zwei.",
    options={},
    model="fake/judge",
    timeout_ms=1,
)


def test_texts_are_cut_into_segments() -> None:
    for subject, text in (
        (output_segments(REQUEST, None), "One. Two."),
        (input_segments(REQUEST, None), "Why? How?"),
        (ground_truth_segments(REQUEST, None), "Eins. Zwei."),
    ):
        assert subject.text == text
        assert [unit.text for unit in subject.units] == text.split()
        assert list(subject.items) == [0, 1]


def test_passages_are_whole_and_blank_ones_are_not_asked_about() -> None:
    subject = context_passages(REQUEST, None)
    assert [unit.text for unit in subject.units] == REQUEST.context
    assert list(subject.items) == [0, 2]
    assert all((unit.start, unit.end) == (0, len(unit.text)) for unit in subject.units)


def test_lists_differ_where_their_texts_are_cut_otherwise() -> None:
    assert listed(["a", "b"]).text != listed(["ab"]).text != listed(["a b"]).text


def test_inputs_that_are_missing_have_no_units() -> None:
    bare = RunRequest(scorer_id="any", output="One.", options={}, model="fake/judge", timeout_ms=1)
    for subject in (input_segments, ground_truth_segments, context_passages):
        assert list(subject(bare, None).items) == list(subject(bare, None).units) == []


@given(st.lists(st.sampled_from("abc")), st.sets(st.integers(0, 20)))
def test_equal_finds_are_asked_about_once_in_their_first_place(texts: list[str], left_out: set[int]) -> None:
    asked = [index for index in range(len(texts)) if index not in left_out]
    found = distinct(listed(texts)._replace(items=asked))
    assert [texts[index] for index in found.items] == list(dict.fromkeys(texts[index] for index in asked))
    assert found.items == sorted(found.items)
    assert set(found.items) <= set(asked)
