"""Every scorer has an example in the docs, and the service answers it so."""

from collections.abc import Iterator

import pytest
import redis

from app.adapters.embedded_valkey import EmbeddedValkey
from tests.contract.running import RunningApp
from tests.examples.example import Example, lasting, model_of, read_examples
from tests.examples.judge import JudgeServer, Replies
from tests.examples.page import PAGE, page
from tests.examples.service import example_settings

EXAMPLES = read_examples()
AGAIN = (
    "a prompt or the answer has changed: python -m tests.examples record --only {} with a judge, and look at the diff"
)


@pytest.fixture(scope="module")
def replies() -> Replies:
    return Replies([one for example in EXAMPLES.values() if example.judge for one in example.judge.exchanges])


@pytest.fixture(scope="module")
def service(valkey_server: EmbeddedValkey, replies: Replies) -> Iterator[RunningApp]:
    with redis.Redis.from_url(valkey_server.url) as client:
        client.flushall()
    model = model_of(EXAMPLES.values())
    with JudgeServer(replies) as url, RunningApp(example_settings(valkey_server.url, url, model)) as api:
        yield api


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_the_answer_is_the_one_in_the_docs(service: RunningApp, replies: Replies, example: Example) -> None:
    replies.unknown.clear()
    answer = service.score(example.scorer, cache="off", **example.request)
    assert not replies.unknown, AGAIN.format(example.scorer)
    assert answer.status_code == 200
    assert lasting(answer.json()) == example.answer, AGAIN.format(example.scorer)


def test_every_scorer_that_comes_with_assay_has_an_example(service: RunningApp) -> None:
    scorers = service.client.get("/v1/scorers").json()["items"]
    assert {one["id"] for one in scorers} - {"medical-claims", "support-tone"} == EXAMPLES.keys()


def test_the_page_shows_the_examples() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(EXAMPLES.values()), "python -m tests.examples page"
