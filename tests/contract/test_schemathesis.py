"""Schemathesis, all checks, against the running app."""

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.config import SchemathesisConfig

from app.api.openapi import document
from tests.contract.running import RunningApp

# A body that fits its schema may still name a model that is not configured, the other scorer's options, or a cursor
# that no list gave: 422. It is never malformed (400) or mislabelled (415). A text beyond its limit is also a body
# beyond its own: 413. A scorer that is there may not be the caller's to delete: 403.
CONFIG = SchemathesisConfig.from_dict(
    {
        "checks": {
            "positive_data_acceptance": {"expected-statuses": ["2xx", "3xx", "403", "404", "409", "413", "422"]},
            "negative_data_rejection": {"expected-statuses": ["400", "404", "405", "413", "415", "422"]},
        }
    }
)

schema = schemathesis.openapi.from_dict(document(), config=CONFIG)


@schema.parametrize()
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_operation_keeps_its_word(case: schemathesis.Case, api: RunningApp) -> None:
    case.call_and_validate(base_url=api.url)
