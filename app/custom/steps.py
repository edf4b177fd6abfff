"""What the steps of a custom scorer show the judge, and what they make of its answers: without any call."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.custom.compiled import ANALYZE_RESULT, PREPROCESS_RESULT, Asking, CustomScorer, listed_in, result_shape
from app.custom.formula import MAX_UNITS, FormulaFailed
from app.custom.material import Material, Typed
from app.custom.options import own_values
from app.custom.tasks import object_task, reason_task, selection_task, verdicts_task
from app.custom.template import Template, WrongTemplate
from app.domain.errors import ContextOverflow, ScorerFault
from app.domain.request import MetadataValue, Options, RunRequest
from app.domain.run import Direction, Step
from app.judge.evidence import Evidence
from app.judge.exhibit import Piece, lines_of_pieces
from app.judge.fence import Fence, fence_of
from app.judge.language import told
from app.judge.segment import Segment
from app.judge.subject import Subject
from app.judge.task import Task

MOST_EXPLAINED: Final = 12
"""Verdicts that the judge is shown for the score's reason."""
_NAME_LENGTH: Final = 40
"""Of a scorer's id in the name of a prompt, which providers limit."""


@dataclass(frozen=True, slots=True)
class Steps:
    """One scorer's steps over one request; `fence` makes the fence of a text."""

    scorer: CustomScorer
    options: Options
    fence: Callable[[str], Fence]

    def material(self, request: RunRequest, metadata: Mapping[str, MetadataValue]) -> Material:
        """Return the material of the first step; raises ScorerFault, as what follows does."""
        return Material(
            inputs={
                "output": request.text,
                "input": request.question,
                "context": request.context,
                "groundTruth": request.ground_truth,
            },
            metadata=metadata,
            typed={"options": Typed(self.scorer.own, own_values(self.scorer.own, self.options))},
        )

    @property
    def preamble(self) -> str:
        """What a message begins with: the language of what the judge writes."""
        return f"Write texts in {told(self.options.language, 'the evidence')}.\n"

    def selection(self, step: Asking, material: Material) -> Task[bool]:
        """Return the task of a preprocess step that selects segments."""
        return selection_task(self._name("preprocess"), _rendered(step.instructions, material), step.select or "")

    def found(self, step: Asking, material: Material) -> Task[dict[str, Any]]:
        """Return the task of a preprocess step that asks for an object."""
        return object_task(
            Step.PREPROCESS, self._name("preprocess"), _rendered(step.instructions, material), step.shape
        )

    def analysis(self, material: Material) -> Task[dict[str, Any]]:
        """Return the task of the analyze step, for an object or for one a unit."""
        name, step = self._name("analyze"), self.scorer.analyze
        instructions = _rendered(step.instructions, material)
        units = self.scorer.definition.analyze.for_each
        if units is None:
            return object_task(Step.ANALYZE, name, instructions, step.shape)
        return verdicts_task(name, instructions, step.shape, units)

    def evidence(self, step: Asking, material: Material, subject: Subject) -> Evidence:
        """Return what is shown of a subject's items; where they are all of the output, it is not shown again."""
        preprocess = self.scorer.preprocess
        is_whole = step.select is not None or self.scorer.definition.analyze.for_each == "segments"
        mentioned = {place for place in step.instructions.mentioned if not (is_whole and place[0] == "output")}
        pieces = material.pieces(mentioned)
        in_order = is_whole or (preprocess is not None and preprocess.select is not None)
        return Evidence(self._fence(pieces, subject.text), subject.units, None, pieces, neighbours=in_order)

    def message(self, instructions: Template, material: Material) -> str:
        """Return the message that shows what the instructions mention."""
        pieces = material.pieces(instructions.mentioned)
        return self.preamble + self._fence(pieces).around(lines_of_pieces(pieces))

    def reason(self, material: Material) -> Task[str]:
        """Return the task of the score's reason."""
        assert self.scorer.reason is not None, "asked only where there are instructions"  # noqa: S101
        return reason_task(self._name("reason"), _rendered(self.scorer.reason, material))

    def reason_message(self, material: Material, score: float | None, band: str | None, verdicts: int) -> str:
        """Return the message that asks for the reason of a score (on the caller's scale), with so many verdicts."""
        assert self.scorer.reason is not None, "asked only where there are instructions"  # noqa: S101
        result = material.typed[ANALYZE_RESULT]
        if self.scorer.definition.analyze.for_each is not None:
            value = {"verdicts": result.value["verdicts"][:verdicts]}
            material = material.with_result(ANALYZE_RESULT, result.shape, value)
        pieces = material.pieces({*self.scorer.reason.mentioned, (ANALYZE_RESULT, None)})
        good = "lower" if self.scorer.direction is Direction.LOWER_IS_BETTER else "higher"
        return (
            f"{self.preamble}Score: {score:g} from 0 to {self.options.scale:g}, {good} is better: {band}.\n"
            f"{self._fence(pieces).around(lines_of_pieces(pieces))}"
        )

    def after_preprocess(self, material: Material, step: Asking, answer: Mapping[str, Any]) -> Material:
        """Return the material of the analyze step."""
        return material.with_result(PREPROCESS_RESULT, step.shape, answer)

    def after_analyze(self, material: Material, result: Mapping[str, Any]) -> Material:
        """Return the material of the reason."""
        if self.scorer.definition.analyze.for_each is not None:
            result = {"verdicts": [{k: v for k, v in one.items() if k != "span"} for one in result["verdicts"]]}
        shape = result_shape(self.scorer.definition, self.scorer.analyze.shape)
        return material.with_result(ANALYZE_RESULT, shape, result)

    def value(self, material: Material, segments: int) -> float | None:
        """Return the formula's value (0..1), None when there is nothing to score; raises ScorerFault."""
        analyzed = material.typed[ANALYZE_RESULT].value
        variables = {"options": material.typed["options"].value, "analyze": analyzed}
        if PREPROCESS_RESULT in material.typed:
            variables["preprocess"] = material.typed[PREPROCESS_RESULT].value
        if self.scorer.definition.analyze.for_each is not None:
            names = self.scorer.analyze.shape.properties
            variables["verdicts"] = [{name: verdict[name] for name in names} for verdict in analyzed["verdicts"]]
        try:
            return self.scorer.formula.value(variables, segments)
        except FormulaFailed as error:
            raise ScorerFault(
                f"The scorer's formula gave no score: {error}; mend its definition", of_formula=True
            ) from None

    def _fence(self, pieces: Sequence[Piece], *texts: str) -> Fence:
        return self.fence(json.dumps([*texts, *(piece.segment.text for piece in pieces)]))

    def _name(self, step: str) -> str:
        return f"{self.scorer.id[:_NAME_LENGTH]}_{step}"


def fences(key: bytes, tenant: str) -> Callable[[str], Fence]:
    """Return what makes the fences of a tenant's texts."""
    return lambda text: fence_of(key, tenant, text)


def selected(select: str, units: Sequence[Segment]) -> dict[str, Any]:
    """Return the result of a preprocess step that selected these segments."""
    return {select: [unit.text for unit in units], "items": [_placed(unit) for unit in units]}


def listed_items(step: Asking, answer: Mapping[str, Any]) -> Subject:
    """Return the texts that a preprocess step listed as a subject: they stand nowhere in the output."""
    listed = listed_in(step.shape)
    texts = [] if listed is None else [text for text in answer[listed] if text.strip()]
    return Subject(json.dumps(texts), [Segment(0, 0, text) for text in texts], range(len(texts)))


def verdicts_result(subject: Subject, answers: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the analyze step's result from one answer an item (by index)."""
    return {"verdicts": [{**answers[index], **_placed(subject.units[index])} for index in subject.items]}


def refuse_too_many(subject: Subject) -> None:
    """Refuse more items than a formula is given; raises ContextOverflow."""
    if len(subject.items) > MAX_UNITS:
        raise ContextOverflow(
            f"There are {len(subject.items):,} segments or items and a custom scorer judges at most {MAX_UNITS:,} in "
            "one run; split the text, or join its short lines"
        )


def _placed(unit: Segment) -> dict[str, Any]:
    return {"text": unit.text, "span": {"start": unit.start, "end": unit.end} if unit.end else None}


def _rendered(instructions: Template, material: Material) -> str:
    try:
        return instructions.rendered(material.variables())
    except WrongTemplate as error:
        raise ScorerFault(f"The scorer's instructions do not go with this request: {error}") from None
