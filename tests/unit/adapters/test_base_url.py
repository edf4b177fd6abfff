import pytest

from app.adapters.base_url import completions_url


@pytest.mark.parametrize(
    "ending", ["", "/", "//", "/v1", "/v1/", "/v1//", "/v1/chat/completions", "/chat/completions/"]
)
@pytest.mark.parametrize("host", ["http://127.0.0.1:8000", "https://api.example.com"])
def test_every_spelling_of_a_plain_server_is_the_same_place(host: str, ending: str) -> None:
    url = completions_url(host + ending)

    assert url in {f"{host}/v1/chat/completions", f"{host}/chat/completions"}
    assert (url == f"{host}/chat/completions") == (ending == "/chat/completions/")


@pytest.mark.parametrize(
    ("base_url", "expected"),
    [
        ("https://gw.example.com/llm", "https://gw.example.com/llm/v1/chat/completions"),
        ("https://gw.example.com/llm//v1/", "https://gw.example.com/llm/v1/chat/completions"),
        ("https://api.groq.com/openai/v1", "https://api.groq.com/openai/v1/chat/completions"),
        ("https://g.example.com/v1beta/openai/", "https://g.example.com/v1beta/openai/chat/completions"),
        ("https://z.example.com/api/paas/v4", "https://z.example.com/api/paas/v4/chat/completions"),
        (
            "https://me.openai.azure.com/openai/deployments/judge?api-version=2024-10-21",
            "https://me.openai.azure.com/openai/deployments/judge/chat/completions?api-version=2024-10-21",
        ),
        ("  http://[::1]:11434/v1  ", "http://[::1]:11434/v1/chat/completions"),
        ("http://host/v1#part", "http://host/v1/chat/completions"),
    ],
)
def test_paths_of_gateways_and_providers(base_url: str, expected: str) -> None:
    assert completions_url(base_url) == expected


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8000",
        "ftp://host/v1",
        "http://",
        "http:///v1",
        "http://host:99999/v1",
        "http://host:port/v1",
        "http://user:secret@host/v1",
        "http://secret@host/v1",
        "http://host/v1?key=secret",
        "http://host/v1?api-version=1&token=secret",
        "http://ho st/v1",
        "http://hôte/v1",
        "http://host/v1\nX: y",
    ],
)
def test_what_is_no_base_url_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(ValueError) as caught:
        completions_url(url)

    assert "secret" not in str(caught.value)
