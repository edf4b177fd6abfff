"""JSON schemas from callers: nothing is fetched, patterns are RE2's, and the work is bounded.

A schema may refer to itself in ways that take exponential time, so validation counts its steps. Three keywords are put
right here: patterns, which the library leaves to a backtracking engine, and uniqueItems, which it checks in quadratic
time.
"""

from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from typing import Any, Final, NamedTuple

from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import extend, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from app.computed.patterns import WrongPattern, compiled

MAX_STEPS: Final = 1_000_000
"""Keywords that are looked at, and errors handed up, before validation gives up: some seconds."""
_STEP_SIZE: Final = 100  # values that are looked at, and maybe written into a message, within one step
_PATTERN_KEYWORDS: Final = frozenset({"pattern", "patternProperties"})
DEFAULT_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"

Path = tuple[str | int, ...]
Check = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]


class WrongSchema(ValueError):
    """Not a JSON schema, or one that asks for more than is served; `path` leads to what is wrong."""

    def __init__(self, path: Path = ()) -> None:
        super().__init__(path)
        self.path = path


class TooManySteps(Exception):
    """Validation takes more steps than are allowed."""


class Violation(NamedTuple):
    """Where an instance breaks its schema, and by which keyword: nothing of its content but names."""

    path: Path
    keyword: str


class _Budget:
    """The steps that are left to one validation."""

    def __init__(self, instance: Any, steps: int) -> None:
        self._left = steps
        self._sizes: dict[int, int] = {}
        self._measure(instance)

    def spend(self, instance: Any) -> None:
        size = len(instance) if isinstance(instance, str) else self._sizes.get(id(instance), 0)
        self._left -= 1 + size // _STEP_SIZE
        if self._left < 0:
            raise TooManySteps

    def _measure(self, value: Any) -> int:
        if isinstance(value, str):
            return len(value)
        if not isinstance(value, list | dict):
            return 1
        size = 1 + sum(map(self._measure, value.values() if isinstance(value, dict) else value))
        self._sizes[id(value)] = size
        return size


_budget: ContextVar[_Budget] = ContextVar("budget")


def check_schema(schema: Mapping[str, Any]) -> None:
    """Refuse what is no schema that can be used; raises WrongSchema, and RecursionError for a very deep one.

    References are looked up when they are used.
    """
    try:
        _draft_of(schema).check_schema(schema)
    except SchemaError as error:
        raise WrongSchema(tuple(error.absolute_path)) from error
    names: set[str] = set()
    for path, name, value in _keywords_of(schema, ()):
        names.add(name)
        patterns = [value] if name == "pattern" else value if name == "patternProperties" else ()
        for pattern in patterns:
            _refuse_wrong_pattern(pattern, path)
    if names >= {"patternProperties", "unevaluatedProperties"}:
        raise WrongSchema(("unevaluatedProperties",))


def violations(schema: Mapping[str, Any], instance: Any, most: int, max_steps: int = MAX_STEPS) -> list[Violation]:
    """Return the first different violations, at most so many, found within so many steps.

    Raises TooManySteps, and WrongSchema when a reference leads out of the schema or nowhere.
    """
    found: dict[Violation, None] = {}
    try:
        token = _budget.set(_Budget(instance, MAX_STEPS if max_steps is None else max_steps))
        try:
            for error in _bounded(_draft_of(schema))(schema, registry=Registry()).iter_errors(instance):
                found[Violation(tuple(error.absolute_path), str(error.validator))] = None
                if len(found) == most:
                    break
        finally:
            _budget.reset(token)
    except Unresolvable as error:
        raise WrongSchema from error
    except RecursionError as error:
        raise TooManySteps from error
    return list(found)


def _draft_of(schema: Mapping[str, Any]) -> Any:
    named = schema.get("$schema", DEFAULT_DRAFT)
    kind = validator_for({"$schema": named}, default=None) if isinstance(named, str) else None
    if kind is None:
        raise WrongSchema(("$schema",))
    return kind


@cache
def _bounded(draft: Any) -> Any:
    own = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
    }
    return extend(draft, {name: _counted(own.get(name, check)) for name, check in draft.VALIDATORS.items()})


def _counted(check: Check) -> Check:
    def look(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        _budget.get().spend(instance)
        for error in check(validator, value, instance, schema) or ():
            # An error goes through every keyword above it.
            _budget.get().spend(None)
            yield error

    return look


def _pattern(_: Any, pattern: str, instance: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not compiled(pattern).search(instance):
        yield ValidationError("does not match")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, _: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    for pattern, schema in patterns.items():
        matcher = compiled(pattern)
        for name, value in instance.items():
            if matcher.search(name):
                yield from validator.descend(value, schema, path=name, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    known = schema.get("properties", {})
    matchers = [compiled(pattern) for pattern in schema.get("patternProperties", {})]
    for name, value in instance.items():
        if name not in known and not any(matcher.search(name) for matcher in matchers):
            yield from validator.descend(value, allowed, path=name)


def _unique_items(_: Any, wanted: bool, instance: Any, __: Any) -> Iterator[ValidationError]:
    if wanted and isinstance(instance, list) and len(set(map(_hashable, instance))) < len(instance):
        yield ValidationError("has repeated items")


def _hashable(value: Any) -> Any:
    """Return what is equal for equal JSON values only: true is not 1, but 1.0 is."""
    if isinstance(value, dict):
        return frozenset((name, _hashable(item)) for name, item in value.items())
    if isinstance(value, list):
        return tuple(map(_hashable, value))
    return (bool, value) if isinstance(value, bool) else value


def _keywords_of(schema: Any, path: Path) -> Iterator[tuple[Path, str, Any]]:
    """Yield every place that may be a keyword with its value, wherever it stands: rather too many than too few."""
    if isinstance(schema, dict):
        for name, value in schema.items():
            is_keyword = isinstance(value, dict if name == "patternProperties" else str)
            if name not in _PATTERN_KEYWORDS or is_keyword:
                yield (*path, name), name, value
            yield from _keywords_of(value, (*path, name))
    elif isinstance(schema, list):
        for place, value in enumerate(schema):
            yield from _keywords_of(value, (*path, place))


def _refuse_wrong_pattern(pattern: str, path: Path) -> None:
    try:
        compiled(pattern)
    except WrongPattern as error:
        raise WrongSchema(path) from error
