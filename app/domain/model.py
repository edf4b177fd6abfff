"""The base of everything that crosses the wire: snake_case inside, camelCase outside."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError


class Model(BaseModel):
    """Immutable wire object; unknown keys, NaN and infinities are refused."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
        serialize_by_alias=True,
        ser_json_inf_nan="null",
    )


MAX_TEXT = 1_000_000


def refuse_nul(text: str) -> str:
    """Return text unchanged, or refuse NUL, which no client could have meant; pydantic refuses lone surrogates."""
    if "\x00" in text:
        raise PydanticCustomError("nul_character", "Remove the NUL character from this text")
    return text


def refuse_blank(text: str) -> str:
    """Return text unchanged, or refuse it when nothing in it can be read."""
    if not text.strip():
        raise PydanticCustomError("blank", "Send a text that is not blank")
    return text


Text = Annotated[str, StringConstraints(max_length=MAX_TEXT), AfterValidator(refuse_nul)]
ShortText = Annotated[str, StringConstraints(max_length=512), AfterValidator(refuse_nul)]
NonBlankText = Annotated[Text, AfterValidator(refuse_blank)]
