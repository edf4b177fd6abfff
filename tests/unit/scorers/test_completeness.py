import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.computed.terms import SHOWN
from app.scorers.completeness import SCORER
from tests.unit.scorers.computing import score


def test_worked_example() -> None:
    """ferry, leave, buy, ticket: three of four come up, in other forms."""
    result = score(
        SCORER,
        "The ferries leave at nine, and tickets are sold aboard.",
        question="When does the ferry leave and where can I buy a ticket?",
    )
    assert result.value == 0.75
    assert result.analysis.model_dump() == {
        "terms": 4,
        "found": 3,
        "matched": ["ferry", "leave", "ticket"],
        "missing": ["buy"],
    }


@pytest.mark.parametrize(
    ("question", "output", "value"),
    [
        ("Wann fährt die Fähre?", "Die Fähren fahren um neun.", 0.5),
        ("À quelle heure ouvre l'entrée ?", "Les entrées : on ouvre à neuf heures.", 1.0),
        ("会议在哪里举行？", "会议在图书馆举行。", 1.0),
        ("会议在哪里举行？", "汤太咸了。", 0.0),
        ("会議はどこで開催されますか？", "会議は図書館で開催されます。", 1.0),
        ("회의가 도서관에서 언제 있습니까?", "도서관의 회의는 내일입니다.", 1.0),
    ],
)
def test_languages(question: str, output: str, value: float) -> None:
    assert score(SCORER, output, question=question).value == value


@given(st.text(min_size=1, max_size=80))
def test_a_text_names_all_that_it_names(text: str) -> None:
    assert score(SCORER, text, question=text).value in (1.0, None)


@given(st.sets(st.sampled_from(["tea", "harbour", "ferry", "violin"]), min_size=1), st.text("xyz ", max_size=20))
def test_more_output_never_lowers_the_score(terms: set[str], more: str) -> None:
    question = "tea harbour ferry violin"
    less = score(SCORER, " ".join(sorted(terms)), question=question).value
    assert less is not None
    assert (score(SCORER, " ".join(sorted(terms)) + " " + more, question=question).value or 0) >= less


def test_an_input_that_names_nothing() -> None:
    result = score(SCORER, "Nine.", question="What is it?")
    assert (result.value, result.sentence, result.items) == (None, "none", 0)


def test_long_lists_are_counted_in_full_and_shown_in_part() -> None:
    question = " ".join(f"word{n}" for n in range(SHOWN + 50))
    told = score(SCORER, "nothing", question=question).analysis.model_dump()
    assert (told["terms"], told["found"], len(told["missing"])) == (SHOWN + 50, 0, SHOWN)
