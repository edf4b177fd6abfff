"""What can be wrong with a request before anything of it is understood."""

from collections.abc import Mapping

from app.domain.errors import CallerError, ErrorCode


class TransportError(CallerError):
    """The HTTP message can't be taken; `headers` go with the answer."""

    def __init__(self, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.headers = dict(headers or {})


class MalformedJson(TransportError):
    """The body is not one JSON document in UTF-8."""

    code = ErrorCode.MALFORMED_JSON
    title = "The body is not JSON"


class UnsupportedMediaType(TransportError):
    """The body is labelled as something else than JSON in UTF-8."""

    code = ErrorCode.UNSUPPORTED_MEDIA_TYPE
    title = "The media type is not supported"


class ContentTooLarge(TransportError):
    """The body is larger than the server takes."""

    code = ErrorCode.CONTENT_TOO_LARGE
    title = "The body is too large"


class BodyTooSlow(TransportError):
    """The body did not arrive in time (408)."""

    code = ErrorCode.INVALID_REQUEST
    title = "The body did not arrive in time"


class MethodNotAllowed(TransportError):
    """The path exists, the method does not."""

    code = ErrorCode.METHOD_NOT_ALLOWED
    title = "Method not allowed"
