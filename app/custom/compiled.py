"""From a definition to a scorer that runs."""

from dataclasses import dataclass, replace
from typing import Any, Final

from app.custom.definition import AnalyzeDefinition, PreprocessDefinition, ScorerDefinition
from app.custom.formula import Formula, FormulaFailed, WrongFormula
from app.custom.material import ALWAYS, INPUTS, Material, Typed
from app.custom.options import options_model, taken_names
from app.custom.schema import RESERVED, shape_of
from app.custom.shape import Shape
from app.custom.template import Template, WrongTemplate
from app.domain.errors import Fault, InvalidRequest
from app.domain.request import ExampleSet, Scoring, Strategy
from app.domain.run import VERBATIM_FIELDS, Span
from app.judge.scorer import Band, Measure

PREPROCESS_RESULT: Final = "preprocessStepResult"
ANALYZE_RESULT: Final = "analyzeStepResult"
_BANDS: Final = (Band("low", 0.0, 0.3), Band("medium", 0.4, 0.6), Band("high", 0.7, 1.0))
_OURS: Final = frozenset({"n", "text", "span"})
"""What a verdict holds beside what its schema asks for."""
_PLACED: Final[dict[str, Any]] = {"text": {"type": "string"}, "span": Span.model_json_schema()}


@dataclass(frozen=True, eq=False, slots=True)
class Asking:
    """A step: its instructions, and the shape of what it gives.

    `select` names the list of a step that points at segments; its shape is then that of the list of their texts.
    """

    instructions: Template
    shape: Shape
    select: str | None = None


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class CustomScorer(Measure):
    """A scorer made of a definition; it asks a judge. `own` is the shape of its own options."""

    uses_judge = True

    definition: ScorerDefinition
    own: Shape | None
    preprocess: Asking | None
    analyze: Asking
    reason: Template | None
    formula: Formula

    @property
    def strategies(self) -> tuple[Strategy, ...]:
        """Only the steps that were defined can be asked."""
        return (Strategy.THREE_STEP,)

    @property
    def scorings(self) -> tuple[Scoring, ...]:
        """Formulas are given labels, not how likely they are."""
        return (Scoring.HARD,)

    @property
    def example_sets(self) -> tuple[ExampleSet, ...]:
        """Examples are part of the instructions."""
        return (ExampleSet.NONE,)

    @property
    def verbatim_fields(self) -> frozenset[str]:
        """The names under which its step results may quote submitted texts."""
        steps = [self.analyze, *([self.preprocess] if self.preprocess else [])]
        return VERBATIM_FIELDS.union(*(step.shape.free_texts for step in steps))


def compiled(definition: ScorerDefinition) -> CustomScorer:
    """Return the scorer that a definition describes.

    Raises InvalidRequest with every fault that was found, each with a pointer into the definition.
    """
    compiler = _Compiler(definition)
    scorer = compiler.scorer()
    if scorer is None or compiler.faults:
        raise InvalidRequest("The definition of this scorer has faults; mend them", tuple(compiler.faults))
    return scorer


class _Compiler:
    """One definition on its way; faults are gathered, so that an author sees all of them at once."""

    def __init__(self, definition: ScorerDefinition) -> None:
        self.definition = definition
        self.faults: list[Fault] = []

    def scorer(self) -> CustomScorer | None:
        """Return the scorer, or None after a fault; instructions and formula are read where the schemas are right."""
        definition = self.definition
        bands, own = self.bands(), self.own_options()
        found = self.preprocess_shape()
        judged = self.analyze_shape(found)
        if judged is None or self.faults:
            return None
        material, preprocess = sample_material(own), None
        if definition.preprocess is not None and found is not None:
            preprocess = self.asking("#/preprocess", definition.preprocess, found, material)
            material = material.with_result(PREPROCESS_RESULT, found, sample(found))
        analyze = self.asking("#/analyze", definition.analyze, judged, material)
        shape = result_shape(definition, judged)
        reason = self.reason(material.with_result(ANALYZE_RESULT, shape, sample(shape)))
        formula = self.formula(own, found, judged)
        if analyze is None or formula is None:
            return None
        return CustomScorer(
            id=definition.id,
            version=definition.version,
            description=definition.description,
            direction=definition.direction,
            needs=tuple(dict.fromkeys(("output", *definition.needs))),
            options=options_model(own),
            bands=bands,
            step_schemas=_step_schemas(definition, found, judged),
            definition=definition,
            own=own,
            preprocess=preprocess,
            analyze=analyze,
            reason=reason,
            formula=formula,
        )

    def fault(self, pointer: str, code: str, detail: str) -> None:
        """Note a fault."""
        self.faults.append(Fault(pointer=pointer, code=code, detail=detail))

    def bands(self) -> tuple[Band, ...]:
        """Return the bands; together they have to reach 1."""
        if self.definition.bands is None:
            return _BANDS
        bands = tuple(Band(band.name, band.low, band.high) for band in self.definition.bands)
        for place, band in enumerate(bands):
            if band.low > band.high:
                self.fault(f"#/bands/{place}/high", "band", "Send an upper end that is not below the lower one")
        if max(band.high for band in bands) < 1:
            self.fault("#/bands", "band", "Let the highest band end at 1")
        return bands

    def own_options(self) -> Shape | None:
        """Return the shape of the scorer's own options."""
        if self.definition.options is None:
            return None
        own = shape_of(self.definition.options, "#/options", self.faults, for_options=True)
        for name in (own.properties if own else {}).keys() & taken_names():
            self.fault(f"#/options/properties/{name}", "json_schema", "Every scorer has it; choose another name")
        return own

    def preprocess_shape(self) -> Shape | None:
        """Return the shape of what the first step gives, if there is one."""
        step = self.definition.preprocess
        if step is None:
            return None
        if (step.select is None) == (step.reply_schema is None):
            self.fault("#/preprocess", "missing", "Send either a schema or select")
            return None
        if step.select is None:
            return shape_of(step.reply_schema, "#/preprocess/schema", self.faults)
        if step.select in RESERVED or step.select.casefold() == "items":
            self.fault("#/preprocess/select", "name", "This name is taken; choose another")
        return Shape("object", properties={step.select: Shape("array", items=Shape("text"))})

    def analyze_shape(self, found: Shape | None) -> Shape | None:
        """Return the shape of what the second step gives, for all or for each unit."""
        step = self.definition.analyze
        shape = shape_of(step.reply_schema, "#/analyze/schema", self.faults)
        if step.for_each == "items" and (found is None or listed_in(found) is None) and not self.faults:
            detail = "Let preprocess select segments, or give one array of texts, to judge"
            self.fault("#/analyze/forEach", "missing", detail)
        names = shape.properties if shape is not None and step.for_each is not None else {}
        for name in names:
            if name.casefold() in _OURS:
                place = f"#/analyze/schema/properties/{name}"
                self.fault(place, "json_schema", "Verdicts have this property of themselves; choose another name")
        return shape

    def asking(
        self, place: str, step: PreprocessDefinition | AnalyzeDefinition, shape: Shape, material: Material
    ) -> Asking | None:
        """Return a step; where no numbered units are shown, its instructions have to name what is to be judged."""
        template = self.template(place, step.instructions, material)
        select = step.select if isinstance(step, PreprocessDefinition) else None
        has_units = select is not None or (isinstance(step, AnalyzeDefinition) and step.for_each is not None)
        if template is None:
            return None
        if not has_units and not any(name != "options" for name, _ in template.mentioned):
            self.fault(f"{place}/instructions", "template", "Name what is to be judged, as in {{ output }}")
        return Asking(template, shape, select)

    def reason(self, material: Material) -> Template | None:
        """Return the instructions for the reason, if there are any."""
        step = self.definition.generate_reason
        return None if step is None else self.template("#/generateReason", step.instructions, material)

    def template(self, place: str, text: str, material: Material) -> Template | None:
        """Return instructions, tried with everything there and with what is not needed left out."""
        needs = ("output", *self.definition.needs)
        needed = {name: value if name in needs else None for name, value in material.inputs.items()}
        try:
            template = Template(text, (*ALWAYS, *(name for name in material.typed if name != "options")))
            for inputs in (material.inputs, needed):
                template.rendered(replace(material, inputs=inputs).variables())
        except WrongTemplate as error:
            self.fault(f"{place}/instructions", "template", str(error))
            return None
        return template

    def formula(self, own: Shape | None, found: Shape | None, judged: Shape) -> Formula | None:
        """Return the formula; where there may be no verdicts at all, it has to say what that gives."""
        for_each = self.definition.analyze.for_each
        known = {} if own is None else {"options": own}
        if found is not None:
            known["preprocess"] = found
        if for_each is None:
            known["analyze"] = judged
        try:
            formula = Formula(self.definition.score, known, None if for_each is None else judged)
            if for_each == "items":
                nothing = {name: sample(shape) for name, shape in known.items()}
                formula.value({**nothing, "verdicts": []}, segments=1)
        except WrongFormula as error:
            self.fault("#/score", "formula", str(error))
            return None
        except FormulaFailed as error:
            hint = "say what it is then, as in `size(verdicts) == 0 ? null : ...`"
            self.fault("#/score", "formula", f"Without any verdicts {error}; {hint}")
            return None
        return formula


def sample_material(own: Shape | None) -> Material:
    """Return material with something in every place, to try templates on."""
    text = "A text."
    return Material(
        inputs={name: [text] if name == "context" else text for name in INPUTS},
        metadata={},
        typed={"options": Typed(own, {} if own is None else sample(own))},
    )


def sample(shape: Shape) -> Any:
    """Return a value of the shape."""
    match shape.kind:
        case "object":
            return {name: sample(inner) for name, inner in shape.properties.items()}
        case "array":
            return [sample(shape.item)] * max(1, shape.least)
        case "label":
            return shape.labels[0]
        case "text":
            return "text"
        case "boolean":
            return True
    ends = [end for end in (shape.low, shape.high, 0) if end is not None]
    return ends[0]


def listed_in(found: Shape) -> str | None:
    """Return the name of the one property that lists texts, which can be judged one by one."""
    names = [name for name, shape in found.properties.items() if shape.kind == "array" and shape.is_text]
    return names[0] if len(names) == 1 else None


def result_shape(definition: ScorerDefinition, judged: Shape) -> Shape:
    """Return the shape of the analyze step's result, as the reason's instructions are given it."""
    if definition.analyze.for_each is None:
        return judged
    verdict = Shape("object", properties={**judged.properties, "text": Shape("text")})
    return Shape("object", properties={"verdicts": Shape("array", items=verdict)})


def _step_schemas(definition: ScorerDefinition, found: Shape | None, judged: Shape) -> dict[str, dict[str, Any]]:
    schemas = {}
    if definition.preprocess is not None and found is not None:
        select = definition.preprocess.select
        lists = {} if select is None else {select: _list_of({"type": "string"}), "items": _list_of(_object_of(_PLACED))}
        schemas[PREPROCESS_RESULT] = _object_of(lists) if lists else found.schema()
    answer = judged.schema()
    if definition.analyze.for_each is not None:
        answer = _object_of({"verdicts": _list_of(_object_of({**answer["properties"], **_PLACED}))})
    schemas[ANALYZE_RESULT] = answer
    return schemas


def _list_of(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _object_of(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}
