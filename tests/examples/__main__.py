"""`python -m tests.examples record` asks a real judge; `python -m tests.examples page` writes docs/examples.md."""

import argparse
import sys
import tempfile
from pathlib import Path

from app.adapters.embedded_valkey import start_valkey
from tests.contract.running import RunningApp
from tests.examples.example import Example, RecordedJudge, lasting, read_examples
from tests.examples.judge import JudgeServer, Recorder
from tests.examples.page import PAGE, page
from tests.examples.service import TIMEOUT_S, example_settings


def record(example: Example, redis_url: str, base_url: str, model: str) -> Example:
    """Return the example with what the judge at base_url replies now and what the service makes of it."""
    recorder = Recorder(base_url)
    with JudgeServer(recorder) as url, RunningApp(example_settings(redis_url, url, model)) as api:
        api.client.timeout = TIMEOUT_S
        answer = api.score(example.scorer, cache="off", **example.request)
    if answer.status_code != 200:
        sys.exit(f"{example.scorer}: {answer.status_code} {answer.json()['detail']}")
    judge = RecordedJudge(model=model, exchanges=[recorder.exchanges[key] for key in sorted(recorder.exchanges)])
    return example.model_copy(update={"judge": judge, "answer": lasting(answer.json())})


def main() -> None:
    """Record, or write the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.examples")
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="ask a judge, and write what it and the service answer")
    recording.add_argument("--base-url", required=True, help="of an OpenAI-compatible endpoint")
    recording.add_argument("--model", required=True, help="provider/name; with provider local no key is needed")
    recording.add_argument("--only", default="", help="these scorers, with commas between")
    commands.add_parser("page", help="write docs/examples.md")
    arguments = parser.parse_args()
    if arguments.command == "record":
        _record_all(arguments.base_url, arguments.model, set(filter(None, arguments.only.split(","))))
    PAGE.write_text(page(read_examples().values()), encoding="utf-8")


def _record_all(base_url: str, model: str, only: set[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        valkey = start_valkey(Path(folder))
        try:
            for example in read_examples().values():
                if not only or example.scorer in only:
                    recorded = record(example, valkey.url, base_url, model)
                    recorded.write()
                    print(example.scorer, recorded.answer and recorded.answer["score"], flush=True)
        finally:
            valkey.stop()


if __name__ == "__main__":
    main()
