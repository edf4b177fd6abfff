"""How likely labels are by the tokens of a reply, whatever the tokens' cut."""

import json
from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.judge.likelihood import Alignment, Probabilities, foremost, mean
from app.ports import Token
from app.scorers.toxicity import SCORER

ANSWERS = ("yes", "no", "unsure", "none")
ELEMENTS = next(iter(SCORER.inquiries[0].assessments["labels"].fields.values()))  # type: ignore[index]


def token(text: str | bytes, probability: float, **others: float) -> Token:
    """A token and what else may stand in its place; "_" in front of a name is a space."""
    written = text.encode() if isinstance(text, str) else text
    likeliest = [(written, probability)] + [(name.encode(), other) for name, other in others.items()]
    return Token(written, probability, tuple(likeliest))


def sure(text: str | bytes) -> Token:
    return token(text, 1.0)


def told(tokens: list[Token], chosen: str, labels: tuple[str, ...] = ANSWERS, **where: str) -> Probabilities | None:
    """The probabilities of what is chosen in the text that these tokens make."""
    text = where.get("text", b"".join(one.text for one in tokens).decode())
    return Alignment(text, tokens).probabilities(text.index(where.get("at", chosen)), chosen, labels)


def test_a_token_that_is_the_label() -> None:
    tokens = [sure('{"1": "'), token("yes", 0.6, no=0.2, unsure=0.1, maybe=0.1), sure('"}')]
    assert told(tokens, "yes") == {"yes": 0.666667, "no": 0.222222, "unsure": 0.111111}


def test_tokens_that_begin_the_same_label_are_one() -> None:
    tokens = [
        sure('{"1": "'),
        token("yes", 0.4, Yes=0.1, ye=0.1, y=0.05, YES=0.05, **{" yes": 0.1, "no": 0.2}),
        sure('"}'),
    ]
    assert told(tokens, "yes") == {"yes": 0.8, "no": 0.2}


@pytest.mark.parametrize("opening", ['"', ' "', ': "', '":"', '\n  "', "“"])
def test_a_token_that_holds_more_than_the_label(opening: str) -> None:
    others = {f'{opening}no"': 0.3, f"{opening}unsure": 0.1, opening: 0.1, "[": 0.1}
    tokens = [sure('{"1'), token(f'{opening}yes",', 0.4, **others), sure(' "2": "no"}')]
    assert told(tokens, "yes") == {"yes": 0.5, "no": 0.375, "unsure": 0.125}


def test_a_label_in_several_tokens_and_one_that_is_the_beginning_of_another() -> None:
    # P(no) = 0.5 * 0.8 and P(none) = 0.5 * 0.2, beside P(yes) = 0.25
    tokens = [sure('"'), token("no", 0.5, yes=0.25), token('"', 0.6, ne=0.2, **{'"}': 0.2, "t": 0.0}), sure("}")]
    assert told(tokens, "no") == {"yes": 0.333333, "no": 0.533333, "none": 0.133333}
    tokens = [sure('"'), token("no", 0.5, yes=0.5), token("ne", 0.2, **{'"': 0.8}), sure('"}')]
    assert told(tokens, "none", at="none") == {"yes": 0.5, "no": 0.4, "none": 0.1}


def test_labels_with_a_common_beginning_are_told_apart_where_they_part() -> None:
    tokens = [
        sure('{"labels":{"1":"'),
        token("personal", 0.6, none=0.3, mock=0.05, m=0.05),
        sure("_attack"),
        token("_mild", 0.5, _moderate=0.25, _severe=0.25),
        sure('"}}'),
    ]
    probabilities = told(tokens, "personal_attack_mild", ELEMENTS)
    assert probabilities is not None
    assert {label: share for label, share in probabilities.items() if not label.startswith("mockery")} == {
        "none": 0.3,
        "personal_attack_mild": 0.3,
        "personal_attack_moderate": 0.15,
        "personal_attack_severe": 0.15,
    }
    # Nothing tells how severe the mockery would have been.
    assert [share for label, share in probabilities.items() if label.startswith("mockery")] == [0.033333] * 3


@pytest.mark.parametrize("words", ["Personal attack mild", "personal-attack-mild"])
def test_a_branch_that_leads_on_like_the_chosen_one_counts_with_it(words: str) -> None:
    first, attack, mild = words[:8], words[8:15], words[15:]
    tokens = [
        sure('"'),
        token(first, 0.3, pers=0.3, none=0.2, **{" personal": 0.2}),
        sure(attack),
        token(mild, 0.5, **{" severe": 0.5}),
        sure('"'),
    ]
    chosen = "personal_attack_mild"
    assert told(tokens, chosen, ELEMENTS, at=first) == {"none": 0.2, chosen: 0.4, "personal_attack_severe": 0.4}


def test_an_explanation_after_the_label() -> None:
    tokens = [sure('"'), token("No", 0.7, Yes=0.3), token(", because", 0.9, ne=0.1), sure(' it rained"')]
    assert told(tokens, "no", at="No") == {"yes": 0.3, "no": 0.63, "none": 0.07}
    tokens = [sure('"'), token("No", 0.7, Yes=0.3), token(" -", 0.9, ne=0.1), sure(' it rained"')]
    assert told(tokens, "no", at="No") == {"yes": 0.3, "no": 0.63, "none": 0.07}


def test_true_and_false_stand_for_yes_and_no() -> None:
    tokens = [sure('"'), token("true", 0.7, false=0.2, no=0.1), sure('"')]
    assert told(tokens, "yes", ("yes", "no"), at="true") == {"yes": 0.7, "no": 0.3}


def test_characters_in_several_tokens_and_texts_around() -> None:
    tokens = [sure("<think>yes</think>\n"), sure('{"reason": "'), sure("근".encode()[:2]), sure("근".encode()[2:])]
    tokens += [sure('", "verdict": "'), token("yes", 0.9, no=0.1), sure('"}'), sure("<|end|>")]
    assert told(tokens, "yes", text='{"reason": "근", "verdict": "yes"}') == {"yes": 0.9, "no": 0.1}


def test_nothing_is_told_of_a_text_that_the_tokens_do_not_hold() -> None:
    tokens = [sure('{"1": "'), sure("no"), sure('"}')]
    assert told(tokens, "yes", text='{"1": "yes"}') is None


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        ([token("none", 0.0)], "none"),  # nothing is likely
        ([sure("personal")], "personal_attack_mild"),  # the tokens end too soon
        ([sure("personal"), sure("ity")], "personal_attack_mild"),  # they lead elsewhere
        ([sure("personal"), sure('"')], "personal_attack_mild"),
        ([sure("none")], "mockery_mild"),
    ],
)
def test_nothing_is_guessed(words: list[Token], chosen: str) -> None:
    assert told([sure('"'), *words], chosen, ELEMENTS, at=words[0].text.decode()) is None


CUTS = st.lists(st.integers(1, 6), min_size=1, max_size=60)
SHARES = st.floats(0.01, 1)


@given(st.lists(st.sampled_from(ELEMENTS), min_size=1, max_size=5), CUTS, st.text(max_size=20), SHARES)
def test_however_the_reply_is_cut(chosen: list[str], cuts: list[int], prose: str, share: float) -> None:
    document = {"reason": prose, "labels": {str(number): label for number, label in enumerate(chosen, 1)}}
    text = json.dumps(document, ensure_ascii=False)
    raw, tokens = text.encode(), []
    while raw:
        cut = cuts[len(tokens) % len(cuts)]
        tokens.append(token(raw[:cut], share, zzz=1 - share))
        raw = raw[cut:]
    alignment = Alignment(text, tokens)
    at = text.index('"labels"')
    for number, label in enumerate(chosen, 1):
        at = text.index(f'"{number}": "', at) + len(f'"{number}": "')
        assert alignment.probabilities(at, label, ELEMENTS) == {label: 1.0}


def test_the_foremost_of_several() -> None:
    both = [{"yes": 0.5, "no": 0.25, "unsure": 0.25}, {"yes": 0.2, "unsure": 0.8}]
    # none says yes: 0.5 * 0.8; neither yes nor no: 0.25 * 0.8
    assert foremost(both, ("yes", "no", "unsure")) == {"yes": 0.6, "no": 0.2, "unsure": 0.2}
    assert foremost(both[:1], ("yes", "no", "unsure")) == both[0]
    assert foremost([*both, None], ("yes", "no", "unsure")) is None


def test_the_mean_of_several() -> None:
    assert mean([{"yes": 0.5, "no": 0.5}, {"yes": 1.0}]) == {"yes": 0.75, "no": 0.25}
    assert mean([{"yes": 1.0}, None]) is None


DISTRIBUTIONS = st.lists(st.lists(SHARES, min_size=3, max_size=3), min_size=1, max_size=4)


@given(DISTRIBUTIONS)
def test_what_is_put_together_is_a_distribution(shares: list[list[float]]) -> None:
    labels = ("yes", "no", "unsure")
    several = [dict(zip(labels, (one / fsum(three) for one in three), strict=True)) for three in shares]
    for one in (foremost(several, labels), mean(several)):
        assert one is not None
        assert fsum(one.values()) == pytest.approx(1, abs=1e-5)
