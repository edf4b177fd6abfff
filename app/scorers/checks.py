"""Checks: which share of plain conditions the output meets (higher is better)."""

import json
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from app.computed.finding import Searched
from app.computed.json_schema import TooManySteps, WrongSchema, check_schema, violations
from app.computed.patterns import WrongPattern, compiled, first_match
from app.computed.scorer import ComputedScorer, Inputs, Result
from app.domain.faults import pointer
from app.domain.model import Model, Text, refuse_nul
from app.domain.request import Options
from app.domain.run import Direction, Span
from app.judge.scorer import Band

SHOWN: Final = 10
MAX_SCHEMA: Final = 100_000

CheckName = Literal["includes", "excludes", "equals", "matches", "jsonSchema"]


def _refuse_wrong_pattern(pattern: str) -> str:
    try:
        compiled(pattern)
    except WrongPattern:
        message = "Send a regular expression in RE2's syntax, without look-around and backreferences, and not too large"
        raise PydanticCustomError("pattern", message) from None
    return pattern


def _refuse_wrong_schema(schema: dict[str, Any]) -> dict[str, Any]:
    try:
        if len(json.dumps(schema)) > MAX_SCHEMA:
            raise PydanticCustomError("too_long", "Send a JSON schema of at most 100000 characters")
        check_schema(schema)
    except RecursionError:
        raise PydanticCustomError("too_deep", "Send a JSON schema that is nested less deeply") from None
    except WrongSchema as error:
        message = "Not a JSON schema that can be used; see {place} in it"
        raise PydanticCustomError("json_schema", message, {"place": pointer("#", error.path)}) from None
    return schema


Piece = Annotated[str, StringConstraints(min_length=1, max_length=10_000), AfterValidator(refuse_nul)]
Pieces = Annotated[list[Piece], Field(max_length=100)]
Pattern = Annotated[
    str,
    StringConstraints(min_length=1, max_length=1_000),
    AfterValidator(refuse_nul),
    AfterValidator(_refuse_wrong_pattern),
]


class CheckOptions(Options):
    """Options of checks beside the common ones; at least one check has to be named."""

    includes: Pieces = Field([], description="Texts that have to stand in the output")
    excludes: Pieces = Field([], description="Texts that must not stand in the output")
    equals: Text | None = Field(None, description="What the output has to be, but for whitespace around")
    matches: Annotated[list[Pattern], Field(max_length=20)] = Field(
        [], description="Regular expressions (RE2) that have to match somewhere in the output"
    )
    json_schema: Annotated[dict[str, Any], AfterValidator(_refuse_wrong_schema)] | None = Field(
        None, description="JSON schema that the output, as JSON, has to fit; references stay within it"
    )
    ignore_case: bool = Field(False, description="For includes, excludes, equals and matches")

    @model_validator(mode="after")
    def _refuse_nothing_to_check(self) -> Self:
        if self.equals is None and self.json_schema is None and not (self.includes or self.excludes or self.matches):
            raise PydanticCustomError(
                "missing", "Name at least one check: includes, excludes, equals, matches or jsonSchema"
            )
        return self


class SchemaFault(Model):
    """Where the output breaks its JSON schema: a JSON pointer into the output, and the schema's keyword."""

    pointer: str
    keyword: str


class Checked(Model):
    """One check: `index` counts within its option, `span` is where the first find stands in the output.

    `passed` is null for a JSON schema that takes too long to check.
    """

    check: CheckName
    index: Annotated[int, Field(ge=0)]
    passed: bool | None
    span: Span | None = None
    faults: Sequence[SchemaFault] = ()


class Checks(Model):
    """Every check with its outcome; `faults` shows the first ten of a JSON schema."""

    results: list[Checked]


def _compute(inputs: Inputs, options: CheckOptions) -> Result:
    results = list(_checked(inputs.output, options))
    passed = sum(result.passed is True for result in results)
    facts = {"passed": passed, "checks": len(results)}
    if any(result.passed is None for result in results):
        return Result(None, Checks(results=results), len(results), "undecided", facts)
    return Result(passed / len(results), Checks(results=results), len(results), "checked", facts)


def _checked(output: str, options: CheckOptions) -> Iterator[Checked]:
    searched = Searched(output, ignore_case=options.ignore_case)
    for index, wanted in enumerate(options.includes):
        span = searched.span_of(wanted)
        yield Checked(check="includes", index=index, passed=span is not None, span=span)
    for index, unwanted in enumerate(options.excludes):
        span = searched.span_of(unwanted)
        yield Checked(check="excludes", index=index, passed=span is None, span=span)
    if options.equals is not None:
        yield Checked(check="equals", index=0, passed=searched.equals(options.equals))
    for index, pattern in enumerate(options.matches):
        span = first_match(pattern, output, ignore_case=options.ignore_case)
        yield Checked(check="matches", index=index, passed=span is not None, span=span)
    if options.json_schema is not None:
        yield _against_schema(output, options.json_schema)


def _against_schema(output: str, schema: dict[str, Any]) -> Checked:
    try:
        instance = json.loads(output, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return _schema_check(passed=False, faults=[SchemaFault(pointer="#", keyword="json")])
    try:
        found = violations(schema, instance, SHOWN)
    except WrongSchema:
        return _schema_check(passed=None, faults=[SchemaFault(pointer="#", keyword="$ref")])
    except TooManySteps:
        return _schema_check(passed=None, faults=[])
    faults = [SchemaFault(pointer=pointer("#", violation.path), keyword=violation.keyword) for violation in found]
    return _schema_check(passed=not faults, faults=faults)


def _schema_check(*, passed: bool | None, faults: list[SchemaFault]) -> Checked:
    return Checked(check="jsonSchema", index=0, passed=passed, faults=faults)


def _refuse_constant(_: str) -> None:
    raise ValueError("NaN and infinities are no JSON")


SCORER = ComputedScorer(
    id="checks",
    version="1",
    description=(
        "Which share of plain conditions the output meets: texts it includes, texts it excludes, a text it equals, "
        "regular expressions it matches (RE2's syntax, linear time), a JSON schema it fits (references stay within the "
        "schema). Unicode forms do not count, case does unless ignoreCase."
    ),
    direction=Direction.HIGHER_IS_BETTER,
    needs=("output",),
    options=CheckOptions,
    bands=(
        Band("all checks failed", 0.0, 0.0),
        Band("most checks failed", 0.1, 0.4),
        Band("most checks passed", 0.5, 0.99),
        Band("all checks passed", 1.0, 1.0),
    ),
    step_schemas={"analyzeStepResult": Checks.model_json_schema(mode="serialization")},
    compute=_compute,
    reasons={
        "checked": {
            "en": "Checks passed: {passed} of {checks}.",
            "fr": "Vérifications réussies : {passed} sur {checks}.",
            "ko": "검사 {checks}개 중 통과: {passed}개.",
            "ja": "{checks}件のチェックのうち合格：{passed}件。",
            "de": "Bestandene Prüfungen: {passed} von {checks}.",
            "es": "Comprobaciones superadas: {passed} de {checks}.",
            "pt": "Verificações aprovadas: {passed} de {checks}.",
            "zh": "{checks} 项检查中通过 {passed} 项。",
        },
        "undecided": {
            "en": "The JSON schema could not be checked: it takes too many steps, or a reference leads out of it.",
            "fr": "Le schéma JSON n’a pas pu être vérifié : trop d’étapes, ou une référence qui en sort.",
            "ko": "JSON 스키마를 검사할 수 없었습니다. 단계가 너무 많거나 참조가 스키마 밖을 가리킵니다.",
            "ja": "JSONスキーマを確認できませんでした。手順が多すぎるか、参照がスキーマの外を指しています。",
            "de": "Das JSON-Schema ließ sich nicht prüfen: zu viele Schritte, oder ein Verweis führt hinaus.",
            "es": "No se pudo comprobar el esquema JSON: demasiados pasos o una referencia que sale de él.",
            "pt": "Não foi possível verificar o esquema JSON: passos demais ou uma referência que sai dele.",
            "zh": "无法检查该 JSON 模式：步骤过多，或引用指向了模式之外。",
        },
    },
)
