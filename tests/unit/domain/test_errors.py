import pytest

from app.domain import errors
from app.domain.errors import AssayError, CapacityReduced, ErrorCode, Fault, InvalidRequest, StoreUnavailable


def every_kind(kind: type[AssayError] = AssayError) -> list[type[AssayError]]:
    return [kind, *(below for child in kind.__subclasses__() for below in every_kind(child))]


@pytest.mark.parametrize("kind", every_kind())
def test_every_error_has_a_published_code_and_a_title(kind: type[AssayError]) -> None:
    run_error = kind("What to do.").as_run_error("analyze")
    assert isinstance(run_error.code, ErrorCode)
    assert run_error.title
    assert (run_error.detail, run_error.step) == ("What to do.", "analyze")
    assert str(kind("What to do.")) == "What to do."


def test_kinds_of_bad_replies_share_a_code_and_differ_in_reason() -> None:
    kinds = [errors.EmptyReply, errors.TruncatedReply, errors.UnreadableReply, errors.WrongReply]
    assert {kind.code for kind in kinds} == {ErrorCode.JUDGE_OUTPUT_INVALID}
    assert len({kind.reason for kind in kinds}) == 4


def test_more_than_a_detail() -> None:
    fault = Fault(pointer="#/zz", code="extra_forbidden", detail="Remove it")
    assert InvalidRequest("x", (fault,)).faults == (fault,)
    assert InvalidRequest("x").faults == ()
    assert CapacityReduced("x", 9).retry_after == 9
    assert StoreUnavailable().retry_after > 0
    assert "again" in StoreUnavailable().detail


@pytest.mark.parametrize("kind", every_kind())
def test_an_error_can_name_the_model_that_it_is_about(kind: type[AssayError]) -> None:
    named = kind("What to do.").of("acme/judge")
    assert (type(named), named.detail) == (kind, "acme/judge: What to do.")


def test_an_error_that_names_a_model_is_the_same_in_all_else() -> None:
    error = errors.JudgeTimeout("Too late", own_deadline=True)
    assert error.of("acme/judge").own_deadline
    assert error.detail == "Too late"
