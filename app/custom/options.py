"""A definition's own options as a model beside the common ones, so that requests are checked like any other's."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, FiniteFloat, StringConstraints, create_model

from app.custom.shape import MAX_NUMBER, Shape
from app.domain.model import Model, refuse_nul
from app.domain.request import Options


class _CommonOptions(Options):
    model_config = ConfigDict(populate_by_name=False)


class _OwnObject(Model):
    model_config = ConfigDict(populate_by_name=False)


def options_model(own: Shape | None) -> type[Options]:
    """Return the model of a scorer's options; those of its own are found under their names by `own_values`."""
    if own is None:
        return Options
    model: type[Options] = create_model("CustomOptions", __base__=_CommonOptions, **_fields(own))
    return model


def own_values(own: Shape | None, options: Options) -> dict[str, Any]:
    """Return the values of a scorer's own options by name."""
    if own is None:
        return {}
    values = options.model_dump(mode="json", by_alias=True)
    return {name: values[name] for name in own.properties}


def taken_names() -> frozenset[str]:
    """Return the names that common options have."""
    return frozenset(str(field.alias) for field in Options.model_fields.values())


def _fields(shape: Shape) -> dict[str, Any]:
    # Numbered fields, since a name like "copy" or "model_config" would get in the way of the model's own attributes.
    return {
        f"own_{place}": (_type_of(inner), Field(_default(inner), alias=name, description=inner.description))
        for place, (name, inner) in enumerate(shape.properties.items())
    }


def _default(shape: Shape) -> Any:
    return ... if shape.default is None else shape.default


def _type_of(shape: Shape) -> Any:
    match shape.kind:
        case "object":
            return create_model("CustomOption", __base__=_OwnObject, **_fields(shape))
        case "array":
            return Annotated[list[_type_of(shape.item)], Field(min_length=shape.least, max_length=shape.most)]  # type: ignore[misc]
        case "label":
            return Literal[shape.labels]
        case "text":
            return Annotated[str, StringConstraints(max_length=shape.most), AfterValidator(refuse_nul)]
        case "boolean":
            return bool
    number = int if shape.kind == "integer" else FiniteFloat
    low = -MAX_NUMBER if shape.low is None else shape.low
    return Annotated[number, Field(ge=low, le=MAX_NUMBER if shape.high is None else shape.high)]
