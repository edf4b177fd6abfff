"""A scriptable OpenAI-compatible judge that speaks real HTTP, for tests and benches.

`python -m tests.stub_judge --port 9001 --delay-ms 50` runs it; `StubProcess` (process.py) does so from a test, and
`running_stub` (server.py) serves it inside the test's own loop.

Unscripted, it judges by words: it finds the numbered segments of the user message and the JSON schema of the reply,
and answers with an instance of that schema (see answers.py for the words and rules). `POST /script` changes what it
does for some calls (see script.py), `GET /calls` tells what was asked of it, `DELETE /calls` forgets calls and script.
`GET /ledger` tells all calls in short (see ledger.py). `POST /down` and `POST /up` make the judge's port refuse and
answer; a second port, which is printed too, takes all of these commands even then.
"""
