"""Query strings: every parameter is known, given once and valid, or the request is refused."""

import re
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import parse_qsl

from pydantic import AwareDatetime, BeforeValidator, Field, StringConstraints, ValidationError
from pydantic_core import PydanticCustomError
from starlette.types import Scope

from app.domain.errors import Fault, InvalidRequest
from app.domain.faults import faults_of, pointer
from app.domain.model import Model, ShortText
from app.domain.request import MetadataKey
from app.domain.run import RunStatus
from app.ports import ListQuery

MAX_PARAMETERS: Final = 64
MAX_WAIT_S: Final = 60
MAX_LIMIT: Final = 100
FLAGS: Final = frozenset({"true", "false"})
METADATA: Final = "metadata."

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def _digits(value: Any) -> Any:
    if isinstance(value, str) and not (value.isascii() and value.isdigit() and len(value) <= 9):
        raise PydanticCustomError("int_parsing", "Send a whole number in digits")
    return value


def _rfc3339(value: Any) -> Any:
    if isinstance(value, str) and not _RFC3339.fullmatch(value):
        raise PydanticCustomError(
            "datetime_parsing", "Send an RFC 3339 time such as 2026-01-31T12:00:00Z (write + as %2B)"
        )
    return value


def _flag(value: Any) -> Any:
    if isinstance(value, str) and value not in FLAGS:
        raise PydanticCustomError("bool_parsing", "Send true or false")
    return value


Flag = Annotated[bool, BeforeValidator(_flag)]
Wait = Annotated[int, Field(ge=0, le=MAX_WAIT_S), BeforeValidator(_digits)]
Limit = Annotated[int, Field(ge=1, le=MAX_LIMIT), BeforeValidator(_digits)]
Time = Annotated[AwareDatetime, BeforeValidator(_rfc3339)]
Include = Annotated[str, StringConstraints(pattern=r"^[A-Za-z,]{0,200}$")]


class RunParameters(Model):
    """Parameters of whatever answers with runs."""

    include: Include | None = Field(
        default=None, description="Comma-separated; a list that does not name `prompts` leaves the prompts out"
    )

    @property
    def prompts(self) -> bool:
        """Whether the prompts are wanted."""
        return self.include is None or "prompts" in self.include.split(",")


class WaitParameters(RunParameters):
    """Parameters of GET /v1/runs/{runId}."""

    wait: Wait = Field(default=0, description="Answer when the run has ended, at the latest after this many seconds")


class ListParameters(RunParameters):
    """Parameters of GET /v1/runs; `metadata.KEY=VALUE` filters are gathered in `metadata`."""

    scorer_id: Annotated[ShortText, StringConstraints(max_length=64)] | None = None
    status: RunStatus | None = None
    created_after: Time | None = None
    created_before: Time | None = None
    limit: Limit = 20
    cursor: ShortText | None = None
    metadata: dict[MetadataKey, ShortText] = Field(default_factory=dict, max_length=16)

    def query(self, tenant: str) -> ListQuery:
        """Return what the store is asked."""
        return ListQuery(
            tenant=tenant,
            scorer_id=self.scorer_id,
            status=self.status,
            created_after=self.created_after,
            created_before=self.created_before,
            metadata=tuple(self.metadata.items()),
            limit=self.limit,
            cursor=self.cursor,
        )


class EventParameters(Model):
    """Parameters of GET /v1/runs/{runId}/events."""

    last_event_id: Annotated[ShortText, StringConstraints(max_length=64)] | None = Field(
        default=None, description="As the header Last-Event-ID, for clients that can't set headers"
    )


class NoParameters(Model):
    """For operations that take none."""


P = TypeVar("P", bound=Model)


def read_query(scope: Scope, model: type[P]) -> P:
    """Return the query string as a model; raises InvalidRequest with pointers such as `#/limit`."""
    raw: bytes = scope["query_string"]
    if not raw:
        return model()
    fields = _fields(raw, gather_metadata="metadata" in model.model_fields)
    try:
        return model.model_validate(fields, by_alias=True, by_name=False)
    except ValidationError as error:
        raise _refusal(faults_of(error, fields)) from None


def _fields(raw: bytes, *, gather_metadata: bool) -> dict[str, Any]:
    try:
        pairs = parse_qsl(
            raw.decode("latin-1"), keep_blank_values=True, max_num_fields=MAX_PARAMETERS, errors="replace"
        )
    except ValueError:
        raise _refusal(
            (Fault(pointer="#", code="too_long", detail=f"Send at most {MAX_PARAMETERS} parameters"),)
        ) from None
    fields: dict[str, Any] = {}
    metadata: dict[str, str] = {}
    for name, value in pairs:
        is_metadata = gather_metadata and name.startswith(METADATA)
        target, key = (metadata, name.removeprefix(METADATA)) if is_metadata else (fields, name)
        if key in target:
            raise _refusal((Fault(pointer=pointer("#", [name]), code="repeated", detail="Send this parameter once"),))
        target[key] = value
    if metadata:
        fields.setdefault("metadata", metadata)
    return fields


def _refusal(faults: tuple[Fault, ...]) -> InvalidRequest:
    return InvalidRequest("The query string has faults; see errors", faults)
