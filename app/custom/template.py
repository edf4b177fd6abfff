"""Instructions with Liquid in them: they name texts and never hold them.

A text in a template is its name: `{{ output }}` becomes `output` in backquotes, and the text itself stands once, as
data, inside the fence, under that name. So no text of a stranger is ever seen by the template engine or stands among
the instructions. Numbers, booleans and labels, which are of the definition's own making, stand where they are named.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from liquid import Environment, StrictUndefined
from liquid.builtin import content, illegal, output
from liquid.builtin.expressions.primitive import RangeLiteral
from liquid.builtin.filters.misc import default
from liquid.builtin.tags import case_tag, comment_tag, for_tag, if_tag, unless_tag
from liquid.context import RenderContext
from liquid.exceptions import LiquidError
from liquid.expression import Expression
from liquid.template import BoundTemplate

MOST_ITERATIONS: Final = 1_000
MOST_BYTES: Final = 40_000
MOST_IN_MARKS: Final = 300
_TAG_WORDS: Final = frozenset(
    {"if", "elsif", "else", "endif", "unless", "endunless", "case", "when", "endcase", "for", "endfor", "break"}
    | {"continue", "comment", "endcomment"}
)
_FORMS: Final = (
    "Use {{ name }} with `default` as the only filter, and the tags if, unless, case, for (over lists) and comment"
)


class WrongTemplate(ValueError):
    """The template can't be used; the message says what to do."""


class Name:
    """A text, printed as its name; it can be tested for and compared."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        self._text = text

    def __str__(self) -> str:
        return f"`{self._name}`"

    def __eq__(self, other: object) -> bool:
        return self._text == other


class NamedList(Sequence[Any]):
    """A list, printed as its name; it can be looped over."""

    def __init__(self, name: str, items: Sequence[Any]) -> None:
        self._name = name
        self._items = [named(f"{name}[{place}]", item) for place, item in enumerate(items)]

    def __str__(self) -> str:
        return f"`{self._name}`"

    def __getitem__(self, place: Any) -> Any:
        return self._items[place]

    def __len__(self) -> int:
        return len(self._items)


class NamedObject:
    """An object, printed as its name; its properties are found by theirs.

    `is_open` objects have every property: those that are not there are nil.
    """

    def __init__(self, name: str, values: Mapping[str, Any], *, is_open: bool = False) -> None:
        self._name = name
        self._values = {key: named(f"{name}.{key}", value) for key, value in values.items()}
        self._is_open = is_open

    def __str__(self) -> str:
        return f"`{self._name}`"

    def __getitem__(self, key: Any) -> Any:
        return self._values.get(key) if self._is_open else self._values[key]


class Plain(str):
    """A label: a text of the definition's own, which stands where it is named."""

    __slots__ = ()


def named(name: str, value: Any) -> Any:
    """Return a value as templates see it."""
    if isinstance(value, str) and not isinstance(value, Plain):
        return Name(name, value)
    if isinstance(value, Mapping):
        return NamedObject(name, value)
    if isinstance(value, list | tuple):
        return NamedList(name, value)
    return value


class Template:
    """Instructions, parsed.

    `mentioned` are the variables in it, each with the property that it names first: ("metadata", "channel"),
    ("output", None).
    """

    def __init__(self, text: str, known: Iterable[str]) -> None:
        """Parse a text that may mention these variables; raises WrongTemplate."""
        known = tuple(known)
        _refuse_odd_marks(text)
        try:
            self._template = _environment().from_string(text)
            analysis = self._template.analyze(include_partials=False)
            _refuse_ranges(self._template)
        except (LiquidError, RecursionError):
            raise WrongTemplate(f"This is no Liquid template that can be used. {_FORMS}") from None
        if not analysis.globals.keys() <= set(known):
            raise WrongTemplate(f"Name only variables that there are in this step: {', '.join(known)}")
        self.mentioned = frozenset(
            (name, _first_property(variable.segments)) for name, found in analysis.globals.items() for variable in found
        )

    def rendered(self, variables: Mapping[str, Any]) -> str:
        """Return the text with these variables' names in it; raises WrongTemplate for properties that there are not."""
        try:
            return self._template.render(**variables).strip()
        except (LiquidError, RecursionError, TypeError, ValueError, OverflowError):
            raise WrongTemplate(
                "Name only properties that the variables have; texts are named, tested for and compared, and loops end "
                f"after {MOST_ITERATIONS:,} rounds"
            ) from None


def _refuse_odd_marks(text: str) -> None:
    """Refuse what the library's lexer takes minutes for: marks that do not end, or not soon; and unknown tags."""
    end = 0
    while (begin := min((at for at in (text.find("{{", end), text.find("{%", end)) if at >= 0), default=-1)) >= 0:
        close = "}}" if text[begin + 1] == "{" else "%}"
        inside = text[begin + 2 : begin + 2 + MOST_IN_MARKS].partition(close)
        if not inside[1] or "{{" in inside[0] or "{%" in inside[0]:
            raise WrongTemplate(f"End every {{{{ and {{% within {MOST_IN_MARKS} characters. {_FORMS}")
        words = inside[0].removeprefix("-").removesuffix("-").split()
        if close == "%}" and (not words or words[0] not in _TAG_WORDS):
            raise WrongTemplate(f"There is no such tag here. {_FORMS}")
        end = begin + 2 + len(inside[0]) + 2


class _Environment(Environment):
    loop_iteration_limit = MOST_ITERATIONS
    output_stream_limit = MOST_BYTES
    block_nesting_limit = 10

    def setup_tags_and_filters(self, *, extra: bool = False) -> None:  # noqa: ARG002
        """Know only what can't load, repeat without end or make longer: see docs/decisions/0017."""
        for tag in (
            content.Literal,
            output.Output,
            illegal.Illegal,
            if_tag.IfTag,
            unless_tag.UnlessTag,
            case_tag.CaseTag,
            for_tag.ForTag,
            for_tag.BreakTag,
            for_tag.ContinueTag,
            comment_tag.CommentTag,
        ):
            self.add_tag(tag)
        self.add_filter("default", default)


@cache
def _environment() -> Environment:
    return _Environment(undefined=StrictUndefined)


def _refuse_ranges(template: BoundTemplate) -> None:
    context = RenderContext(template)
    nodes = list(template.nodes)
    while nodes:
        node = nodes.pop()
        nodes += node.children(context, include_partials=False)
        expressions = list(node.expressions())
        while expressions:
            expression: Expression = expressions.pop()
            if isinstance(expression, RangeLiteral):
                raise WrongTemplate(f"Loop over lists, not over ranges of numbers. {_FORMS}")
            expressions += expression.children()


def _first_property(segments: Sequence[Any]) -> str | None:
    return segments[1] if len(segments) > 1 and isinstance(segments[1], str) else None
