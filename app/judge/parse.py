"""Find the judge's answer in its reply: read tolerantly, judge strictly.

Every step asks for a JSON object with one key. Whatever stands around it is looked through (code fences, prose,
reasoning blocks, chat tokens), and an object that is wrapped once more is unwrapped. Only a whole document counts, and
only the judge's own final one: drafts in reasoning blocks, quotations and replies that were cut never yield a value.
Neither do two documents that contradict each other, a document beside a refusal or one that the prose after it takes
back.
"""

import re
from typing import Any, NamedTuple, NoReturn

from app.domain.errors import EmptyReply, JudgeRefused, TruncatedReply, UnreadableReply
from app.judge.loose_json import Contradiction, CutShort, NotJson, loads, read_at
from app.judge.quotation import is_given
from app.judge.refusal import is_refusal
from app.ports import Completion, FinishReason

_REASONING = "think|thinking|thought|reasoning|reflection"
_MARK = re.compile(
    rf"(?P<opened><(?:{_REASONING})>|\[THINK\])"
    rf"|(?P<closed></(?:{_REASONING})>|\[/THINK\]|<\|channel\|>\s*final\s*<\|message\|>)"
    r"|^[ \t]*(?P<quotes>>)"
    r"|[{\[]",
    re.IGNORECASE | re.MULTILINE,
)
_CLOSED = re.compile(rf"</(?:{_REASONING})>|\[/THINK\]", re.IGNORECASE)
_DOCUMENT = re.compile(r"\{\s*(?:[\"'“}]|[^\W\d]\w*\s*:|//|/\*|#)|\[\s*\{")
_FENCE = re.compile(r"```[\w-]*")
_NOTHING = re.compile(r"(?:[\s`,;]|json|<[|｜]?/?\w{1,24}[|｜]?>)*", re.IGNORECASE)
_FINAL = re.compile(r"final|correct|revis|on reflection|définiti|definitiv|endgültig|最终|最終|최종", re.IGNORECASE)
_NO_ANSWER = ("error", "refusal", "refused")
_IN_SIGHT = 160
_MAX_BROKEN = 20


class _Document(NamedTuple):
    answer: Any
    start: int
    end: int
    before: str
    stands_alone: bool


def answer_in(completion: Completion, key: str, shown: str = "") -> Any:
    """Return the value under key in the reply's JSON document; keys of all objects come back in lower case.

    `shown` is what the judge was shown: a document of it that the reply repeats among prose is a quotation.
    Raises TruncatedReply, JudgeRefused, EmptyReply or UnreadableReply.
    """
    if completion.finish is FinishReason.REFUSAL:
        _refused()
    if completion.finish is FinishReason.LENGTH:
        raise TruncatedReply("The judge's reply was cut at its token limit; give the model a larger output limit")
    text = completion.text.strip().removeprefix("\ufeff").strip()
    if not text:
        raise EmptyReply("The judge answered with an empty text; try again or use another model")
    key = key.casefold()
    answer = _whole(text, key)
    return _Search(text, key, shown).answer() if answer is None else answer


def placed_in(text: str, key: str, answer: Any) -> Any:
    """Return an answer that answer_in found in this text with all of its strings Placed; None where it is not seen."""
    found, at, broken = None, 0, 0
    while broken < _MAX_BROKEN and (opening := _DOCUMENT.search(text, at)):
        try:
            document, at = read_at(text, opening.start())
        except NotJson:
            at, broken = opening.start() + 1, broken + 1
            continue
        for candidate in (document, _unwrapped(document, key.casefold())):
            found = candidate if candidate == answer else found
    return found


def _whole(text: str, key: str) -> Any:
    """Return the answer of a reply that is nothing but a document, perhaps fenced or quoted as a string; else None."""
    try:
        document = loads(_unfenced(text))
        if isinstance(document, str):
            document = loads(document)
    except Contradiction:
        _contradicts_itself()
    except NotJson:
        return None
    answer = _unwrapped(document, key)
    if answer is None and isinstance(document, list) and document and all(isinstance(item, dict) for item in document):
        return document
    return answer


def _unfenced(text: str) -> str:
    fence = _FENCE.match(text)
    return text[fence.end() :].removesuffix("```") if fence else text


def _unwrapped(document: Any, key: str) -> Any:
    """Return what stands under key in document, in the one object of it, or one level deeper; None when nowhere."""
    if isinstance(document, list) and len(document) == 1:
        document = document[0]
    if not _may_answer(document):
        return None
    if key in document:
        return document[key]
    inner = [value[key] for value in document.values() if _may_answer(value) and key in value]
    return inner[0] if len(inner) == 1 else None


def _may_answer(document: Any) -> bool:
    """Whether document is an object that does not itself say that it is no answer."""
    return isinstance(document, dict) and not any(document.get(name) for name in _NO_ANSWER)


class _Search:
    """One pass over a reply that is more than a document."""

    def __init__(self, text: str, key: str, shown: str) -> None:
        self.text = text
        self.key = key
        self.shown = _closed_up(shown)
        self.found: list[_Document] = []
        self.answer_begins = 0
        self.prose_begins = 0
        self.quotes_until = 0
        self.broken = 0

    def answer(self) -> Any:
        at = 0
        while mark := _MARK.search(self.text, at):
            at = self.past(mark)
        self.found = [document for document in self.found if not self.repeats_evidence(document)]
        if self.found:
            return self.final()
        if not self.broken and is_refusal(self.text[self.answer_begins :]):
            _refused()
        return _unreadable("held no JSON document of the asked form")

    def past(self, mark: re.Match[str]) -> int:
        if mark["opened"]:
            closed = _CLOSED.search(self.text, mark.end())
            if closed is None:
                _unreadable("ended inside its reasoning")
            self.answer_begins = self.prose_begins = closed.end()
            return closed.end()
        if mark["closed"]:
            # All that came before was reasoning: its opening tag stood in the chat template.
            self.found.clear()
            self.answer_begins = self.prose_begins = mark.end()
            return mark.end()
        if mark["quotes"]:
            line_end = self.text.find("\n", mark.end())
            self.quotes_until = line_end if line_end >= 0 else len(self.text)
            return mark.end()
        if not _DOCUMENT.match(self.text, mark.start()):
            return mark.end()
        self.prose_begins = self.past_document(mark.start())
        return self.prose_begins

    def past_document(self, start: int) -> int:
        try:
            document, end = read_at(self.text, start)
        except CutShort:
            _unreadable("ended inside its JSON document")
        except Contradiction:
            _contradicts_itself()
        except NotJson:
            # A later document may still be the answer; an earlier one was not the judge's last word.
            self.found.clear()
            self.broken += 1
            line_end = self.text.find("\n", start)
            return line_end if line_end >= 0 and self.broken < _MAX_BROKEN else len(self.text)
        answer = _unwrapped(document, self.key)
        stands_alone = self.stands_alone(start, end)
        if answer is not None and start >= self.quotes_until and (stands_alone or not self.broken):
            before = self.text[self.prose_begins : start]
            self.found.append(_Document(answer, start, end, before, stands_alone))
        return end

    def stands_alone(self, start: int, end: int) -> bool:
        """Whether nothing but fences and chat tokens shares the document's lines."""
        before = self.text[max(0, start - _IN_SIGHT) : start].rpartition("\n")[2]
        after = self.text[end : end + _IN_SIGHT].partition("\n")[0]
        return bool(_NOTHING.fullmatch(before) and _NOTHING.fullmatch(after))

    def repeats_evidence(self, document: _Document) -> bool:
        """Whether the document stands in what the judge was shown, and among prose in its reply."""
        alone = _NOTHING.fullmatch(self.text, self.answer_begins, document.start) and _NOTHING.fullmatch(
            self.text, document.end
        )
        return not alone and _closed_up(self.text[document.start : document.end]) in self.shown

    def final(self) -> Any:
        """Return the answer of the last document, unless another one or the prose around it disputes it."""
        last = self.found[-1]
        rivals = [document for document in self.found if document.answer != last.answer]
        if rivals and not self.overrules(last, rivals):
            _contradicts_itself()
        before, after = ("" if _NOTHING.fullmatch(prose) else prose for prose in (last.before, self.text[last.end :]))
        if any(map(is_refusal, (self.found[0].before, before, before[-_IN_SIGHT:], after))):
            _refused()
        if not is_given(before, after):
            _unreadable("quotes an answer or takes it back")
        return last.answer

    def overrules(self, last: _Document, rivals: list[_Document]) -> bool:
        if not _NOTHING.fullmatch(self.text, last.end):
            return False
        rivals_are_quotations = last.stands_alone and not any(rival.stands_alone for rival in rivals)
        return rivals_are_quotations or self.called_final(last)

    def called_final(self, last: _Document) -> bool:
        between = self.text[max(self.found[-2].end, last.start - _IN_SIGHT) : last.start]
        return bool(_FINAL.search(between))


def _closed_up(text: str) -> str:
    return "".join(text.split())


def _contradicts_itself() -> NoReturn:
    _unreadable("contradicts itself")


def _unreadable(what: str) -> NoReturn:
    raise UnreadableReply(f"The judge's reply {what}; try again or use a model that follows a JSON schema")


def _refused() -> NoReturn:
    raise JudgeRefused("The judge model declined to judge this text; use another model")
