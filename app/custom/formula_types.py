"""Types for a formula's variables: each object of a schema is a message type, so its names and kinds are checked."""

from collections.abc import Mapping
from typing import Any, Final

from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor_pool import DescriptorPool

from app.custom.shape import Shape

_FIELD: Final = descriptor_pb2.FieldDescriptorProto
_PACKAGE: Final = "scorer"
_SCALARS: Final = {
    "text": _FIELD.TYPE_STRING,
    "label": _FIELD.TYPE_STRING,
    "number": _FIELD.TYPE_DOUBLE,
    "integer": _FIELD.TYPE_INT64,
    "boolean": _FIELD.TYPE_BOOL,
}


class MessageTypes:
    """The message types of some objects, by the names of the variables that hold them."""

    def __init__(self, objects: Mapping[str, Shape]) -> None:
        self._file = descriptor_pb2.FileDescriptorProto(name="scorer.proto", package=_PACKAGE, syntax="proto3")
        names = {variable: self._declare(shape) for variable, shape in objects.items()}
        self.pool = DescriptorPool()
        self.pool.AddSerializedFile(self._file.SerializeToString())
        self.names = {variable: f"{_PACKAGE}.{name}" for variable, name in names.items()}
        self._classes = {
            variable: message_factory.GetMessageClass(self.pool.FindMessageTypeByName(name))
            for variable, name in self.names.items()
        }

    def message(self, variable: str, value: Mapping[str, Any]) -> Any:
        """Return a value, of its variable's shape, as a message."""
        return self._classes[variable](**value)

    def _declare(self, shape: Shape) -> str:
        message = self._file.message_type.add(name=f"Object{len(self._file.message_type)}")
        for number, (name, inner) in enumerate(shape.properties.items(), 1):
            is_list = inner.kind == "array"
            value = inner.item if is_list else inner
            field = message.field.add(
                name=name, number=number, label=_FIELD.LABEL_REPEATED if is_list else _FIELD.LABEL_OPTIONAL
            )
            if value.kind == "object":
                field.type, field.type_name = _FIELD.TYPE_MESSAGE, f".{_PACKAGE}.{self._declare(value)}"
            else:
                field.type = _SCALARS[value.kind]
        return str(message.name)
