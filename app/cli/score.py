"""`assay score`: one text, scored by a running service, as a card in the terminal."""

import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer

from app.cli.card import card
from app.cli.console import Mistake, err, out
from app.cli.plan import url_of
from app.settings import load_settings

CONNECT_TIMEOUT_S = 3.0
POLL_S = 20
READ_TIMEOUT_S = POLL_S + 10.0
LONGEST_WAIT_S = 900.0
PENDING = ("queued", "running")
ENDED_WELL = ("completed", "not_scorable")
DEFAULT_SCORERS = ["bias", "toxicity"]

TextArgument = Annotated[str, typer.Argument(help="The text; `-` reads standard input, `@FILE` a file.")]
ScorerOption = Annotated[list[str], typer.Option("--scorer", "-s", help="Scorer id; give it again for more.")]
InputOption = Annotated[str | None, typer.Option("--input", "-i", help="What the text answers.")]
ContextOption = Annotated[
    list[str] | None, typer.Option("--context", "-c", help="A passage that the text should rest on; again for more.")
]
GroundTruthOption = Annotated[
    str | None, typer.Option("--ground-truth", "-g", help="The reference answer that the text is compared with.")
]
ModelOption = Annotated[str | None, typer.Option("--model", "-m", help="The judge, as provider/name.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the runs as JSON.")]
UrlOption = Annotated[str | None, typer.Option("--url", help="Where Assay runs; default: ASSAY_HOST and ASSAY_PORT.")]


def score(
    text: TextArgument,
    scorer: ScorerOption = DEFAULT_SCORERS,
    question: InputOption = None,
    context: ContextOption = None,
    ground_truth: GroundTruthOption = None,
    model: ModelOption = None,
    as_json: JsonOption = False,
    url: UrlOption = None,
) -> None:
    """Score a text with a running Assay; exit code 1 when a run fails."""
    request: dict[str, Any] = {"output": _read(text), "scorers": scorer}
    given = {"input": question, "context": context or None, "groundTruth": ground_truth, "model": model}
    request |= {key: value for key, value in given.items() if value is not None}
    address = (url or _own_url()).rstrip("/")
    try:
        with httpx.Client(base_url=address, timeout=httpx.Timeout(READ_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)) as client:
            runs = _runs(client, request)
    except (httpx.TransportError, httpx.InvalidURL) as error:
        raise Mistake(
            f"No Assay answers at {address} ({type(error).__name__}); start one with `assay up`, or give its --url"
        ) from None
    if as_json:
        out.print_json(json.dumps(runs))
    else:
        for run in runs:
            out.print(card(run, request["output"]), soft_wrap=False)
    if not all(run["status"] in ENDED_WELL for run in runs):
        raise typer.Exit(1)


def _own_url() -> str:
    settings = load_settings()
    return url_of(settings.host, settings.port)


def _read(text: str) -> str:
    try:
        if text == "-":
            return sys.stdin.read()
        if text.startswith("@"):
            return Path(text[1:]).read_text(encoding="utf-8")
    except OSError as error:
        raise Mistake(f"{text[1:]}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Mistake("The text is not UTF-8") from None
    return text


def _runs(client: httpx.Client, request: dict[str, Any]) -> list[dict[str, Any]]:
    """Have the text scored and wait for every run to end, or to the longest wait."""
    give_up = time.monotonic() + LONGEST_WAIT_S
    with err.status(f"Judging ({', '.join(request['scorers'])})"):
        response = client.post("/v1/runs", json=request, headers={"Prefer": f"wait={POLL_S}"})
        runs: list[dict[str, Any]] = _answer(response)["runs"]
        return [_ended(client, run, give_up) for run in runs]


def _ended(client: httpx.Client, run: dict[str, Any], give_up: float) -> dict[str, Any]:
    while run["status"] in PENDING:
        if time.monotonic() > give_up:
            raise Mistake(f"Run {run['runId']} has not ended yet; ask for /v1/runs/{run['runId']} later")
        run = _answer(client.get(f"/v1/runs/{run['runId']}", params={"wait": POLL_S}))
    return run


def _answer(response: httpx.Response) -> dict[str, Any]:
    try:
        body: dict[str, Any] = response.json()
    except ValueError:
        raise Mistake(f"{response.request.url} answered {response.status_code}, but not as Assay does") from None
    if response.is_success:
        return body
    faults = [f"{fault['pointer']}: {fault['detail']}" for fault in body.get("errors", ())]
    raise Mistake("\n".join([f"{body.get('title')}: {body.get('detail')}", *faults]))
