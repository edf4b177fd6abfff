"""The variants of the OpenAI chat API that providers speak, and how a refusal teaches which one."""

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from app.adapters.chat_complaint import Complaint


class ReplyFormat(StrEnum):
    """How the form of the reply is asked for, the most exact first."""

    STRICT = "json_schema, strict"
    UNBOUNDED = "json_schema, strict, without counts and lengths"
    LOOSE = "json_schema, not strict, without counts and lengths"
    OBJECT = "json_object"
    PROMPT = "prompt only"


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one model understands; it only ever gets narrower, so that learning ends.

    `token_fields` are the names left to try for the token limit, the first in use; `dropped` are parameters not sent;
    `most_logprobs` is how many likeliest tokens may be asked for (0: logprobs are not asked for at all).
    """

    reply_format: ReplyFormat = ReplyFormat.STRICT
    token_fields: tuple[str, ...] = ("max_tokens", "max_completion_tokens")
    system_role: bool = True
    dropped: frozenset[str] = frozenset()
    most_logprobs: int = 20

    def without(self, complaint: Complaint) -> "Dialect | None":
        """Return the dialect that avoids what the provider complained about, or None when nothing explains it."""
        for narrower in (
            self._fewer_logprobs,
            self._other_token_field,
            self._fewer_parameters,
            self._simpler_format,
            self._no_system_role,
        ):
            learned = narrower(complaint)
            if learned is not None:
                return learned
        return None

    def _fewer_logprobs(self, complaint: Complaint) -> "Dialect | None":
        if not self.most_logprobs or not about_logprobs(complaint):
            return None
        too_many = complaint.names("top_logprobs") or complaint.mentions("max", "at most", "greater than", "less than")
        return replace(self, most_logprobs=_FEW_LOGPROBS if too_many and self.most_logprobs > _FEW_LOGPROBS else 0)

    def _other_token_field(self, complaint: Complaint) -> "Dialect | None":
        if not self.token_fields or not complaint.names(self.token_fields[0]):
            return None
        if complaint.mentions("too large", "too big", "at most", "less than or equal"):
            return None
        return replace(self, token_fields=self.token_fields[1:])

    def _fewer_parameters(self, complaint: Complaint) -> "Dialect | None":
        for name in ("temperature", "top_p", "seed"):
            if name not in self.dropped and complaint.names(name):
                return replace(self, dropped=self.dropped | {name})
        return None

    def _simpler_format(self, complaint: Complaint) -> "Dialect | None":
        if self.reply_format is ReplyFormat.PROMPT or not complaint.mentions(*_FORMAT_WORDS):
            return None
        return replace(self, reply_format=_simpler(self.reply_format, complaint))

    def _no_system_role(self, complaint: Complaint) -> "Dialect | None":
        if self.system_role and _SYSTEM_ROLE.search(complaint.text):
            return replace(self, system_role=False)
        return None


FULL = Dialect()


def about_logprobs(complaint: Complaint) -> bool:
    """Return whether logprobs are what the provider complains about; some do so with 403 or 500."""
    return complaint.mentions("logprob")


def about_format(complaint: Complaint) -> bool:
    """Return whether the parameter that asks for JSON is named in the complaint."""
    return complaint.names("response_format")


_FEW_LOGPROBS = 5  # as many as any known provider gives that gives them at all

_FORMAT_WORDS = (
    "response_format",
    "response format",
    "response_schema",
    "response schema",
    "json_schema",
    "json schema",
    "json_object",
    "json mode",
    "structured output",
    "guided",
    "grammar",
)
_LIMITS = re.compile(
    r"(min|max)_?(items|length|imum)|uniqueitems|pattern|unsupported (json )?(schema )?(field|keyword)"
)
_SYSTEM_ROLE = re.compile(
    r"system (role|message|prompt|instruction)|developer instruction|roles must alternate|'system'|\"system\""
)


def _simpler(current: ReplyFormat, complaint: Complaint) -> ReplyFormat:
    if current is ReplyFormat.OBJECT:
        return ReplyFormat.PROMPT
    if current is ReplyFormat.STRICT and _LIMITS.search(complaint.text):
        return ReplyFormat.UNBOUNDED
    if current is not ReplyFormat.LOOSE and complaint.mentions("strict", "invalid schema", "invalid json schema"):
        return ReplyFormat.LOOSE
    return ReplyFormat.OBJECT
