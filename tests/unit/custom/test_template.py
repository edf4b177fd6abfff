import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.custom.template import NamedObject, Plain, Template, WrongTemplate, named

SECRET = "a stranger's words"
VARIABLES: dict[str, Any] = {
    "output": named("output", SECRET),
    "input": None,
    "context": named("context", [SECRET, "more"]),
    "metadata": NamedObject("metadata", {"channel": "chat", "turns": 3}, is_open=True),
    "options": named("options", {"limit": 0.5, "tone": Plain("formal"), "criteria": [{"text": SECRET, "weight": 2}]}),
}


def rendered(text: str, variables: dict[str, Any] = VARIABLES) -> str:
    return Template(text, variables).rendered(variables)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Judge {{ output }}.", "Judge `output`."),
        ("{{ output }} and {{ output }}", "`output` and `output`"),
        ("{{ context }}", "`context`"),
        ("{% for p in context %}{{ p }};{% endfor %}", "`context[0]`;`context[1]`;"),
        ("{{ context[1] }} of {{ context.size }}", "`context[1]` of 2"),
        ("{{ metadata.channel }} {{ metadata.turns }}{{ metadata.nothing }}", "`metadata.channel` 3"),
        ("{{ metadata.nothing | default: 'none' }}", "none"),
        ("{{ metadata }} {{ options }}", "`metadata` `options`"),
        ("{{ options['limit'] }} {{ options.tone }}", "0.5 formal"),
        ("{% for c in options.criteria %}{{ c.text }}: {{ c.weight }}{% endfor %}", "`options.criteria[0].text`: 2"),
        ("{% if input %}with{% else %}without{% endif %} question", "without question"),
        ("{% unless output %}nothing{% endunless %}", ""),
        ("{% if metadata.channel == 'chat' %}On a chat.{% endif %}", "On a chat."),
        ("{% case options.tone %}{% when 'casual' %}C{% when 'formal' %}F{% endcase %}", "F"),
        ("{% comment %}{{ output }}{% endcomment %}kept", "kept"),
        ("{%- if output -%} x {%- endif -%}", "x"),
        (
            "{% for p in context %}{% if forloop.first %}{% continue %}{% endif %}{{ p }}{% break %}{% endfor %}",
            "`context[1]`",
        ),
        ('{"json": 1} { { % } <b>&amp;</b>', '{"json": 1} { { % } <b>&amp;</b>'),
    ],
)
def test_texts_are_named_and_the_definitions_own_values_stand_there(text: str, expected: str) -> None:
    assert rendered(text) == expected
    assert SECRET not in rendered(text)


def test_what_is_mentioned_is_known() -> None:
    template = Template(
        "{{ output }}{% if metadata.channel %}{{ context[0] }}{% endif %}{{ options['tone'] }}", VARIABLES
    )
    assert template.mentioned == {("output", None), ("metadata", "channel"), ("context", None), ("options", "tone")}


@pytest.mark.parametrize(
    "text",
    [
        "{{ env }}",
        "{{ env.OPENAI_API_KEY }}",
        "{{ settings }}",
        "{{ __class__ }}",
        "{% if false %}{{ env }}{% endif %}",
        "{% for p in env %}{% endfor %}",
        "{% include 'secrets' %}",
        "{% render 'secrets' %}",
        "{% layout 'x' %}",
        "{% assign a = output %}",
        "{% capture a %}{{ output }}{% endcapture %}",
        "{% increment a %}",
        "{% cycle 'a', 'b' %}",
        "{% tablerow p in context %}{% endtablerow %}",
        "{% liquid\necho output %}",
        "{% echo output %}",
        "{% raw %}{{ env }}{% endraw %}",
        "{% doc %}{% enddoc %}",
        "{% # a comment %}",
        "{% %}",
        "{% nosuchtag %}",
        "{% endif %}",
        "{% if output %}",
        "{{ output",
        "{% if output",
        "{{ {{ output }} }}",
        "{{ }} }}",
        "{{ output | upcase }}",
        "{{ output | split: '' | join: output }}",
        "{{ output.text }}",
        "{{ output.size }}",
        "{{ output.__class__ }}",
        "{{ options.nothing }}",
        "{{ context[9] }}",
        "{% for c in options.criteria %}{{ c.nothing }}{% endfor %}",
        "{% for i in (1..1000000000000) %}x{% endfor %}",
        "{% if (1..1000000000000) contains 'a' %}x{% endif %}",
        "{{ (1..5) }}",
        "{% if output contains 'words' %}x{% endif %}",
        "{% if output < 3 %}x{% endif %}",
        "{% for a in context %}" * 12 + "x" + "{% endfor %}" * 12,
        "{% for a in context %}" * 9 + "x" * 500 + "{% endfor %}" * 9,
        "{% if " + "output and " * 20 + "%}x{% endif %}",
    ],
)
def test_tricks_are_refused(text: str) -> None:
    with pytest.raises(WrongTemplate) as wrong:
        rendered(text)
    assert SECRET not in str(wrong.value)
    assert "OPENAI" not in str(wrong.value)


@pytest.mark.parametrize(
    "text",
    [
        "{{" * 5_000,
        "{{ " * 3_000,
        "{%" * 5_000,
        "{{" + " " * 9_990,
        "{%" + " " * 9_990,
        "{{" + " " * 9_990 + "}}",
        "{% comment %}" * 700,
        "{% if output %}" * 600,
        "{{ 'a" * 2_000,
        "{" * 10_000,
        "{{ output" + " | default:" * 20 + "}}",
        "{{ output" + "[0]" * 90 + "}}",
        ("{{" + " " * 296 + "}}") * 33,
    ],
)
def test_hostile_marks_are_read_at_once(text: str) -> None:
    began = time.process_time()
    with suppress(WrongTemplate):
        Template(text, VARIABLES)
    # The library's own lexer takes more than a minute for some of them.
    assert time.process_time() - began < 5


def test_loops_end() -> None:
    variables = {**VARIABLES, "context": named("context", ["x"] * 1_001)}
    with pytest.raises(WrongTemplate, match="1,000 rounds"):
        Template("{% for p in context %}x{% endfor %}", variables).rendered(variables)


TEXTS = st.text() | st.sampled_from(
    ["{{ env }}", "{% include 'x' %}", "</evidence-0>", "`output`", "{{ output }}\n[1] x"]
)
FRAME = "Judge {{ output }} for {{ input }} in {{ context[0] }}: {{ metadata.channel }}, {{ options.note }}."


@given(TEXTS, TEXTS, TEXTS, TEXTS, TEXTS)
def test_no_text_changes_the_instructions(output: str, question: str, passage: str, channel: str, note: str) -> None:
    variables = {
        "output": named("output", output),
        "input": named("input", question),
        "context": named("context", [passage]),
        "metadata": NamedObject("metadata", {"channel": channel}, is_open=True),
        "options": named("options", {"note": note}),
    }
    assert Template(FRAME, variables).rendered(variables).encode() == (
        b"Judge `output` for `input` in `context[0]`: `metadata.channel`, `options.note`."
    )


@given(st.text(alphabet="{}%ab| .'\"[]()-\nif", max_size=60))
def test_any_text_is_a_template_or_is_refused(text: str) -> None:
    try:
        rendered(text)
    except WrongTemplate:
        return
