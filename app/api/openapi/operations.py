"""All operations of the API, in the order in which people read them."""

from app.api.openapi.run_operations import RUN_OPERATIONS
from app.api.openapi.scoring_operations import SCORING_OPERATIONS
from app.api.openapi.service_operations import SCORER_OPERATIONS, SERVICE_OPERATIONS

OPERATIONS = (*SCORING_OPERATIONS, *RUN_OPERATIONS, *SCORER_OPERATIONS, *SERVICE_OPERATIONS)
