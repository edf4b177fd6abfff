"""Who calls."""

from starlette.types import Scope

from app.api.headers import header
from app.ports import RunKey

DEFAULT_TENANT = "default"
CREDENTIALS = (b"authorization", b"x-api-key")


def tenant_of(scope: Scope) -> str:  # noqa: ARG001 - keys will be read from the scope
    """Return the tenant that this request acts for; without configured keys there is one."""
    return DEFAULT_TENANT


def run_key(scope: Scope, run_id: str) -> RunKey:
    """Return the key of a run as this caller may know it."""
    return RunKey(tenant_of(scope), run_id)


def caller_of(scope: Scope) -> bytes:
    """Return what tells this caller from others: the credential it sent, else its address. A secret, perhaps."""
    for name in CREDENTIALS:
        if credential := header(scope, name):
            return name + b"\0" + credential
    client = scope.get("client")
    return b"" if client is None else str(client[0]).encode()
