"""Who calls."""

from starlette.types import Scope

from app.ports import RunKey

DEFAULT_TENANT = "default"


def tenant_of(scope: Scope) -> str:  # noqa: ARG001 - keys will be read from the scope
    """Return the tenant that this request acts for; without configured keys there is one."""
    return DEFAULT_TENANT


def run_key(scope: Scope, run_id: str) -> RunKey:
    """Return the key of a run as this caller may know it."""
    return RunKey(tenant_of(scope), run_id)
