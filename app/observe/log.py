"""Logs: one JSON object a line on stderr, events in the past tense, and no text of callers or judges."""

import logging
import sys
import traceback
from types import TracebackType
from typing import Any, TextIO

import structlog
from structlog.typing import Processor

from app.domain.errors import AssayError

MAX_FRAMES = 20
MAX_DEPTH = 5

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]


def configure_logging(level: str, stream: TextIO | None = None) -> None:
    """Send structlog's events and the standard library's records, uvicorn's included, through the same processors."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    closing: list[Processor] = [
        structlog.processors.ExceptionRenderer(describe_exception),
        structlog.processors.JSONRenderer(),
    ]
    threshold = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[*shared, *closing],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.WriteLoggerFactory(stream or sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *closing],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    # Libraries' debug records may hold requests and replies; httpx names the URL of every call at info.
    root.setLevel(max(threshold, logging.INFO))
    logging.getLogger("httpx").setLevel(logging.WARNING)


def describe_exception(exc_info: ExcInfo) -> dict[str, Any]:
    """Return an exception as types and places; its message only where it is known to hold no user text."""
    return _describe(exc_info[1], depth=0)


def _describe(error: BaseException, depth: int) -> dict[str, Any]:
    frames = traceback.extract_tb(error.__traceback__)[-MAX_FRAMES:]
    described: dict[str, Any] = {
        "type": type(error).__qualname__,
        "frames": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames],
    }
    if isinstance(error, AssayError):
        described["detail"] = error.detail
    elif isinstance(error, OSError):
        described["detail"] = error.strerror or ""
    if depth == MAX_DEPTH:
        return described
    if isinstance(error, BaseExceptionGroup):
        described["exceptions"] = [_describe(inner, depth + 1) for inner in error.exceptions[:MAX_DEPTH]]
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        described["cause"] = _describe(cause, depth + 1)
    return described
