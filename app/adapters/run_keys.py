"""Names of the store's keys and indexes, and the cursors that point into the indexes."""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, unquote

from app.domain.errors import Fault, InvalidRequest
from app.domain.request import MetadataValue
from app.domain.run import Run
from app.ports import ListQuery, RunKey

CHANNEL = "assay:changed"
STEP = b" step"
FENCE_KEY = "assay:fence-key"
DUE = "assay:due"
SWEEPING = "assay:sweeping"
WRITABLE = "assay:writable"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST_US = 10**16 - 1
_MEMBER = re.compile(r"[0-9]{16}:[A-Za-z0-9_-]{1,64}")
_RUN = re.compile(r"assay:\{([^{}]*)\}:run:([A-Za-z0-9_-]{1,64})")
_CHECK_BYTES = 6


def home(tenant: str) -> str:
    """Return what all keys of a tenant begin with."""
    return f"assay:{{{quote(tenant, safe='')}}}:"


def run_keys(key: RunKey) -> list[str]:
    """Return the keys of the run, of its request and of its events."""
    base = home(key.tenant)
    return [f"{base}{kind}:{key.run_id}" for kind in ("run", "request", "events")]


def key_of(run: str) -> RunKey | None:
    """Return whose key this is, of those that run_keys names first; None when it is no run's."""
    found = _RUN.fullmatch(run)
    return None if found is None else RunKey(unquote(found[1]), found[2])


def changed_message(key: RunKey) -> bytes:
    """Return what is published on CHANNEL when the run's status changes; a step adds STEP to it."""
    return f"{home(key.tenant)}{key.run_id}".encode()


def idempotency_record(tenant: str, idempotency_key: str) -> str:
    """Return the key that remembers an Idempotency-Key, which is a caller's text and kept as a digest only."""
    return f"{home(tenant)}idempotency:{_digest(idempotency_key)}"


def definition_keys(tenant: str, scorer_id: str) -> list[str]:
    """Return the keys of the tenant's own scorers and of this one's versions."""
    base = home(tenant)
    return [f"{base}scorers", f"{base}scorer-versions:{quote(scorer_id, safe='')}"]


def indexes_of(tenant: str, run: Run) -> Iterator[str]:
    """Yield the indexes a run is in for all its life; those by status are the scripts' to keep."""
    base = home(tenant)
    yield f"{base}runs"
    yield _scorer_index(base, run.scorer_id)
    for name, value in run.metadata.items():
        yield _metadata_index(base, name, metadata_text(value))


def indexes_for(query: ListQuery) -> list[str]:
    """Return the indexes whose common members the query asks for."""
    base = home(query.tenant)
    indexes = [_metadata_index(base, name, value) for name, value in query.metadata]
    if query.scorer_id is not None:
        indexes.append(_scorer_index(base, query.scorer_id))
    if query.status is not None:
        indexes.append(f"{base}runs:status:{query.status.value}")
    return list(dict.fromkeys(indexes)) or [f"{base}runs"]


def _scorer_index(base: str, scorer_id: str) -> str:
    return f"{base}runs:scorer:{quote(scorer_id, safe='')}"


def _metadata_index(base: str, name: str, value: str) -> str:
    return f"{base}runs:metadata:{_digest(name, value)}"


def metadata_text(value: MetadataValue) -> str:
    """Return a metadata value as filters spell it: strings as they are, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def member(run: Run) -> str:
    """Return the run's member of every index: microseconds in 16 digits, a colon, its id; the order is the list's."""
    return f"{_microseconds(run.created_at):016d}:{run.run_id}"


def bounds(query: ListQuery) -> tuple[str, str]:
    """Return the range of members a query asks for, upper end first, as ZREVRANGEBYLEX takes it.

    Both filters by time are exclusive. Raises InvalidRequest for a cursor that is not ours.
    """
    uppers = []
    if query.cursor is not None:
        uppers.append(f"({_opened(query.cursor)}")
    if query.created_before is not None:
        uppers.append(f"({_microseconds(query.created_before):016d}")
    # A semicolon comes right after the colon: behind all members of that microsecond.
    lower = "-" if query.created_after is None else f"[{_microseconds(query.created_after):016d};"
    return min(uppers, default="+"), lower


def deadline_ms(run: Run) -> str:
    """Return the run's deadline as Unix time in milliseconds, "" when it has none."""
    return "" if run.deadline_at is None else str((run.deadline_at - _EPOCH) // timedelta(milliseconds=1))


def moment(milliseconds: bytes) -> datetime | None:
    """Return what deadline_ms was made of."""
    return _EPOCH + timedelta(milliseconds=int(milliseconds)) if milliseconds else None


def _microseconds(moment: datetime) -> int:
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return min(max((aware - _EPOCH) // timedelta(microseconds=1), 0), _LATEST_US)


def cursor(last: bytes) -> str:
    """Return the opaque cursor of the page after this member."""
    return base64.urlsafe_b64encode(_check(last) + last).decode().rstrip("=")


def _opened(text: str) -> str:
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    check, last = raw[:_CHECK_BYTES], raw[_CHECK_BYTES:]
    if check != _check(last) or not _MEMBER.fullmatch(last.decode("latin-1")):
        fault = Fault(pointer="#/cursor", code="invalid_cursor", detail="Send nextCursor of an earlier page, unchanged")
        raise InvalidRequest("The cursor is not one that this list gave", (fault,))
    return last.decode()


def _check(last: bytes) -> bytes:
    return hashlib.sha256(last).digest()[:_CHECK_BYTES]


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode(errors="surrogatepass")).hexdigest()[:32]
