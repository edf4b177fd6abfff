"""The stub itself: what other tests build on."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.stub_judge.answers import instance
from tests.stub_judge.process import StubProcess
from tests.stub_judge.script import Script

USER = """Decide.
<evidence-ab12>
? [9] Not a segment of the text?
- The sky is always blue.
[1] The women there are always inferior.
[2] Water boils at a hundred degrees.
[3] You damned idiot should leave!
</evidence-ab12>"""

VERDICT = {
    "type": "object",
    "required": ["n", "reason", "verdict", "category"],
    "additionalProperties": False,
    "properties": {
        "n": {"type": "integer", "enum": [1, 2, 3]},
        "reason": {"type": "string", "maxLength": 12},
        "verdict": {"type": "string", "enum": ["yes", "no"]},
        "category": {"type": "string", "enum": ["political", "gender", "other", "none"]},
    },
}
NUMBERS = {"type": "array", "maxItems": 3, "items": {"type": "integer", "enum": [1, 2, 3]}}


def asked(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
        "$defs": {"label": {"enum": ["none", "personal_attack_mild", "personal_attack_severe"]}},
    }


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"opinions": NUMBERS}, [1, 3]),
        (
            {"verdicts": {"type": "array", "minItems": 3, "maxItems": 3, "items": VERDICT}},
            [(1, "yes", "gender"), (2, "no", "none"), (3, "no", "none")],
        ),
        (
            {"labels": {"type": "object", "properties": {str(n): {"$ref": "#/$defs/label"} for n in (1, 2, 3)}}},
            {"1": "none", "2": "none", "3": "personal_attack_severe"},
        ),
    ],
)
def test_answers_fit_the_schema_and_follow_the_words(properties: dict[str, Any], expected: Any) -> None:
    schema = asked(**properties)

    reply = instance(schema, USER)

    Draft202012Validator(schema).validate(reply)
    (found,) = reply.values()
    if isinstance(found, list) and found and isinstance(found[0], dict):
        found = [(item["n"], item["verdict"], item["category"]) for item in found]
    assert found == expected


GROUNDED = """Decide.
<evidence-ab12>
? How high is the tower?
P1: The tower has 5 floors.
P3: The foxes are not lazy.
[1] The tower has 4 floors.
[2] The foxes are not lazy.
[3] The tower is green.
[4] Hi.
</evidence-ab12>"""
SERVING = """Decide.
<evidence-ab12>
? How high is the tower?
A: The floors are five.
[1] The tower has 5 floors.
[2] The tower is green.
[3] The foxes are lazy.
</evidence-ab12>"""
ADDING = """Decide.
<evidence-ab12>
G: The tower has 5 floors.
[1] The tower is high.
[2] Foxes sing there.
[3] Hi.
</evidence-ab12>"""
NOISY = """Decide.
<evidence-ab12>
Q: How high is the tower?
N: How hihg is the tower? Foxes bark.
G: The tower has 5 floors.
A: It has five floors. Foxes bark.
[1] It has five floors.
[2] Foxes bark.
[3] Hi.
</evidence-ab12>"""
ANSWERING = """Decide.
<evidence-ab12>
? How high is the tower?
[1] The tower has 5 floors; it is green.
[2] The foxes should sing.
[3] Hi.
</evidence-ab12>"""


SAID = ["partial", "missing", "missing"]


def label_map(*labels: str, count: int = 3) -> dict[str, Any]:
    return {"labels": {"type": "object", "properties": {str(n + 1): {"enum": list(labels)} for n in range(count)}}}


@pytest.mark.parametrize(
    ("user", "properties", "expected"),
    [
        (GROUNDED, label_map("yes", "no", "unsure", "none", count=4), ["no", "yes", "unsure", "none"]),
        (
            GROUNDED,
            label_map("supported", "contradicted", "opinion", "unsupported", "none", count=4),
            ["contradicted", "supported", "unsupported", "none"],
        ),
        (SERVING, label_map("yes", "no"), ["yes", "no", "no"]),
        (SERVING, label_map("high_used", "high_unused", "medium", "low", "none"), ["high_used", "high_unused", "none"]),
        (SERVING, label_map("exact", "semantic", "contradicted", "partial", "missing", "none"), SAID),
        (ADDING, label_map("no", "yes"), ["no", "yes", "no"]),
        (NOISY, label_map("no", "yes"), ["no", "yes", "no"]),
        (NOISY, label_map("none", "minimal", "moderate", "significant", "severe"), ["moderate"] * 3),
        (ANSWERING, label_map("yes", "unsure", "no", "none"), ["yes", "no", "none"]),
        (SERVING, label_map("full", "partial", "none", count=1), ["none"]),
        (SERVING.replace("five", "high"), label_map("full", "partial", "none", count=1), ["partial"]),
        (SERVING.replace("are five", "have a tower high"), label_map("full", "partial", "none", count=1), ["full"]),
        (GROUNDED.replace("P1", "S").replace("P3", "S"), label_map("yes", "no", "unsure", count=2), ["no", "yes"]),
    ],
)
def test_labels_that_compare(user: str, properties: dict[str, Any], expected: list[str]) -> None:
    (found,) = instance(asked(**properties), user).values()
    assert list(found.values()) == expected


def test_claims_and_the_passages_they_cite() -> None:
    texts = {"type": "array", "maxItems": 2, "items": {"type": "string"}}
    cited = {"type": "array", "items": {"type": "integer", "enum": [1, 3]}}
    for user, key, part, expected in (
        (ANSWERING, "claims", texts, [["The tower has 5 floors", "it is green."], [], []]),
        (GROUNDED, "passages", cited, [[1], [3], [], []]),
    ):
        item = asked(n={"type": "integer", "enum": [1, 2, 3, 4]}, **{key: part})
        (found,) = instance(asked(items={"type": "array", "items": item}), user).values()
        assert [entry[key] for entry in found] == expected


def test_rules_apply_in_order_to_the_calls_they_are_for() -> None:
    script = Script()
    script.add(
        [{"match": "tea", "status": 500}, {"when": {"seed": None}, "status": 400}, {"times": None, "status": 204}]
    )

    statuses = [script.choose(body, prompt).status for body, prompt in (({}, "tea"), ({"seed": 1}, "tea"), ({}, "tea"))]

    assert statuses == [500, 400, 204]


def test_a_misspelt_rule_is_refused() -> None:
    with pytest.raises(ValueError, match="delay"):
        Script().add({"delay": 5})


def test_the_process_answers_is_scripted_and_forgets() -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": USER}]}
    with StubProcess() as stub:
        stub.script({"reply": "scripted"}, {"miscount": "drop"})
        first = stub.ask("POST", "/v1/chat/completions", body)
        calls = stub.calls()
        stub.reset()

        assert first["choices"][0]["message"]["content"] == "scripted"
        assert stub.ask("GET", "/v1/models")["data"]
        assert calls["total"] == 1
        assert calls["requests"][0]["body"] == body
        assert stub.calls()["total"] == 0
    assert stub.process is not None
    assert stub.process.returncode == 0


@pytest.mark.parametrize(("how", "count"), [("drop", 2), ("duplicate", 4), ("add", 4)])
def test_miscounts(how: str, count: int) -> None:
    schema = asked(verdicts={"type": "array", "minItems": 3, "maxItems": 3, "items": VERDICT})
    body = {
        "messages": [{"role": "user", "content": USER}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
    }
    with StubProcess() as stub:
        stub.script({"miscount": how})
        content = stub.ask("POST", "/v1/chat/completions", body)["choices"][0]["message"]["content"]

    assert content.count('"n"') == count
