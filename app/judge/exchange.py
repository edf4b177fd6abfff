"""One exchange with the judge: a prompt, its reply, and re-asks until every item is answered or patience ends."""

from collections.abc import Callable
from dataclasses import replace
from typing import Generic, Protocol

from app.domain.errors import ContextOverflow, EmptyReply, JudgeError, TruncatedReply, UnreadableReply, WrongReply
from app.judge.parse import answer_in
from app.judge.reading import Numbers
from app.judge.task import Answer, Task, reply_form
from app.judge.tokens import fixed_token_bound, token_bound
from app.ports import ChatModel, Completion, Prompt

RE_ASKS = 2
_REMINDER = (
    "Your last reply was of no use. Reply with the JSON object alone, complete and in exactly the form described."
)
_MARGIN = 96  # tokens: the reminder, and what a provider's chat format adds
_ROOMY_REPLY = 512

Show = Callable[[Numbers], str]
"""Returns the user message about the items with these numbers."""


class Line(Protocol):
    """The line to the judge, with someone who listens in."""

    async def complete(self, prompt: Prompt) -> Completion:
        """Send a prompt and return the reply."""
        ...

    def was_invalid(self, error: JudgeError) -> None:
        """Hear that a reply, or a part of one, was of no use."""
        ...

    def were_judged(self, count: int) -> None:
        """Hear that so many more items are answered."""
        ...


def free_tokens(task: Task[Answer], model: ChatModel, user: str, numbers: Numbers) -> int:
    """Return how many tokens of the model's context instructions, schema and user message leave for the rest."""
    form = reply_form(task, numbers)
    return model.context_tokens - fixed_token_bound(task.system) - form.tokens - token_bound(user) - _MARGIN


def prompt_for(task: Task[Answer], model: ChatModel, user: str, numbers: Numbers) -> Prompt:
    """Return the prompt about these items; raises ContextOverflow when it and its reply can't fit the model."""
    free = free_tokens(task, model, user, numbers)
    needed = min(task.reply_tokens(len(numbers)), model.max_output_tokens)
    if free < needed:
        raise ContextOverflow("The text does not fit the judge model's context; use a model with a larger context")
    roomy = min(_ROOMY_REPLY, model.context_tokens // 8, free, model.max_output_tokens)
    return Prompt(task.system, user, reply_form(task, numbers).schema, task.name, max(needed, roomy), task.logprobs)


class Exchange(Generic[Answer]):
    """A bounded exchange about numbered items.

    Missing answers are asked for again, RE_ASKS times at most. A reply that could not be read is asked for once more
    with a reminder of the form, one that was cut once more with twice the room. A refusal ends the exchange.
    """

    def __init__(self, task: Task[Answer], model: ChatModel, numbers: Numbers, show: Show, line: Line) -> None:
        self._task = task
        self._model = model
        self._numbers = numbers
        self._show = show
        self._line = line
        self._answers: dict[int, Answer] = {}
        self._re_asks_left = RE_ASKS
        self._reminded = False
        self._remind = False
        self._larger_reply = 0

    async def answers(self) -> dict[int, Answer]:
        """Return an answer for every item; raises JudgeError when patience ends, and what the line raises."""
        while missing := self._missing:
            prompt = self._prompt(missing)
            completion = await self._line.complete(prompt)
            self._remind = True
            try:
                value = answer_in(completion, self._task.key, prompt.user)
                self._take(self._task.read(value, missing, completion))
            except JudgeError as error:
                self._line.was_invalid(error)
                self._bear(error, prompt, missing)
        return self._answers

    @property
    def _missing(self) -> list[int]:
        return [number for number in self._numbers if number not in self._answers]

    def _prompt(self, numbers: Numbers) -> Prompt:
        prompt = prompt_for(self._task, self._model, self._show(numbers), numbers)
        user = f"{_REMINDER}\n{prompt.user}" if self._remind else prompt.user
        return replace(prompt, user=user, max_tokens=max(prompt.max_tokens, self._larger_reply))

    def _take(self, answers: dict[int, Answer]) -> None:
        self._remind = not answers
        self._answers |= answers
        self._line.were_judged(len(answers))
        if self._missing:
            raise WrongReply(
                f"The judge gave usable answers for {len(self._answers)} of {len(self._numbers)} items, "
                "re-asks included; try again or use a model that follows a JSON schema"
            )

    def _bear(self, error: JudgeError, prompt: Prompt, numbers: Numbers) -> None:
        """Make ready for another prompt, or raise the error when there shall be none."""
        if isinstance(error, WrongReply) and self._re_asks_left:
            self._re_asks_left -= 1
        elif isinstance(error, TruncatedReply) and not self._larger_reply:
            self._remind = False
            free = free_tokens(self._task, self._model, prompt.user, numbers)
            self._larger_reply = min(2 * prompt.max_tokens, self._model.max_output_tokens, free)
            if self._larger_reply <= prompt.max_tokens:
                raise error
        elif isinstance(error, EmptyReply | UnreadableReply) and not self._reminded:
            self._reminded = True
        else:
            raise error
