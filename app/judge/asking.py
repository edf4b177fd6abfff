"""Put a step's questions: each to all of its askers at once, planned once for every model."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from app.domain.errors import AssayError, ContextOverflow
from app.judge.evidence import Window
from app.judge.language import told
from app.judge.questions import Question
from app.judge.step import MOST_SEGMENTS, Asker, side_by_side
from app.judge.task import Answer
from app.ports import ChatModel

Computed = Callable[..., Awaitable[Any]]
"""Gives what a function gives, computed where it does not stand in others' way."""


class Plan(NamedTuple):
    """How a question is put to a model: what its messages begin with, its windows, its prompts as people see them."""

    preamble: str
    windows: list[Window]
    prompts: str


class Put(NamedTuple):
    """A question as it is put to one asker."""

    question: Question[Any]
    asker: Asker
    plan: Plan


async def planned(questions: Sequence[Question[Any]], language: str | None, computed: Computed) -> list[Put]:
    """Return the questions as they are put to each of their askers; raises ContextOverflow."""
    puts = []
    for question in questions:
        _refuse_too_many(question)
        plans: dict[str, Plan] = {}
        for asker in question.askers:
            with naming(asker.model, question):
                if asker.model.id not in plans:
                    plans[asker.model.id] = await computed(_plan, question, asker, language)
            puts.append(Put(question, asker, plans[asker.model.id]))
    return puts


def _refuse_too_many(question: Question[Any]) -> None:
    askers = len(question.askers)
    if askers > 1 and len(question.items) * askers > MOST_SEGMENTS:
        raise ContextOverflow(
            f"{askers} judgements on each of {len(question.items):,} {question.widest.units} are more than the "
            f"{MOST_SEGMENTS:,} that one run may take; ask for fewer samples or models, or split the text"
        )


def _plan(question: Question[Any], asker: Asker, language: str | None) -> Plan:
    task, evidence = question.widest, question.evidence
    spoken = told(language, "the lines with A:" if evidence.shows_output else "the numbered lines")
    preamble = f"Write reasons in {spoken}.\n" if task.reasons else ""
    windows = asker.plan(task, evidence, question.items, preamble)
    return Plan(preamble, windows, asker.prompt_text(task, evidence, windows, preamble))


async def answered(puts: Sequence[Put]) -> list[dict[int, list[Any]]]:
    """Return the answers to each by unit index, all asked for at once; raises the first error."""
    return await side_by_side([_answered(put) for put in puts])


async def _answered(put: Put) -> dict[int, list[Any]]:
    question, asker, plan = put
    with naming(asker.model, question):
        return await asker.ask_windows(question.task_of, question.evidence, plan.windows, plan.preamble)


@contextmanager
def naming(model: ChatModel, question: Question[Answer]) -> Iterator[None]:
    """Have errors name the model, where a question is put to several."""
    try:
        yield
    except AssayError as error:
        if all(asker.model is model for asker in question.askers):
            raise
        raise error.of(model.id) from error
