"""What a process says of the things that it depends on."""

from app.domain.model import Model


class ReadinessCheck(Model):
    """One thing that was looked at; checks that are not `needed` only inform."""

    name: str
    ok: bool
    needed: bool
    detail: str
