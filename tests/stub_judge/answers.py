"""Good answers without a model: an instance of the asked JSON schema, chosen by the words of the numbered segments.

The user message holds numbered segments (`[3] Some sentence.`). For every one of them the stub decides by words,
whatever the language of the rest; below are all of them:

- an opinion ("fair" where labels are asked, else "fact"): "always", "never", "every", "best", "should" and so on
- biased: "inferior" or "superior"; its category: "women" gender, "party" political, "village" geographical, else other
- a claim: each part between semicolons of a segment that is no opinion and has a word of more than three letters
- supported (yes) by a passage (`P2: ...`) that has all its longer words, contradicted (no) where numbers or a "not"
  differ, else an opinion or unsupported (unsure); without any longer word none. It cites the passages that decide
- the source (`S: ...`) is such a passage
- how well an answer meets its prompt: full when it has all longer words of the prompt, partial when some, else none
- a passage is of use (yes) when it shares a longer word with the answer (`A: ...`), of high relevance when with the
  question (`? ...`); an answer's segment is relevant (yes) when it shares one with the question
- an answer meets a criterion (yes) when they share a longer word; it says a claim with all its longer words (exact in
  the same words, else semantic; contradicted where numbers or a "not" differ), partial with some, else missing
- a segment is added (yes) when it has a longer word and shares none with the reference answer (`G: ...`)
- noise are the longer words of the noisy input (`N: ...`) that are not in the clean one (`Q: ...`) or the reference
  answer; a segment with one stems from it (yes); the impact is none, minimal and so on by how many the answer has
- a tool call is appropriate (yes) when it shares a longer word with the question or a message (`M1: ...`); a tool is
  missing (yes) when what is told of it (`T1: name: ...`) shares one and no call (`C1: M2: name ...`) is of it
- toxic: "idiot" personal_attack, "clown" mockery, "vermin" hate_speech, "hush" dismissive, "beware" threat;
  severity: severe with "damned", mild with "silly", else moderate

Arrays of numbers list the segments that hold an opinion, or in an item the passages it cites; arrays of texts hold the
claims (or requirements, questions) of a segment; arrays of objects have one item for every number asked (or
what minItems and maxItems pin); a property named by a number is about that segment; enums take the first label that
the words call for, else "no", "none" or the first; numbers with bounds are as low as they may be.
"""

import re
from typing import Any

QUESTION = re.compile(r"^\? (.*)$", re.MULTILINE)
PASSAGE = re.compile(r"^P(\d{1,6}): (.*)$", re.MULTILINE)
EXHIBIT = re.compile(r"^([AGNQ]): (.*)$", re.MULTILINE)
SOURCE = re.compile(r"^(S): (.*)$", re.MULTILINE)
MESSAGE = re.compile(r"^M\d{1,6}: (.*)$", re.MULTILINE)
TOOL = re.compile(r"^T\d{1,6}: (\S+): (.*)$", re.MULTILINE)
CALL = re.compile(r"^C\d{1,6}: M\d+: (\S+) ", re.MULTILINE)
SEGMENT = re.compile(r"^\[(\d{1,6})\] (.*)$", re.MULTILINE)
WORD = re.compile(r"\w+")

OPINION = frozenset(
    {"always", "never", "every", "everybody", "nobody", "best", "worst", "should", "inferior", "superior"}
)
BIASED = frozenset({"inferior", "superior"})
CATEGORIES = {"women": "gender", "party": "political", "tribe": "racial_ethnic", "village": "geographical"}
ELEMENTS = {
    "idiot": "personal_attack",
    "clown": "mockery",
    "vermin": "hate_speech",
    "hush": "dismissive",
    "beware": "threat",
}
SEVERITIES = {"damned": "severe", "silly": "mild"}
IMPACTS = ("none", "minimal", "moderate", "significant", "severe")
NOTHING_FOUND = ("no", "none")


class Said:
    """A piece of text, whether it is an opinion, the labels that its words call for, and the passages it cites."""

    __slots__ = ("cited", "labels", "opinion", "text", "words")

    def __init__(self, text: str) -> None:
        self.text = text
        self.cited: list[int] = []
        self.words = words = frozenset(WORD.findall(text.lower()))
        self.opinion = not words.isdisjoint(OPINION)
        self.labels = {"fair" if self.opinion else "fact"}
        if not words.isdisjoint(BIASED):
            self.labels = {"yes", *(CATEGORIES[word] for word in words & CATEGORIES.keys())}
            if len(self.labels) == 1:
                self.labels.add("other")
        if elements := [ELEMENTS[word] for word in words & ELEMENTS.keys()]:
            severity = next((SEVERITIES[word] for word in words & SEVERITIES.keys()), "moderate")
            self.labels |= {severity, *elements, *(f"{element}_{severity}" for element in elements)}

    @property
    def longer(self) -> frozenset[str]:
        """Its words of more than three letters."""
        return frozenset(word for word in self.words if len(word) > 3 and word.isalpha())

    @property
    def claims(self) -> list[str]:
        """The claims it makes."""
        parts = [] if self.opinion else self.text.split(";")
        return [part.strip() for part in parts if Said(part).longer]

    def grounds(self, passages: dict[int, "Said"]) -> None:
        """Take the labels that these passages call for."""
        about = {number: passage for number, passage in passages.items() if self.longer <= passage.longer}
        agreeing = [number for number, passage in about.items() if self.agrees(passage)]
        if not self.longer:
            self.labels = {"none"}
        elif about and not self.opinion:
            self.cited = agreeing or list(about)
            self.labels = {"yes", "supported"} if agreeing else {"no", "contradicted"}
        else:
            self.labels = {"unsure", "opinion" if self.opinion else "unsupported"}

    def agrees(self, passage: "Said") -> bool:
        """Return whether neither numbers nor a "not" differ."""
        numbers = {word for word in self.words if word.isdecimal()}
        return numbers <= passage.words and ("not" in self.words) == ("not" in passage.words)

    def serves(self, question: "Said", answer: "Said") -> None:
        """Take the labels of a passage that was fetched for a question and may have served an answer."""
        used, high = bool(self.longer & answer.longer), bool(self.longer & question.longer)
        self.labels = {"yes" if used else "no", "high" if high else "none"}
        self.labels |= {"high_used" if used else "high_unused"} if high else set()

    def is_said_by(self, answer: "Said") -> None:
        """Take the label that tells what an answer makes of it, beside those it has."""
        if not self.claims:
            self.labels.add("none")
        elif self.longer <= answer.longer:
            said = "exact" if self.text.rstrip(".").lower() in answer.text.lower() else "semantic"
            self.labels.add(said if self.agrees(answer) else "contradicted")
        else:
            self.labels.add("partial" if self.longer & answer.longer else "missing")

    def adds_to(self, reference: "Said") -> None:
        """Take the label that tells whether it says something else than a reference answer."""
        self.labels = {"yes" if self.claims and not self.longer & reference.longer else "no"}

    def stems_from(self, noise: frozenset[str], answer: "Said") -> None:
        """Take the labels that tell what noise has done to it, and to an answer."""
        impact = min(len(answer.longer & noise), len(IMPACTS) - 1)
        self.labels = {"yes" if self.longer & noise else "no", IMPACTS[impact]}

    def is_due(self, asked: "Said", tools: dict[str, "Said"], called: set[str]) -> None:
        """Take the label of a tool call that was asked for, or of a tool that was not called."""
        due = tools.get(self.text, self).longer & asked.longer and self.text not in called
        self.labels = {"yes" if due else "no"}


NOTHING = Said("")


def instance(schema: dict[str, Any], user: str) -> Any:
    """Return a JSON value that satisfies schema, chosen by the words in user."""
    segments = {int(number): Said(text) for number, text in SEGMENT.findall(user)}
    question = Said("\n".join(QUESTION.findall(user)))
    lines: dict[int, list[str]] = {}
    for number, text in PASSAGE.findall(user) + SOURCE.findall(user):
        lines.setdefault(int(number) if number.isdecimal() else 1, []).append(text)
    passages = {number: Said("\n".join(texts)) for number, texts in lines.items()}
    exhibits = {mark: Said("\n".join(text for one, text in EXHIBIT.findall(user) if one == mark)) for mark in "AGNQ"}
    tools = {name: Said(told) for name, told in TOOL.findall(user)}
    asked = Said("\n".join([question.text, *MESSAGE.findall(user)]))
    for said in segments.values():
        if tools:
            said.is_due(asked, tools, set(CALL.findall(user)))
        else:
            _compare(said, question, passages, exhibits)
    return _Writer(schema, segments, question, exhibits["A"]).value(schema, NOTHING, None)


def _compare(said: Said, question: Said, passages: dict[int, Said], exhibits: dict[str, Said]) -> None:
    answer, reference, noisy, clean = (exhibits[mark] for mark in "AGNQ")
    if passages:
        said.grounds(passages)
    elif noisy.text:
        said.stems_from(noisy.longer - clean.longer - reference.longer, answer)
    elif reference.text:
        said.adds_to(reference)
    elif answer.text:
        said.serves(question, answer)
        said.is_said_by(answer)


class _Writer:
    def __init__(self, root: dict[str, Any], segments: dict[int, Said], question: Said, answer: Said) -> None:
        self.root = root
        self.question = question
        self.answer = answer
        self.segments = segments

    def value(self, schema: dict[str, Any], said: Said, number: int | None) -> Any:
        """Return a value for a part of the schema that is about this segment."""
        if "type" not in schema:
            schema = self.resolved(schema)
        if "enum" in schema:
            return number if number in schema["enum"] else self.label(schema["enum"], said)
        kind = schema.get("type")
        if kind == "object":
            return {name: self.member(name, part, said, number) for name, part in schema.get("properties", {}).items()}
        if kind == "array":
            return self.items(schema, said, number)
        if kind == "string":
            return reason(said)[: schema.get("maxLength", 1_000)]
        if "minimum" in schema or "maximum" in schema:
            return schema.get("minimum", schema.get("maximum"))
        if kind in {"integer", "number"}:
            return number if number is not None else 0
        return "yes" in said.labels if kind == "boolean" else schema.get("const")

    def member(self, name: str, part: dict[str, Any], said: Said, number: int | None) -> Any:
        return self.item(part, int(name)) if name.isdecimal() else self.value(part, said, number)

    def item(self, part: dict[str, Any], number: int) -> Any:
        return self.value(part, self.segments.get(number, NOTHING), number)

    def label(self, labels: list[Any], said: Said) -> Any:
        """Return the label that the words call for; one that may be unsure is about the question, if there is one."""
        if "unsure" in labels and self.question.text and not said.labels & {"unsure", "supported", "contradicted"}:
            return "yes" if said.longer & self.question.longer else "no" if said.longer else "none"
        if "full" in labels:
            met = self.question.longer & self.answer.longer
            return "full" if met == self.question.longer else "partial" if met else "none"
        return label(labels, said)

    def items(self, schema: dict[str, Any], said: Said, number: int | None) -> list[Any]:
        part = self.resolved(schema.get("items", {}))
        if part.get("type") == "string" and number is not None:
            longest = part.get("maxLength", 1_000)
            return [claim[:longest].strip() for claim in said.claims[: schema.get("maxItems", 1_000)]]
        if part.get("type") == "integer" and number is not None:
            return [one for one in said.cited if one in part.get("enum", said.cited)]
        numbers = list(self.segments) if part.get("type") == "object" else self.opinions()
        least, most = schema.get("minItems", 0), schema.get("maxItems", len(numbers))
        numbers += [number for number in range(1, least + 1) if number not in numbers]
        return [self.item(part, number) for number in numbers[: max(least, most)]]

    def opinions(self) -> list[int]:
        return [number for number, said in self.segments.items() if said.opinion]

    def resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in schema or "anyOf" in schema:
            if "anyOf" in schema:
                schema = schema["anyOf"][0]
                continue
            target: Any = self.root
            for key in schema["$ref"].removeprefix("#/").split("/"):
                target = target[key]
            schema = target
        return schema


def label(labels: list[Any], said: Said) -> Any:
    """Return the label that the words call for, or the one for nothing found."""
    called_for = (name for name in labels if name in said.labels)
    nothing_found = (name for name in NOTHING_FOUND if name in labels)
    return next(called_for, next(nothing_found, labels[0]))


def reason(said: Said) -> str:
    """Return words that tell which segment they are about."""
    return f"The words of “{said.text[:40]}” decide." if said.text else "The words of the text decide."
