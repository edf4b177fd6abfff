import math
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.custom.formula import MAX_UNITS, Formula, FormulaFailed, WrongFormula
from app.custom.shape import Shape

VERDICT = Shape(
    "object",
    properties={
        "label": Shape("label", labels=("yes", "no", "unsure")),
        "severity": Shape("integer"),
        "sure": Shape("number"),
        "fine": Shape("boolean"),
        "why": Shape("text"),
        "tags": Shape("array", items=Shape("text"), most=9),
        "parts": Shape("array", items=Shape("object", properties={"weight": Shape("number")}), most=9),
        "inner": Shape("object", properties={"depth": Shape("integer")}),
    },
)
OPTIONS = Shape("object", properties={"limit": Shape("number")})


def verdict(label: str = "yes", **values: Any) -> dict[str, Any]:
    usual = {"severity": 1, "sure": 0.5, "fine": True, "why": "w", "tags": ["a"], "parts": [], "inner": {"depth": 1}}
    return {**usual, "label": label, **values}


def formula(text: str) -> Formula:
    return Formula(text, {"options": OPTIONS}, VERDICT)


def value(text: str, *verdicts: dict[str, Any], limit: float = 0.25, segments: int = 4) -> float | None:
    return formula(text).value({"options": {"limit": limit}, "verdicts": verdicts}, segments)


THREE = (verdict("yes", severity=1), verdict("no", severity=2), verdict("yes", severity=3, sure=0.25))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # 2 of 3 say yes.
        ("share(size(verdicts.filter(v, v.label == 'yes')), size(verdicts))", 2 / 3),
        ("double(size(verdicts.filter(v, v.label == 'yes'))) / double(size(verdicts))", 2 / 3),
        # (1 + 0 + 1) / 3.
        ("verdicts.map(v, {'yes': 1.0, 'no': 0.0}[v.label]).mean()", 2 / 3),
        # (1 + 2 + 3) / 12.
        ("verdicts.map(v, double(v.severity)).sum() / 12.0", 0.5),
        ("verdicts.map(v, v.sure).min()", 0.25),
        ("verdicts.map(v, v.sure).max()", 0.5),
        ("verdicts.exists(v, v.severity == 3) ? 1.0 : 0.0", 1.0),
        ("verdicts.all(v, v.fine) ? 0.75 : 0.0", 0.75),
        ("verdicts.exists_one(v, v.label == 'no') ? 1 : 0", 1.0),
        ("verdicts.filter(v, 'a' in v.tags).size() > 2 ? options.limit : 0.0", 0.25),
        ("share(size(verdicts), segments)", 0.75),
        ("share(verdicts[0].inner.depth, 2)", 0.5),
        ("verdicts[0].parts.map(p, p.weight).sum()", 0.0),
        ("1 - 0", 1.0),
        ("0", 0.0),
        ("-0.0", 0.0),
        ("null", None),
        ("size(verdicts) == 3 ? null : 1.0", None),
        ("size(verdicts) == 2 ? null : (segments == 4 ? null : 0.5)", None),
        ("'null' != \"null\" ? 1.0 : 0.0 // null", 0.0),
        ("verdicts[0].why == 'it is null' ? null : 0.5", 0.5),
        # A sum of weights that ends up a hair beyond 1 is 1.
        ("0.1 + 0.2 + 0.7000000000000001", 1.0),
    ],
)
def test_formulas(text: str, expected: float | None) -> None:
    assert value(text, *THREE) == (expected if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("verdicts[0].lable == 'yes' ? 1.0 : 0.0", "Line 1, column 12: there is no such property"),
        ("1.0\n + nope", "Line 2, column 4: there is no such name"),
        ("env.HOME == 'x' ? 1 : 0", "there is no such name"),
        ("verdicts.map(v, v.label).join()", "there is no such name or function"),
        ("size(verdicts) * 0.5", "does not take (int, double); double(...) and int(...) convert numbers"),
        ("verdicts[0].severity / 2.0", "does not take (int, double)"),
        ("verdicts[0].fine ? 1 : 0.5", "does not take (bool, int, double)"),
        ("verdicts.map(v, v.severity).sum()", "does not take (list(int))"),
        ("verdicts[0].label", "Give a number"),
        ("verdicts[0].fine", "Give a number"),
        ("verdicts", "Give a number"),
        ("(1.0", "Line 1, column 5: this is no CEL expression"),
        ("1.0 1.0", "Line 1, column 5: this is no CEL expression"),
        ("import os", "Line 1, column 1: this is no CEL expression"),
        ("1.0 - null", "Give null only as the result"),
        ("null > 0.5 ? 1.0 : 0.0", "Give null only as the result"),
        ("[null, 1.0].sum()", "Give null only as the result"),
        ("verdicts[0].sure == null ? 1.0 : 0.0", "Give null only as the result"),
    ],
)
def test_types_and_names_are_checked_when_it_is_saved(text: str, told: str) -> None:
    with pytest.raises(WrongFormula) as wrong:
        formula(text)
    assert told in str(wrong.value)
    assert "lable" not in str(wrong.value)
    assert "nope" not in str(wrong.value)


NESTED = "verdicts.exists(a, verdicts.exists(b, verdicts.exists(c, verdicts.exists(d, d.label == 'no'))))"
TEN_TIMES = ".map(x, x + x + x + x + x + x + x + x + x + x)"


@pytest.mark.parametrize(
    "text",
    [
        # What would double with every few characters.
        "size(['xxxxxxxxxx']" + TEN_TIMES * 12 + "[0])",
        "size([[1, 1]]" + TEN_TIMES * 12 + ")",
        "size(verdicts.map(v, v.why + v.why))",
        "size(b'ab' + b'ab')",
        "size(verdicts + verdicts)",
        "(verdicts.map(v, v.sure) + verdicts.map(v, v.sure)).sum()",
        "size(verdicts.map(v, [v.sure, v.sure]))",
        "size([[[1]]])",
        "size({'a': [1, 2]})",
        "size({'a': {'b': 1}})",
        # What is compared part by part.
        "verdicts == verdicts ? 1.0 : 0.0",
        "verdicts[0] != verdicts[0] ? 1.0 : 0.0",
        "verdicts[0] in verdicts ? 1.0 : 0.0",
        "[1.0] == [1.0] ? 1.0 : 0.0",
        # What the types do not tell.
        "['a', 1][0] + ['a', 1][0] == 'aa' ? 1.0 : 0.0",
        "size([])",
        "dyn(1.0)",
        "size([1, 'a'].map(x, x + x))",
        # Functions that are not there.
        "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'.matches('(a+)+$b') ? 1.0 : 0.0",
        "verdicts[0].why.matches('((a{1,100}){1,100}){1,100}') ? 1.0 : 0.0",
        "size(string(1))",
        "timestamp('2026-01-01T00:00:00Z').getFullYear()",
        "size(type(1))",
        "size(bytes('a'))",
        "cel.bind(x, 1.0, x)",
        "[1].transformList(i, v, v)[0]",
        "optional.of(1.0).value()",
        "math.greatest(1, 2)",
        # Messages, also the library's own.
        "google.protobuf.DoubleValue{value: 0.5}",
        "size([scorer.Object0{}])",
        # Too much of anything.
        "(" * 40 + "1" + ")" * 40,
        "[" * 40 + "1" + "]" * 40,
        "1" + " + 1" * 400,
        "size([" + "1, " * 450 + "1])",
        "verdicts.exists(v, 1 in [" + "1, " * 450 + "1]) ? 1.0 : 0.0",
    ],
)
def test_what_could_grow_without_bounds_is_refused(text: str) -> None:
    with pytest.raises(WrongFormula):
        formula(text)


@pytest.mark.parametrize(
    "text",
    [
        NESTED + " ? 1.0 : 0.0",
        "verdicts.map(a, size(verdicts.filter(b, b.sure > 9.0))).exists(n, n < 0) ? 1.0 : 0.0",
        "verdicts.exists(v, verdicts.map(w, w.sure).mean() < 0.0) ? 1.0 : 0.0",
        "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11].exists(i, verdicts.map(a, a.sure).sum() < 0.0) ? 1.0 : 0.0",
    ],
)
def test_loops_end(text: str) -> None:
    with pytest.raises(FormulaFailed, match="10,000 steps"):
        value(text, *[verdict()] * MAX_UNITS)


def test_the_most_verdicts_are_counted() -> None:
    assert value("share(size(verdicts.filter(v, v.label == 'yes')), size(verdicts))", *[verdict()] * MAX_UNITS) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "1.5",
        "-0.1",
        "2",
        "0.0 / 0.0",
        "1.0 / 0.0",
        "1 / 0",
        "1 % 0",
        "share(1, 0)",
        "9223372036854775807 + 1",
        "verdicts[7].sure",
        "{'a': 1.0}[verdicts[0].label]",
        "verdicts.filter(v, v.severity > 9).map(v, v.sure).mean()",
        "verdicts.filter(v, v.severity > 9).map(v, v.sure).max()",
        "int(1e300)",
        f"{-sys.float_info.max!r} * 0.5",
        "double('1.0e400')",
        "double('x')",
    ],
)
def test_what_is_no_score_is_a_failure_and_never_a_number(text: str) -> None:
    with pytest.raises(FormulaFailed):
        value(text, *THREE)


FORMULAS = [
    "share(size(verdicts.filter(v, v.label == 'yes')), size(verdicts))",
    "size(verdicts) == 0 ? null : verdicts.map(v, v.sure).mean()",
    "verdicts.map(v, v.sure).sum() / double(size(verdicts))",
    "verdicts.map(v, double(v.severity)).max() / 3.0",
    "1.0 - share(size(verdicts.filter(v, v.fine)), segments)",
    "verdicts.map(v, {'yes': 1.0, 'no': 0.0, 'unsure': 0.3}[v.label]).mean() * options.limit",
]
VERDICTS = st.lists(
    st.builds(
        verdict,
        label=st.sampled_from(["yes", "no", "unsure"]),
        severity=st.integers(-(2**62), 2**62),
        sure=st.floats(allow_nan=True, allow_infinity=True),
        fine=st.booleans(),
        why=st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=9),
    ),
    max_size=12,
)
COMPILED = [formula(text) for text in FORMULAS]


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(COMPILED), VERDICTS, st.floats(), st.integers(0, 50))
def test_any_verdicts_give_a_score_or_a_typed_failure(
    compiled: Formula, verdicts: list[dict[str, Any]], limit: float, segments: int
) -> None:
    try:
        score = compiled.value({"options": {"limit": limit}, "verdicts": verdicts}, segments)
    except FormulaFailed:
        return
    assert score is None or (0.0 <= score <= 1.0 and math.isfinite(score))


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_compiles_or_is_refused(text: str) -> None:
    try:
        formula(text)
    except WrongFormula:
        return
