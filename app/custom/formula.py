"""The formula: a CEL expression over step results, checked when it is saved and bounded when it runs.

Google's CEL for C++ checks every type and name, gives up after 10,000 iterations over all loops and nests 32 levels
deep at most. Only the functions that are listed below exist; what could still grow is refused by
`app.custom.formula_tree`.
"""

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from cel_expr_python import cel

from app.custom.formula_tree import NOTHING, Unbounded, refuse_unbounded
from app.custom.formula_types import MessageTypes
from app.custom.shape import Shape

MAX_UNITS: Final = 1_000
"""Verdicts that a formula is given: the library's lists take quadratic time, hundredths of a second for so many."""

_LIBRARY: Final = """
name: formula
stdlib:
  include_functions:
    - {name: "_+_", overloads: [{id: add_int64}, {id: add_double}, {id: add_list}]}
    - {name: "_-_", overloads: [{id: subtract_int64}, {id: subtract_double}]}
    - {name: "_*_", overloads: [{id: multiply_int64}, {id: multiply_double}]}
    - {name: "_/_", overloads: [{id: divide_int64}, {id: divide_double}]}
    - {name: "_%_", overloads: [{id: modulo_int64}]}
    - {name: "-_"}
    - {name: "!_"}
    - {name: "_&&_"}
    - {name: "_||_"}
    - {name: "_?_:_"}
    - {name: "_==_"}
    - {name: "_!=_"}
    - {name: "_<_"}
    - {name: "_<=_"}
    - {name: "_>_"}
    - {name: "_>=_"}
    - {name: "_[_]"}
    - {name: "@in"}
    - {name: "@not_strictly_false"}
    - {name: size}
    - {name: double}
    - {name: int}
"""
_NULL_VALUE: Final = -sys.float_info.max
_WOBBLE: Final = 1e-9
"""How far beyond 0 or 1 a sum of weights may end up by rounding."""

_NULL: Final = re.compile(
    r"//[^\n]*|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|(?P<null>(?<![\w.])null(?!\w))", re.DOTALL
)
_PLACE: Final = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")
_APPLIED_TO: Final = re.compile(r"found no matching overload for '.*' applied to '\((.*)\)'")


class WrongFormula(ValueError):
    """The formula can't be used; the message says where and what to do, and repeats no text of it."""


class FormulaFailed(Exception):
    """The formula gave nothing that is a score; the message says what."""


class Formula:
    """A compiled formula.

    `objects` are the variables that hold an object, `verdict` is the shape of the verdicts when there are any;
    `segments` is always there: how many segments the output has.
    """

    def __init__(self, text: str, objects: Mapping[str, Shape], verdict: Shape | None) -> None:
        shapes = dict(objects) | ({} if verdict is None else {"verdicts": verdict})
        self._types = MessageTypes(shapes)
        self._lists = frozenset({"verdicts"} if verdict is not None else ())
        variables = {"segments": cel.Type.INT, NOTHING: cel.Type.DOUBLE}
        for name, message in self._types.names.items():
            kind = cel.Type(message)
            variables[name] = cel.Type.List(kind) if name in self._lists else kind
        environment = cel.NewEnv(
            self._types.pool, cel.NewEnvConfigFromYaml(_LIBRARY), variables=variables, functions=list(_functions())
        )
        self._expression = _checked(environment, text)

    def value(self, variables: Mapping[str, Any], segments: int) -> float | None:
        """Return the score (0..1) of these step results, or None for nothing to score; raises FormulaFailed."""
        bound: dict[str, Any] = {"segments": segments, NOTHING: _NULL_VALUE}
        for name in self._types.names:
            value = variables[name]
            if name in self._lists:
                bound[name] = [self._types.message(name, item) for item in value]
            else:
                bound[name] = self._types.message(name, value)
        try:
            return _score(self._expression.eval(data=bound))
        except RuntimeError:
            raise FormulaFailed("it takes more than 10,000 steps of its loops") from None


def _checked(environment: Any, text: str) -> Any:
    try:
        # null is replaced by a name of the same length, so that places in it stay the same.
        expression = environment.compile(_NULL.sub(lambda found: NOTHING if found["null"] else found[0], text))
    except RuntimeError as error:
        raise WrongFormula(_told(str(error))) from None
    if expression.return_type() not in (cel.Type.DOUBLE, cel.Type.INT):
        raise WrongFormula("Give a number from 0 to 1, or null when there is nothing to score")
    try:
        refuse_unbounded(expression.serialize())
    except Unbounded as error:
        raise WrongFormula(str(error)) from None
    return expression


def _told(message: str) -> str:
    """Return what the library complains of, without the formula's own words."""
    found = _PLACE.search(message)
    if found is None:
        return "Write a shorter formula, nested less deeply"
    line, column, complaint = found.groups()
    if applied := _APPLIED_TO.match(complaint):
        what = f"does not take ({applied[1]}); double(...) and int(...) convert numbers"
    elif "undeclared reference" in complaint:
        what = "there is no such name or function here"
    elif "undefined field" in complaint:
        what = "there is no such property in the schema"
    else:
        what = "this is no CEL expression"
    return f"Line {line}, column {column}: {what}"


def _score(result: Any) -> float | None:
    value = result.plain_value()
    if result.type() == cel.Type.ERROR:
        raise FormulaFailed("it could not be computed (a division by zero, an index or a key that there is not)")
    if value == _NULL_VALUE:
        return None
    if not -_WOBBLE <= value <= 1.0 + _WOBBLE:
        raise FormulaFailed("it gave a number that is not from 0 to 1")
    return float(min(1.0, max(0.0, value)))


@cache
def _functions() -> tuple[Any, ...]:
    """Return the functions that CEL's own lack: a share of counts, and what is taken of a list of doubles."""
    of_list: dict[str, Callable[[Sequence[float]], float]] = {
        "sum": math.fsum,
        "mean": lambda values: math.fsum(values) / len(values),
        "min": min,
        "max": max,
    }
    numbers = cel.Type.List(cel.Type.DOUBLE)
    share = cel.Overload(
        "share", cel.Type.DOUBLE, [cel.Type.INT, cel.Type.INT], is_member=False, impl=lambda part, whole: part / whole
    )
    return (
        cel.FunctionDecl("share", [share]),
        *(
            cel.FunctionDecl(name, [cel.Overload(name, cel.Type.DOUBLE, [numbers], is_member=True, impl=function)])
            for name, function in of_list.items()
        ),
    )
