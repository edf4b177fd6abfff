"""`python -m tests.stub_judge`: serve the stub until SIGTERM or Ctrl-C; it prints its URL and its control's."""

import argparse
import asyncio
import signal

import uvloop

from tests.stub_judge.server import running_stub


async def serve(host: str, port: int, delay_ms: float) -> None:
    """Serve until told to stop."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with running_stub(host, port, delay_ms) as stub:
        print(stub.url, stub.control_url, flush=True)
        await stop.wait()


def main() -> None:
    """Read the command line and serve."""
    arguments = argparse.ArgumentParser(prog="tests.stub_judge", description="A scriptable OpenAI-compatible judge")
    arguments.add_argument("--host", default="127.0.0.1")
    arguments.add_argument("--port", type=int, default=0, help="0 (default) takes a free one")
    arguments.add_argument("--delay-ms", type=float, default=0.0, help="what every answer takes")
    chosen = arguments.parse_args()
    uvloop.run(serve(chosen.host, chosen.port, chosen.delay_ms))


if __name__ == "__main__":
    main()
