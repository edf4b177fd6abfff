import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from app.scorers.keyword_coverage import SCORER
from tests.unit.scorers.computing import score


def test_worked_example() -> None:
    """ferry, leave, ticket: forms count, so only ferry and ticket are found."""
    result = score(SCORER, "The ferry leaves at nine; a ticket is 4 euros.", question="Does the ferry leave? A ticket?")
    assert result.value == pytest.approx(2 / 3)
    assert result.analysis.model_dump() == {
        "terms": 3,
        "found": 2,
        "matched": ["ferry", "ticket"],
        "missing": ["leave"],
    }


@pytest.mark.parametrize(
    ("keyword", "output", "found"),
    [
        ("Wi-Fi", "Free wi-fi here", True),
        ("art", "a party", False),
        ("art", "art!", True),
        ("open  source", "OPEN\nsource software", True),
        ("eau", "L’eau coule", True),
        ("GPU", "GPU搭載モデル", True),
        ("GPU", "GPUs", False),
        ("GPU", "GPU가 있다", True),
        ("图书馆", "会议在图书馆举行", True),
        ("図書館", "会議は図書館で", True),
        ("회의", "회의는 내일", True),
        ("회의", "국회의원", False),
        ("회의", "會議", False),
        ("c++", "in C++.", True),
        (".net", "uses .NET 9", True),
        ("ﬁne", "fine", True),
    ],
)
def test_where_a_keyword_stands(keyword: str, output: str, found: bool) -> None:
    assert score(SCORER, output, keywords=[keyword]).value == float(found)


@pytest.mark.parametrize(
    ("question", "output", "missing"),
    [
        ("会议什么时候在图书馆举行？有咖啡吗？", "会议三月五日在图书馆举行。", ["咖啡"]),
        ("会議はいつ図書館で？コーヒーは？", "会議は三月五日に図書館で。", ["コーヒー"]),
        ("회의가 언제 도서관에서? 커피는?", "회의는 삼월 오일 도서관에서", ["커피"]),
        ("Où est l'eau ?", "L’eau est ici.", []),
    ],
)
def test_keywords_of_the_input(question: str, output: str, missing: list[str]) -> None:
    assert score(SCORER, output, question=question).analysis.model_dump()["missing"] == missing


@given(st.lists(st.text(min_size=1, max_size=10).filter(str.strip), min_size=1, max_size=5))
def test_keywords_cover_themselves(keywords: list[str]) -> None:
    spoken = [keyword for keyword in keywords if "\x00" not in keyword]
    if spoken:
        assert score(SCORER, " \n ".join(spoken), keywords=spoken).value == 1.0


def test_nothing_to_look_for() -> None:
    assert score(SCORER, "Nine.", question="What is it?").value is None
    with pytest.raises(ValidationError):
        SCORER.options.model_validate({"keywords": []})
    with pytest.raises(ValidationError):
        SCORER.options.model_validate({"keywords": [" "]})


def test_needs() -> None:
    assert SCORER.needed(SCORER.options()) == ("output", "input")
    assert SCORER.needed(SCORER.options.model_validate({"keywords": ["tea"]})) == ("output",)
