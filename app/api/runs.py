"""Runs that exist: get, list, cancel, retry, delete."""

import re
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from app.api.answers import JSON, listing, location_of, represent, run_headers, run_response
from app.api.auth import run_key, tenant_of
from app.api.queries import ListParameters, NoParameters, RunParameters, WaitParameters, read_query
from app.api.state import deps_of
from app.domain.errors import NotFound
from app.domain.request import RUN_ID_PATTERN
from app.ports import RunKey
from app.runs import change, follow

_RUN_ID: Final = re.compile(RUN_ID_PATTERN, re.ASCII)


def key_in_path(request: Request) -> RunKey:
    """Return the key of the run that the path names; raises NotFound for what can't be a run's id."""
    run_id: str = request.path_params["run_id"]
    if not _RUN_ID.fullmatch(run_id):
        raise NotFound("There is no run with this id; an id has 8 to 64 letters, digits, _ or -")
    return run_key(request.scope, run_id)


async def get_run(request: Request) -> Response:
    """Answer with the run in any state."""
    key = key_in_path(request)
    parameters = read_query(request.scope, WaitParameters)
    deps = deps_of(request.scope)
    if parameters.wait:
        stored = await follow.wait_for_run(deps, key, parameters.wait)
    else:
        stored = await follow.get_run(deps, key)
    return run_response(request.scope, stored, parameters)


async def list_runs(request: Request) -> Response:
    """Answer with a page of runs, newest first."""
    parameters = read_query(request.scope, ListParameters)
    page = await follow.list_runs(deps_of(request.scope), parameters.query(tenant_of(request.scope)))
    return listing([represent(body, parameters) for body in page.bodies], page.next_cursor)


async def cancel_run(request: Request) -> Response:
    """Stop a run that has not ended; an ended run stays as it is."""
    key = key_in_path(request)
    parameters = read_query(request.scope, RunParameters)
    stored = await change.cancel_run(deps_of(request.scope), key)
    content = represent(stored.body, parameters)
    return Response(content, 200, run_headers(content, stored.status), JSON)


async def retry_run(request: Request) -> Response:
    """Queue a run again that failed, expired or was cancelled."""
    key = key_in_path(request)
    parameters = read_query(request.scope, RunParameters)
    stored = await change.retry_run(deps_of(request.scope), key)
    content = represent(stored.body, parameters)
    headers = run_headers(content, stored.status) | {"Location": location_of(key.run_id)}
    return Response(content, 202, headers, JSON)


async def delete_run(request: Request) -> Response:
    """Forget a run."""
    key = key_in_path(request)
    read_query(request.scope, NoParameters)
    await change.delete_run(deps_of(request.scope), key)
    return Response(status_code=204)
