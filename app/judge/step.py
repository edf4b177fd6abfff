"""A judge step of one run: windows that fit the model, the cache, exchanges side by side, and their counts."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from app.domain.errors import AssayError, ContextOverflow, JudgeError
from app.judge.answers import Answers
from app.judge.evidence import Evidence, Room, Window
from app.judge.exchange import Exchange, Show, free_tokens, prompt_for
from app.judge.labels import text_in
from app.judge.loose_json import loads
from app.judge.reading import Numbers
from app.judge.tally import Tally
from app.judge.task import Answer, Task, reply_form
from app.ports import ChatModel, Completion, Prompt, Slot, Source, Telemetry

Result = TypeVar("Result")

WINDOWS_AT_ONCE = 4
MOST_SEGMENTS = 20_000
"""With more than these a run fails before any call: a step would take over 500 calls, longer than a run may last.
A megabyte of usual prose has about half as many; texts of very short lines (logs, lists of words) have more.
"""
MOST_PAGED_WINDOWS = 500
"""The same where texts to compare with are shown page by page, and every unit is asked about beside every page."""
WINDOWS_SHOWN = 8
"""Prompts about more windows than these are not kept on a run one by one: they repeat the text, in one form."""


@dataclass(frozen=True, slots=True)
class Asker:
    """Asks one run's questions of one model; `sample` as in ports.Prompt."""

    scorer_id: str
    model: ChatModel
    answers: Answers
    telemetry: Telemetry
    tally: Tally
    slot: Slot | None = None
    sample: int = 0

    def plan(self, task: Task[Any], evidence: Evidence, items: Sequence[int], preamble: str) -> list[Window]:
        """Return the windows that ask about items (unit indexes).

        Raises ContextOverflow when one can't fit, when there are more items than MOST_SEGMENTS, and when several pages
        of exhibits take more windows than MOST_PAGED_WINDOWS.
        """
        if len(items) > MOST_SEGMENTS:
            raise ContextOverflow(
                f"The text has {len(items):,} {task.units} and at most {MOST_SEGMENTS:,} can be judged in one run; "
                "split the text, or join its short lines"
            )
        user = user_message(task, preamble, evidence, Window((), neighbours=False), ())
        free = free_tokens(task, self.model, user, (1,)) - task.tokens_once
        schema_per_item = reply_form(task, range(1, 12)).tokens - reply_form(task, range(1, 11)).tokens
        answerable = (self.model.max_output_tokens - task.tokens_once) // task.tokens_per_item
        room = Room(free, task.tokens_per_item + schema_per_item, max(1, min(task.items_per_call, answerable)))
        windows = evidence.windows(items, room)
        if len(windows) > MOST_PAGED_WINDOWS and windows[0].page != windows[-1].page:
            raise ContextOverflow(
                f"To compare with texts of this length would take {len(windows):,} calls, and one run may take "
                f"{MOST_PAGED_WINDOWS} for it; use a model with a larger context, or send less"
            )
        return windows

    def prompt_text(self, task: Task[Any], evidence: Evidence, windows: Sequence[Window], preamble: str) -> str:
        """Return the prompts about windows as they are shown to people: the instructions once, then each.

        After the first WINDOWS_SHOWN there only stands how many more there are.
        """
        users = [user_message(task, preamble, evidence, window, window.numbers) for window in windows[:WINDOWS_SHOWN]]
        left_out = len(windows) - len(users)
        return "\n\n".join([task.system, *users, *[f"(and {left_out} more of the same form)"] * bool(left_out)])

    async def ask_windows(
        self, task_of: Callable[[Window], Task[Answer]], evidence: Evidence, windows: Sequence[Window], preamble: str
    ) -> dict[int, list[Answer]]:
        """Return the answers by unit index, one for every page, a few windows at once.

        Raises the first error; the other windows are then given up.
        """
        free = asyncio.Semaphore(WINDOWS_AT_ONCE)

        async def ask_window(window: Window) -> dict[int, Answer]:
            task = task_of(window)

            def show(numbers: Numbers) -> str:
                return user_message(task, preamble, evidence, window, numbers)

            async with free:
                answers = await self.ask(task, window.numbers, show)
            return {window.items[number - 1]: answer for number, answer in answers.items()}

        by_unit: dict[int, list[Answer]] = {}
        for answers in await side_by_side([ask_window(window) for window in windows]):
            for index, answer in answers.items():
                by_unit.setdefault(index, []).append(answer)
        return by_unit

    async def ask(self, task: Task[Answer], numbers: Numbers, show: Show) -> dict[int, Answer]:
        """Return the answers to one prompt by item number, from the cache or from the judge."""
        line = _Line(self, task)

        async def ask_judge() -> bytes:
            answers = await Exchange(task, self.model, numbers, show, line).answers()
            return json.dumps({"model": line.model, "reply": task.write(answers)}, sort_keys=True).encode()

        def read(stored: bytes) -> tuple[str, dict[int, Answer]] | None:
            return _stored_answers(stored, task, numbers)

        prompt = prompt_for(task, self.model, show(numbers), numbers)
        (model, answers), source = await self.answers.get(prompt, ask_judge, read)
        self.tally.answered(self.model.id, source, model, 0 if source is Source.LLM else len(numbers))
        return answers


class _Line:
    """The line to the judge, counting what it costs."""

    def __init__(self, asker: Asker, task: Task[Any]) -> None:
        self._asker = asker
        self._task = task
        self.model = asker.model.id

    async def complete(self, prompt: Prompt) -> Completion:
        asker = self._asker
        sampled = replace(prompt, sample=asker.sample)
        completion = await asker.model.complete(sampled, deadline=asker.answers.deadline, slot=asker.slot)
        self.model = completion.model
        asker.tally.called(asker.model.id, completion)
        return completion

    def was_invalid(self, error: JudgeError) -> None:
        self._asker.telemetry.reply_invalid(self._asker.scorer_id, self._task.step, error.reason or "refused")

    def were_judged(self, count: int) -> None:
        self._asker.tally.judged += count


def _stored_answers(stored: bytes, task: Task[Answer], numbers: Numbers) -> tuple[str, dict[int, Answer]] | None:
    """Return who answered and the answers, or None when stored bytes are not a whole answer."""
    try:
        document = loads(stored.decode())
        model, answers = text_in(document["model"]), task.read(document["reply"], numbers)
    except (ValueError, TypeError, KeyError, AssayError):
        return None
    return (model, answers) if model is not None and len(answers) == len(numbers) else None


def user_message(task: Task[Any], preamble: str, evidence: Evidence, window: Window, numbers: Numbers) -> str:
    """Return the message that asks about the items of a window that have these numbers."""
    return f"{preamble}{task.units.capitalize()} to decide on: {len(numbers)}.\n{evidence.show(window, numbers)}"


async def side_by_side(asked: Sequence[Coroutine[Any, Any, Result]]) -> list[Result]:
    """Return what these give, awaited at once; raises the first error when the others are given up."""
    if len(asked) == 1:
        return [await asked[0]]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in asked]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
