"""`python -m tests.faults.dies_at_start`: a worker that dies when it has taken its first jobs and begun none."""

import os
from typing import Never

from worker.__main__ import main
from worker.executions import Executions

EXIT_STATUS = 9


def die(*_: object, **__: object) -> Never:
    os._exit(EXIT_STATUS)


assert callable(Executions.start)
Executions.start = die  # type: ignore[method-assign]

if __name__ == "__main__":
    main()
