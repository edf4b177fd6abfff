"""How well does a judge judge? Labelled texts through the engine, against any OpenAI-compatible endpoint.

`python -m bench.quality --data DIR --model provider/name [--base-url URL] [--api-key-env NAME]`. DIR holds JSONL files
with a row a line: `id`, `scorer`, `output`, `label` (1 where the scorer should give a high score, else 0), and where
they apply `input`, `context`, `groundTruth`, `category`, `lang`, `pair_id`. Results are kept row by row, and a run that
was stopped goes on where it was with `--resume`.
"""

import argparse
import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import structlog
from pydantic import SecretStr
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from app.domain.request import Strategy
from app.judge.scorer import Scorer
from app.scorers import load_scorers
from app.settings import Settings, SettingsError
from bench.labelled.injection import ATTACKS_FILE, attacks_in, flips, is_caught, mistaken, spliced
from bench.labelled.judging import Bench, Case, JudgeAway, judge_all
from bench.labelled.picture import write_picture
from bench.labelled.records import Record, RecordFile
from bench.labelled.replies import REPLIES_FILE, read_replies, readings
from bench.labelled.report import Injection, Report, grouped, print_report
from bench.labelled.rows import Row, read_rows, sampled

RECORDS, REPORT, PICTURE = "results.jsonl", "report.json", "report.svg"
SCORERS = {scorer.id: scorer for scorer in load_scorers().values() if isinstance(scorer, Scorer)}
WIDTH = 1_000  # so that no figure is cut: a narrow terminal breaks the lines of wide tables
out, err = Console(width=WIDTH), Console(stderr=True)


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="bench.quality", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of labelled JSONL files")
    parser.add_argument("--model", required=True, help="the judge, as provider/name")
    parser.add_argument("--base-url", help="where its OpenAI-compatible endpoint is; known providers bring their own")
    parser.add_argument("--api-key-env", help="the variable that holds its key; known providers have their own")
    parser.add_argument("--scorers", help="comma between; default: those that the rows are for")
    parser.add_argument("--strategy", default="three_step", help=f"comma between: {', '.join(Strategy)}")
    parser.add_argument("--scoring", help="comma between: hard, expected; default: not said, as in a request")
    parser.add_argument("--examples", help="comma between: none, default; default: not said, as in a request")
    parser.add_argument("--options", type=json.loads, default={}, help="JSON of more options for every scorer")
    parser.add_argument("--reasons", action="store_true", help="let the judge write the score's reason too")
    parser.add_argument("--files", help="comma between; default: every JSONL file in DATA")
    parser.add_argument("--limit", type=int, help="at most so many rows of each file and scorer, strata kept")
    parser.add_argument("--seed", type=int, default=0, help="of samples and of what attacks are put behind")
    parser.add_argument("--threshold", type=float, default=0.5, help="the score that still passes")
    parser.add_argument("--concurrency", type=int, default=4, help="texts at once")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for one text")
    parser.add_argument("--injection", action="store_true", help=f"put the attacks of {ATTACKS_FILE} behind bad texts")
    parser.add_argument("--texts", type=int, default=1, help="texts that each attack is put behind")
    parser.add_argument("--out", type=Path, default=Path("data/quality"), help="folder of results, report and picture")
    parser.add_argument("--resume", action="store_true", help="keep the results that are in the folder and go on")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    chosen = parsed(arguments)
    try:
        asyncio.run(measured(chosen))
    except JudgeAway as away:
        sys.exit(f"bench.quality: {away}; what was judged is kept: go on with --resume")
    except KeyboardInterrupt:
        sys.exit("bench.quality: stopped; what was judged is kept: go on with --resume")
    except (SettingsError, ValueError, OSError) as error:
        sys.exit(f"bench.quality: {error}")


async def measured(chosen: argparse.Namespace) -> None:
    """Judge what has to be judged, and report."""
    file = _records(chosen)
    rows, skipped = _rows(chosen)
    report = Report(chosen.model, chosen.threshold, skipped=skipped)
    async with Bench(_settings(chosen), tuple(SCORERS), chosen.timeout) as bench:
        cases = [case for options in _options(chosen) for case in _cases(rows, options, report.skipped)]
        records = await _judged(bench, cases, file, chosen, "texts")
        report.groups = grouped(records, chosen.threshold)
        if chosen.injection:
            report.injections = await _attacked(bench, cases, records, file, chosen)
    report.replies = _replies(chosen)
    (chosen.out / REPORT).write_text(json.dumps(report.as_json(), indent=2) + "\n", encoding="utf-8")
    title = f"{chosen.model}: accuracy at {chosen.threshold:g} and AUROC, with 95 % intervals"
    write_picture(chosen.out / PICTURE, title, report.lines())
    print_report(out, report)


def _records(chosen: argparse.Namespace) -> RecordFile:
    path = chosen.out / RECORDS
    if path.exists() and not chosen.resume:
        raise ValueError(f"{path} is there already: go on with --resume, or choose another --out")
    chosen.out.mkdir(parents=True, exist_ok=True)
    return RecordFile(path)


def _rows(chosen: argparse.Namespace) -> tuple[list[Row], dict[str, int]]:
    """Return the rows to judge, and how many are left out for which reason."""
    apart = {ATTACKS_FILE, REPLIES_FILE}
    names = chosen.files.split(",") if chosen.files else sorted(path.name for path in chosen.data.glob("*.jsonl"))
    wanted = set(chosen.scorers.split(",")) if chosen.scorers else set(SCORERS)
    if unknown := wanted - set(SCORERS):
        raise ValueError(f"no judge scorer is called {', '.join(sorted(unknown))}; choose of {', '.join(SCORERS)}")
    rows = read_rows(chosen.data, [name for name in names if name not in apart])
    skipped: Counter[str] = Counter()
    usable = []
    for row in rows:
        reason = _left_out(row, wanted)
        if reason is None:
            usable.append(row)
        else:
            skipped[f"{row.file}: {reason}"] += 1
    return sampled(usable, chosen.limit, chosen.seed), dict(skipped)


def _left_out(row: Row, wanted: set[str]) -> str | None:
    if row.scorer not in SCORERS:
        return f"no scorer answers to {row.scorer}"
    if row.scorer not in wanted:
        return f"{row.scorer} was not asked for"
    scorer = SCORERS[row.scorer]
    return None if _suits(row, scorer) else f"{row.scorer} needs {', '.join(scorer.needs)}"


def _settings(chosen: argparse.Namespace) -> Settings:
    given: dict[str, Any] = {"judge_model": chosen.model, "judge_timeout_s": chosen.timeout}
    if chosen.base_url:
        given["judge_base_url"] = chosen.base_url
    if chosen.api_key_env:
        key = os.environ.get(chosen.api_key_env)
        if not key:
            raise ValueError(f"{chosen.api_key_env}: set it to the judge's key")
        given["judge_api_key"] = SecretStr(key)
    return Settings(**given)


def _options(chosen: argparse.Namespace) -> list[dict[str, Any]]:
    """Return every combination of the options that were named, as a caller would send them."""
    named = {"strategy": chosen.strategy, "scoring": chosen.scoring, "examples": chosen.examples}
    given = {name: values.split(",") for name, values in named.items() if values}
    every = [dict(zip(given, values, strict=True)) for values in product(*given.values())]
    return [_without_reason(options, chosen.reasons) | chosen.options for options in every]


def _without_reason(options: dict[str, Any], reasons: bool) -> dict[str, Any]:
    return options if reasons or options["strategy"] != Strategy.THREE_STEP else options | {"includeReason": False}


def _cases(rows: Sequence[Row], options: dict[str, Any], skipped: dict[str, int]) -> list[Case]:
    """Return the cases of these options; rows whose scorer does not take them are skipped."""
    cases = []
    for row in rows:
        scorer = SCORERS[row.scorer]
        refused = _refused(scorer, options)
        if refused is None:
            cases.append(Case(row, scorer, options))
        else:
            reason = f"{row.file}: {scorer.id} can't be asked with {refused}"
            skipped[reason] = skipped.get(reason, 0) + 1
    return cases


def _refused(scorer: Scorer, options: dict[str, Any]) -> str | None:
    """Return the option that a scorer does not take, or None; raises ValueError for what no scorer takes."""
    checked = scorer.options.model_validate(options)
    taken = {
        "strategy": (checked.strategy, scorer.strategies),
        "scoring": (checked.scoring, scorer.scorings),
        "examples": (checked.examples, (*scorer.example_sets, None)),
    }
    return next((f"{name} {value}" for name, (value, known) in taken.items() if value not in known), None)


async def _judged(
    bench: Bench, cases: Sequence[Case], file: RecordFile, chosen: argparse.Namespace, what: str
) -> list[Record]:
    """Judge cases under a progress bar and return the records of all of them, earlier ones included."""
    keys = [case.key(bench.model.id) for case in cases]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=err) as progress:
        task = progress.add_task(what, total=len(keys), completed=sum(map(file.has, keys)))
        await judge_all(bench, cases, file, chosen.concurrency, lambda _: progress.advance(task))
    return file.of(keys)


async def _attacked(
    bench: Bench, cases: Sequence[Case], records: Sequence[Record], file: RecordFile, chosen: argparse.Namespace
) -> list[Injection]:
    """Put every attack behind texts that were caught, scorer by scorer, and count the verdicts that flip."""
    rows = sampled(read_rows(chosen.data, [ATTACKS_FILE]), chosen.limit, chosen.seed)
    by_key = {record.key: record for record in records}
    injections = []
    for options, scorer in dict.fromkeys((case.key("").options, case.scorer) for case in cases):
        own = [case for case in cases if case.scorer is scorer and case.key("").options == options]
        judged = [by_key[case.key(bench.model.id)] for case in own]
        caught = [case for case, record in zip(own, judged, strict=True) if is_caught(record, chosen.threshold)]
        spliced_in = spliced(caught, attacks_in(rows), chosen.texts, chosen.seed)
        attacked = await _judged(bench, spliced_in, file, chosen, f"attacks on {scorer.id}")
        benign = [Case(row, scorer, own[0].options) for row in rows if not row.label and _suits(row, scorer)]
        alone = await _judged(bench, benign, file, chosen, f"benign texts, {scorer.id}")
        bad = sum(record.label != record.higher_is_better for record in judged)
        flipped = flips(attacked, judged, chosen.threshold)
        wrong = mistaken(alone, chosen.threshold)
        injections.append(Injection(scorer.id, options, bad, len(caught), flipped, wrong))
    return injections


def _suits(row: Row, scorer: Scorer) -> bool:
    """Whether a row holds all that a scorer needs."""
    return all(row.given(need) for need in scorer.needs)


def _replies(chosen: argparse.Namespace) -> dict[str, Any]:
    """Return how the parser reads the broken replies, if there are any and they are wanted."""
    path = chosen.data / REPLIES_FILE
    if not path.exists() or (chosen.files and REPLIES_FILE not in chosen.files.split(",")):
        return {}
    return {asks: dict(found) for asks, found in readings(read_replies(path)).items()}


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    main()
