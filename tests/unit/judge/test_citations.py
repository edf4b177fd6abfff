"""Verdicts that name the passages they rest on, and verdicts from several pages put together."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from app.domain.request import Strategy
from app.judge.reading import Assessed, merged
from app.judge.reply_schema import MOST_CITED, MOST_ENUMERATED
from app.judge.task import assessment_task, reply_form
from app.scorers.faithfulness import SCORER

ASSESSMENT = SCORER.inquiries[0].assessments[Strategy.THREE_STEP]
TASK = assessment_task(SCORER, ASSESSMENT, (2, 5))
LABELS = ("yes", "no", "unsure")


def read(passages: Any, task: Any = TASK) -> dict[int, Assessed]:
    return task.read([{"n": 1, "reason": "Why.", "verdict": "yes", "passages": passages}], [1])


@pytest.mark.parametrize(
    ("passages", "cited"),
    [
        ([2], (2,)),
        ([5, 2, 5], (2, 5)),
        (["P5", "[2]", "p2:"], (2, 5)),
        ("P5", (5,)),
        (2.0, (2,)),
        ([], ()),
        (None, ()),
    ],
)
def test_numbers_that_were_shown_are_cited_in_order(passages: Any, cited: tuple[int, ...]) -> None:
    assert read(passages) == {1: Assessed({"verdict": "yes"}, "Why.", cited)}


@pytest.mark.parametrize("passages", [[1], [2, 3], ["2 and 5"], "none", [None], [[2]], True, {"2": 5}])
def test_a_verdict_that_cites_what_was_not_shown_is_none(passages: Any) -> None:
    assert read(passages) == {}


def test_nothing_is_cited_where_nothing_may_be() -> None:
    task = assessment_task(SCORER, ASSESSMENT)
    assert "passages" not in str(task.schema([1]))
    assert read([2], task) == {1: Assessed({"verdict": "yes"}, "Why.")}


def test_many_numbers_are_not_listed_in_the_schema_and_checked_all_the_same() -> None:
    task = assessment_task(SCORER, ASSESSMENT, tuple(range(1, MOST_ENUMERATED + 2)))
    passages = task.schema([1])["properties"]["verdicts"]["items"]["properties"]["passages"]
    assert passages == {"type": "array", "items": {"type": "integer"}, "maxItems": MOST_CITED}
    assert read([MOST_ENUMERATED + 1], task)
    assert not read([MOST_ENUMERATED + 2], task)


@given(st.sets(st.integers(1, 2_000), min_size=1, max_size=200).map(sorted), st.data())
def test_no_page_takes_a_longer_schema_than_the_highest_numbers_do(numbers: list[int], data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, len(numbers) - 1))
    page = numbers[begin : data.draw(st.integers(begin + 1, len(numbers)))]

    def tokens(cited: list[int]) -> int:
        return reply_form(assessment_task(SCORER, ASSESSMENT, tuple(cited)), [1]).tokens

    assert tokens(page) <= tokens(numbers[-MOST_ENUMERATED:])


ANSWERS = st.builds(
    Assessed,
    st.sampled_from(LABELS).map(lambda label: {"verdict": label}),
    st.text(st.characters(codec="ascii", categories=["L"]), min_size=1, max_size=20),
    st.lists(st.sampled_from([2, 5]), unique=True).map(sorted).map(tuple),
    st.none(),
)


@given(st.dictionaries(st.integers(1, 9), ANSWERS, min_size=1))
def test_what_is_written_fits_the_schema_and_is_read_again(answers: dict[int, Assessed]) -> None:
    numbers = sorted(answers)
    written = TASK.write(answers)
    Draft202012Validator(TASK.schema(numbers)).validate({TASK.key: written})
    assert TASK.read(written, numbers) == answers


def test_probabilities_of_several_pages_are_those_of_the_foremost() -> None:
    pages = [Assessed({"verdict": "unsure"}, "Why.", (), {"yes": 0.2, "unsure": 0.8})] * 2
    assert merged(pages, "verdict", LABELS).probabilities == {"yes": 0.36, "unsure": 0.64}
    assert merged([*pages, Assessed({"verdict": "no"}, "Why.")], "verdict", LABELS).probabilities is None


def test_the_foremost_label_counts_and_cites_with_its_likes() -> None:
    answers = [
        Assessed({"verdict": "unsure"}, "Not here.", (1,)),
        Assessed({"verdict": "yes"}, "Here.", (4,)),
        Assessed({"verdict": "no"}, "Otherwise.", (5,)),
        Assessed({"verdict": "yes"}, "Here, too.", (3, 4)),
    ]
    assert merged(answers, "verdict", LABELS) == Assessed({"verdict": "yes"}, "Here.", (3, 4))


@given(st.lists(ANSWERS, min_size=1), st.randoms())
def test_the_order_of_pages_does_not_matter_to_the_label(answers: list[Assessed], random: Any) -> None:
    one = merged(answers, "verdict", LABELS)
    random.shuffle(answers)
    other = merged(answers, "verdict", LABELS)
    assert (one.labels, one.cited) == (other.labels, other.cited)
