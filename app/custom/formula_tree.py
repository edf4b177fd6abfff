"""What a formula that passed the type checker may still not do, found in its checked tree.

The checker's tree is a protobuf message (cel.expr.CheckedExpr). No package brings its definition along, so that the
few fields that matter are read by their numbers.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.empty_pb2 import Empty
from google.protobuf.unknown_fields import UnknownFieldSet

NOTHING: Final = "_nil"
"""Stands for null in a compiled formula: CEL has no type for a number that may be null."""

_TYPES, _TREE = 3, 4
_KEY, _VALUE = 1, 2
_ID, _IDENT, _SELECT, _CALL, _LIST, _STRUCT, _LOOP = 2, 4, 5, 6, 7, 8, 9
_FUNCTION, _ARGUMENTS = 2, 3
_PRIMITIVE, _LIST_TYPE, _MAP_TYPE, _MESSAGE = 3, 6, 7, 9
_BYTES: Final = 6
_COMPARISONS: Final = frozenset({b"_==_", b"_!=_", b"@in"})
MAX_NODES: Final = 400
"""Names, values and operations of a formula, those that its loops are made of included."""

Fields = dict[int, list[Any]]


class Unbounded(ValueError):
    """The formula does something that could take too much time or memory; the message says what to do instead."""


def refuse_unbounded(serialized: bytes) -> None:
    """Refuse what would get around the limit on iterations; raises Unbounded.

    Lists are joined by the library's own macros alone, since `[a + a].map(b, b + b)` and so on doubles with every few
    characters; for the same reason there are no lists of lists. Lists and objects are not compared, which takes as long
    as they are. Values whose type is only known when the formula runs are refused, since nothing can be told of them
    before. `null` is the formula's result or nothing.
    """
    checked = _fields(AnyMessage.FromString(serialized).value)
    types = {entry[_KEY][0]: _fields(entry[_VALUE][0]) for entry in map(_fields, checked[_TYPES])}
    if len(types) > MAX_NODES:
        raise Unbounded(f"Use at most {MAX_NODES} names, values and operations")
    for kind in types.values():
        _refuse_loose_type(kind)
    _refuse_in(checked[_TREE][0], types, may_be_null=True)


def _refuse_loose_type(kind: Fields) -> None:
    parts = [kind]
    for composite in (_LIST_TYPE, _MAP_TYPE):
        if composite in kind:
            parts = [_fields(part) for (part,) in _fields(kind[composite][0]).values()]
    for part in parts:
        if not {_PRIMITIVE, _MESSAGE} & part.keys() or part.get(_PRIMITIVE) == [_BYTES]:
            raise Unbounded(
                "Use numbers, texts, booleans and lists or maps of them, each list of one kind and none within another"
            )


def _refuse_in(tree: bytes, types: Mapping[int, Fields], *, may_be_null: bool) -> None:
    node = _fields(tree)
    if _IDENT in node and _name(node[_IDENT][0]) == NOTHING and not may_be_null:
        raise Unbounded("Give null only as the result, as in `size(verdicts) == 0 ? null : ...`")
    if _STRUCT in node and 1 in _fields(node[_STRUCT][0]):
        raise Unbounded("Do not make messages")
    call = _fields(node[_CALL][0]) if _CALL in node else {}
    function = call[_FUNCTION][0] if call else b""
    if function == b"_+_" and _LIST_TYPE in types[node[_ID][0]] and not _is_of_a_macro(call):
        raise Unbounded("Do not join lists; count them apart")
    if function in _COMPARISONS and _PRIMITIVE not in _type_of(call[_ARGUMENTS][0], types):
        raise Unbounded("Compare numbers, texts and booleans only")
    for place, child in enumerate(_children(node, call)):
        is_branch = function == b"_?_:_" and place > 0
        _refuse_in(child, types, may_be_null=may_be_null and is_branch)


def _type_of(tree: bytes, types: Mapping[int, Fields]) -> Fields:
    return types[_fields(tree)[_ID][0]]


def _is_of_a_macro(call: Fields) -> bool:
    first = _fields(call[_ARGUMENTS][0])
    # "@" begins no name that an author can write.
    return _IDENT in first and _name(first[_IDENT][0]).startswith("@")


def _children(node: Fields, call: Fields) -> Iterator[bytes]:
    yield from call.get(1, [])
    yield from call.get(_ARGUMENTS, [])
    if _SELECT in node:
        yield from _fields(node[_SELECT][0])[1]
    if _LIST in node:
        yield from _fields(node[_LIST][0]).get(1, [])
    if _STRUCT in node:
        for entry in map(_fields, _fields(node[_STRUCT][0]).get(2, [])):
            yield from (*entry[3], *entry[4])
    if _LOOP in node:
        loop = _fields(node[_LOOP][0])
        yield from (loop[part][0] for part in (2, 4, 5, 6, 7))


def _name(ident: bytes) -> str:
    return str(_fields(ident)[1][0].decode())


def _fields(message: bytes) -> Fields:
    found: Fields = {}
    for field in UnknownFieldSet(Empty.FromString(message)):  # type: ignore[attr-defined]
        found.setdefault(field.field_number, []).append(field.data)
    return found
