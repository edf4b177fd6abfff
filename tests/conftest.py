import hypothesis
import pytest

# A busy machine is no fault of the code: pytest-timeout bounds what never ends.
hypothesis.settings.register_profile("assay", deadline=None)
hypothesis.settings.load_profile("assay")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
