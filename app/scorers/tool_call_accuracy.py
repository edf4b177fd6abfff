"""Tool call accuracy: which share of tool calls is appropriate, of those made and those missing (higher is better)."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from app.computed.arguments import first_faults
from app.computed.json_schema import Violation
from app.domain.faults import pointer
from app.domain.model import Model, Text
from app.domain.parts import ToolCall, ToolName, refuse_unkeepable
from app.domain.request import Options, RunRequest, Strategy
from app.domain.run import Direction
from app.judge.conversation import CALLS, MESSAGES, placed_calls, written
from app.judge.exhibit import Exhibit
from app.judge.scorer import Assessment, Band, Inquiry, Scorer, View
from app.judge.subject import Subject, listed
from app.judge.verdict import Analysis, Sureness, Verdict, counted, sureness


class Tool(Model):
    """A tool that could be called; `parameters` is the JSON schema of its arguments."""

    name: ToolName = Field(description="By which it is called")
    description: Annotated[Text, StringConstraints(max_length=10_000)] | None = Field(
        None, description="What it does, as the model that called it was told"
    )
    parameters: Annotated[dict[str, Any], AfterValidator(refuse_unkeepable)] | None = Field(
        None, description="The JSON schema of its arguments"
    )


def _refuse_repeated_names(tools: list[Tool]) -> list[Tool]:
    if len({tool.name for tool in tools}) < len(tools):
        raise PydanticCustomError("repeated", "Give every tool a name of its own")
    return tools


class ToolCallOptions(Options):
    """Options of tool-call-accuracy beside the common ones."""

    tools: Annotated[list[Tool], Field(min_length=1, max_length=100), AfterValidator(_refuse_repeated_names)] = Field(
        description="The tools that could be called"
    )


class CallVerdict(Sureness):
    """Whether the call with this number (from 1, over all messages) was appropriate, and why.

    `known` is false where no such tool was declared: such a call is not appropriate, and no judge is asked.
    """

    number: int
    verdict: Literal["yes", "no"]
    known: bool
    reason: str | None
    call: str


class MissingCall(Sureness):
    """A tool that should have been called and was not, and why."""

    tool: str
    reason: str | None


class ToolCallAnalysis(Analysis):
    """What analyze finds: one verdict for every call, and the calls that are missing."""

    verdicts: list[CallVerdict]
    missing_calls: list[MissingCall]


_TASK = "what the user asked for (the lines with ?, or else the user's messages)"

_CALLS_ANALYSIS = f"""\
You judge the tool calls of an assistant: decide on each call. It begins with the message that it was made in.
yes: {_TASK} needs the call at that point, the tool is the right one, and its arguments are what was asked or found. \
no: it is not needed, another tool was right, it repeats a call without need, or its arguments are wrong, made up or \
incomplete.
What a tool gave in return does not matter."""

_MISSING_ANALYSIS = f"""\
You judge which tool calls an assistant left out: decide on each tool.
yes: {_TASK} needs a call of this tool, and no call that was made (C1:, C2: and so on) does it. no: it is not needed, \
or was made, or another call does the same, or the user must be asked for something first."""

_EXPLANATION = """\
You explain a score of tool calls to the person who asked for it, in two or three sentences: why it is what it is, \
which calls were not appropriate and which are missing. The score is the share of appropriate calls among those that \
were made or are missing; it is settled."""


def _shown(tool: Tool) -> str:
    arguments = "" if tool.parameters is None else f"\narguments: {written(tool.parameters)}"
    return f"{tool.name}: {tool.description or ''}{arguments}"


_TOOLS = Exhibit(
    "T{}:",
    "T1:, T2: and so on mark the tools that there were",
    lambda _, options: [_shown(tool) for tool in options.tools],
)
_OF_CALLS = View(exhibits=(_TOOLS, MESSAGES))
_OF_TOOLS = View(neighbours=False, exhibits=(_TOOLS, MESSAGES, CALLS))


def _made_calls(request: RunRequest, options: ToolCallOptions) -> Subject:
    """Return the calls; one of a tool that was not declared is decided, as not appropriate."""
    schemas = {tool.name: tool.parameters for tool in options.tools if tool.parameters is not None}
    known = {tool.name for tool in options.tools}
    calls = placed_calls(request)
    faults = first_faults([placed.call for placed in calls], schemas)
    texts = [placed.shown(_note(placed.call, fault)) for placed, fault in zip(calls, faults, strict=True)]
    decided = {
        index: {"verdict": "no", "tool": "unknown"}
        for index, placed in enumerate(calls)
        if placed.call.name not in known
    }
    made = listed(texts)
    return made._replace(items=[index for index in made.items if index not in decided], decided=decided)


def _note(call: ToolCall, fault: Violation | None) -> str:
    """Return what code knows of arguments that can't be right."""
    if isinstance(call.arguments, str):
        return ", arguments are no JSON"
    return f", arguments do not fit the schema at {pointer('#', fault.path)} ({fault.keyword})" if fault else ""


def _declared_tools(_: RunRequest, options: ToolCallOptions) -> Subject:
    return listed([tool.name for tool in options.tools])


def _read_call(labels: Mapping[str, str]) -> Mapping[str, str]:
    (label,) = labels.values()
    return {"verdict": label}


def _read_missing(labels: Mapping[str, str]) -> Mapping[str, str]:
    (label,) = labels.values()
    return {"missing": label}


def _is_unknown(verdict: Verdict) -> bool:
    return "tool" in verdict.labels


def _is_missing(verdict: Verdict) -> bool:
    return verdict.labels.get("missing") == "yes"


def _assessed(verdicts: Sequence[Verdict]) -> ToolCallAnalysis:
    return ToolCallAnalysis.model_validate(
        {
            "verdicts": [
                {
                    "number": verdict.place + 1,
                    "verdict": verdict.labels["verdict"],
                    "known": not _is_unknown(verdict),
                    "reason": verdict.reason,
                    **sureness(verdict),
                    "call": verdict.item.text.partition(": ")[2],
                }
                for verdict in verdicts
                if "verdict" in verdict.labels
            ],
            "missing_calls": [
                {"tool": verdict.item.text, "reason": verdict.reason, **sureness(verdict)}
                for verdict in verdicts
                if _is_missing(verdict)
            ],
        }
    )


def _value(verdicts: Sequence[Verdict], _: Options) -> float:
    """Appropriate calls by calls made and missing; 1 when none was made and none is missing."""
    made = [verdict for verdict in verdicts if "verdict" in verdict.labels]
    due = counted(made) + counted(filter(_is_missing, verdicts))
    appropriate = counted(verdict for verdict in made if verdict.labels["verdict"] == "yes")
    return appropriate / due if due else 1.0


def _describe(verdict: Verdict) -> str:
    if _is_missing(verdict):
        return "missing call"
    return f"call {verdict.place + 1}, {'of a tool that there is not' if _is_unknown(verdict) else 'not appropriate'}"


_LABELS = ("yes", "no")
_CALLS_WITH_REASONS = Assessment(
    fields={"verdict": _LABELS}, system=_CALLS_ANALYSIS, reasons=True, read=_read_call, view=_OF_CALLS, units="calls"
)
_TOOLS_WITH_REASONS = Assessment(
    fields={"missing": _LABELS},
    system=_MISSING_ANALYSIS,
    reasons=True,
    read=_read_missing,
    view=_OF_TOOLS,
    units="tools",
)

SCORER = Scorer(
    id="tool-call-accuracy",
    version="1",
    description=(
        "The share of tool calls that are appropriate to what the user asked, among those that were made or are "
        "missing. A call of a tool that was not declared never is."
    ),
    direction=Direction.HIGHER_IS_BETTER,
    needs=("output",),
    needs_messages=True,
    options=ToolCallOptions,
    bands=(
        Band("no appropriate call", 0.0, 0.0),
        Band("few appropriate calls", 0.1, 0.3),
        Band("some calls wrong or missing", 0.4, 0.6),
        Band("mostly the right calls", 0.7, 0.9999),
        Band("the right calls", 1.0, 1.0),
    ),
    step_schemas={"analyzeStepResult": ToolCallAnalysis.model_json_schema(mode="serialization")},
    inquiries=(
        Inquiry(
            subject=_made_calls,
            assessments={
                Strategy.THREE_STEP: _CALLS_WITH_REASONS,
                Strategy.SINGLE_CALL: _CALLS_WITH_REASONS,
                Strategy.LABELS: Assessment(
                    fields={"label": _LABELS},
                    system=_CALLS_ANALYSIS,
                    reasons=False,
                    read=_read_call,
                    view=_OF_CALLS,
                    units="calls",
                ),
            },
        ),
        Inquiry(
            subject=_declared_tools,
            assessments={
                Strategy.THREE_STEP: _TOOLS_WITH_REASONS,
                Strategy.SINGLE_CALL: _TOOLS_WITH_REASONS,
                Strategy.LABELS: Assessment(
                    fields={"label": _LABELS},
                    system=_MISSING_ANALYSIS,
                    reasons=False,
                    read=_read_missing,
                    view=_OF_TOOLS,
                    units="tools",
                ),
            },
        ),
    ),
    selected=None,
    assessed=_assessed,
    value=_value,
    weight=lambda verdict: float(verdict.labels.get("verdict") == "no" or _is_missing(verdict)),
    describe=_describe,
    explanation=_EXPLANATION,
    nothing_found={
        "en": "Every tool call was appropriate, and none is missing.",
        "fr": "Tous les appels d’outils étaient appropriés et aucun ne manque.",
        "ko": "모든 도구 호출이 적절했으며 빠진 호출이 없습니다.",
        "ja": "ツールの呼び出しはすべて適切で、不足もありません。",
        "de": "Jeder Werkzeugaufruf war angebracht, und keiner fehlt.",
        "es": "Todas las llamadas a herramientas fueron apropiadas y no falta ninguna.",
        "pt": "Todas as chamadas de ferramentas foram adequadas e não falta nenhuma.",
        "zh": "所有工具调用都恰当，没有遗漏。",
    },
    counts_shares=True,
)
