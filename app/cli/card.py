"""A run as a card: the score and its band, the text with what was judged marked in it, the verdicts and the reason."""

import re
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

GOOD, DOUBTFUL, BAD, SILENT = "green", "yellow", "red", "dim"
BAR_CELLS = 20
COLOURS = {
    "lower_is_better": {"yes": BAD, "no": GOOD},
    "higher_is_better": {
        **dict.fromkeys(("yes", "high", "full", "exact", "semantic", "impact none", "impact minimal"), GOOD),
        **dict.fromkeys(("unsure", "medium", "low", "partial", "extra", "impact moderate"), DOUBTFUL),
        **dict.fromkeys(("no", "none", "missing", "contradicted", "issue", "impact significant", "impact severe"), BAD),
    },
}
KINDS = ("severity", "element", "category", "kind")
LISTS = ("results", "verdicts", "extras", "issues", "requirements", "dimensions", "questions")
QUOTED = ("opinion", "text", "claim", "statement", "id", "requirement", "dimension", "question", "call", "tool")
CLAIMS_OF_REFERENCE = ("context-recall", "answer-similarity")  # scorers whose claims stand in the reference answer
STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def card(run: dict[str, Any], text: str) -> RenderableType:
    """Return what a terminal shows of a run; `text` is what was scored, which spans refer to."""
    verdicts = _verdicts(run)
    colours = COLOURS[run["direction"]]
    elsewhere = run["scorerId"] in CLAIMS_OF_REFERENCE
    in_text = [verdict for verdict in verdicts if not (elsewhere and "claim" in verdict)]
    parts: list[RenderableType] = [_headline(run), _marked(text, in_text, colours)]
    if verdicts:
        parts.append(_table(verdicts, colours))
    for label, detail in (("Reason", run.get("reason")), ("Failed", _error(run))):
        if detail:
            parts.append(Text.assemble((f"{label}: ", "bold"), _visible(detail)))
    parts += [Text(f"Warning: {warning['detail']}", style=DOUBTFUL) for warning in run.get("warnings") or ()]
    return Panel(
        Group(*_spaced(parts)),
        title=Text(f"{run['scorerId']} {run['scorerVersion']}  {run['runId']}"),
        subtitle=_footer(run),
        title_align="left",
        subtitle_align="left",
    )


def _verdicts(run: dict[str, Any]) -> list[dict[str, Any]]:
    result = run.get("analyzeStepResult") or {}
    verdicts = [verdict for name in LISTS for verdict in result.get(name) or []]
    return verdicts + [{"verdict": "missing", **one} for one in result.get("missingCalls") or ()]


def _headline(run: dict[str, Any]) -> Text:
    if run.get("score") is None:
        return Text(f"no score: {run['status']}", style=f"bold {DOUBTFUL}")
    share = run["score"] / run["scale"]
    badness = share if run["direction"] == "lower_is_better" else 1 - share
    style = GOOD if badness < 0.1 else DOUBTFUL if badness < 0.4 else BAD
    filled = round(share * BAR_CELLS)
    line = Text.assemble(
        (f"{run['score']:g} of {run['scale']:g}  ", f"bold {style}"),
        ("█" * filled, style),
        ("░" * (BAR_CELLS - filled), SILENT),
        f"  {run.get('interpretation') or ''}  ",
        (run["direction"].replace("_", " "), SILENT),
    )
    if run.get("passed") is not None:
        line.append("  passed" if run["passed"] else "  not passed", style=GOOD if run["passed"] else BAD)
    if interval := run.get("scoreInterval"):
        line.append(f"  {interval['low']:g} to {interval['high']:g} when judged again", style=SILENT)
    return line


def _marked(text: str, verdicts: list[dict[str, Any]], colours: dict[str, str]) -> Text:
    marked = Text(_visible(text.rstrip()))
    for verdict in verdicts:
        span = verdict.get("span")
        if span:
            marked.stylize(f"{colours.get(_label(verdict), DOUBTFUL)} underline", span["start"], span["end"])
    return marked


def _label(verdict: dict[str, Any]) -> str:
    if "impact" in verdict:
        return f"impact {verdict['impact']}"
    return str(verdict.get("result") or verdict.get("verdict") or verdict.get("relevance") or "")


def _quoted(verdict: dict[str, Any]) -> str:
    number = verdict.get("number")
    return next((str(verdict[key]) for key in QUOTED if verdict.get(key)), f"passage {number}" if number else "")


def _table(verdicts: list[dict[str, Any]], colours: dict[str, str]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for header in ("Verdict", "Kind", "Text", "Why"):
        table.add_column(header, overflow="fold")
    for verdict in verdicts:
        kind = " ".join(str(verdict[key]) for key in KINDS if verdict.get(key))
        table.add_row(
            Text(_label(verdict), style=colours.get(_label(verdict), DOUBTFUL)),
            Text(kind),
            Text(_visible(_quoted(verdict))),
            Text(_visible(str(verdict.get("reason") or ""))),
        )
    return table


def _error(run: dict[str, Any]) -> str | None:
    error = run.get("error")
    return f"{error['title']} ({error['code']}). {error['detail']}" if error else None


def _footer(run: dict[str, Any]) -> Text:
    usage = run["usage"]
    total_ms = run["timings"].get("totalMs")
    took = f"{total_ms / 1000:.1f} s, " if total_ms is not None else ""
    calls = usage["judgeCalls"]
    asked = f"{calls} judge call{'' if calls == 1 else 's'}, {usage['cacheHits']} cached"
    judge = f"{run['model']}, {took}{asked}" if run["model"] else f"{took}no judge"
    return Text(judge, style=SILENT)


def _visible(text: str) -> str:
    """Return text with everything that could steer a terminal replaced, character for character, so that spans hold."""
    return STEERING.sub("\N{REPLACEMENT CHARACTER}", text)


def _spaced(parts: list[RenderableType]) -> list[RenderableType]:
    spaced = [part for one in parts for part in (one, Text())]
    return spaced[:-1]
