"""Whether everything that `assay up` started can be used."""

from typing import Self

import httpx

from app.cli.plan import Plan

LOOK_TIMEOUT_S = 3.0


class Readiness:
    """Asks the local judge for its health and the API for its checks, over loopback and past any proxy.

    Without a judge to expect, a red judge check is no reason to wait.
    """

    def __init__(self, plan: Plan, *, judge_expected: bool) -> None:
        self._plan = plan
        self._judge_expected = judge_expected
        self._client = httpx.AsyncClient(trust_env=False, timeout=LOOK_TIMEOUT_S)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def look(self) -> bool:
        """Tell whether the judge has loaded its model and every check of the API is green, workers included."""
        try:
            return await self._judge_serves() and await self._checks_pass()
        except (httpx.TransportError, ValueError, LookupError):
            return False

    async def _judge_serves(self) -> bool:
        if self._plan.judge_url is None:
            return True
        answer = await self._client.get(f"{self._plan.judge_url}/health")
        return answer.is_success

    async def _checks_pass(self) -> bool:
        answer = await self._client.get(f"{self._plan.url}/readyz")
        checks = {check["name"]: check["ok"] for check in answer.json()["checks"]}
        if not self._plan.workers:
            checks.pop("workers", None)
        if not self._judge_expected:
            checks.pop("judge", None)
        return bool(checks) and all(checks.values())
