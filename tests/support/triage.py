"""A world of servers that are asked for where the way to them ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from envlock.adapters import network
from envlock.adapters import triage as adapter
from envlock.adapters.triage import triage
from envlock.model.triage import Answer, Place, Verdict, What
from tests.support.bad_servers import How, answering, behind_tls, saying
from tests.support.loopback import Loopback, Turn, loopback

#: More than any answer on this machine takes; nothing that answers is waited for so long.
PLENTY = 30.0
PAGE = b'<a href="/files/pip-1-py3-none-any.whl">pip-1-py3-none-any.whl</a>'


#: What anybody is content with.
OK = saying(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
WHEEL = "/files/pip-1-py3-none-any.whl"


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with a way out, and with time for everybody."""
    monkeypatch.setattr(network, "_run_delays", dict)
    monkeypatch.setattr(adapter, "has_route", lambda: True)


@pytest.fixture
def open_ones() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@dataclass(frozen=True)
class World:
    """Servers that are opened as they are needed, all with certificates of one authority."""

    stack: ExitStack
    authority: Path

    def port(self, server: AbstractContextManager[int]) -> int:
        return self.stack.enter_context(server)

    def loopback(self, *, tls: bool = False) -> Loopback:
        server = self.stack.enter_context(loopback())
        if tls:
            server.speak_tls(self.authority / "server.pem")
        return server

    def secure(self, how: How) -> int:
        return self.port(answering(behind_tls(self.authority / "server.pem", how)))

    def index(self, page: bytes = PAGE, **how: object) -> Loopback:
        server = self.loopback()
        server.add("/simple/pip/", Turn(data=page, **how))  # type: ignore[arg-type]
        self.add_file(server)
        return server

    @staticmethod
    def add_file(server: Loopback, **how: object) -> None:
        kind = {"Content-Type": "application/octet-stream"}
        server.add(WHEEL, Turn(data=b"PK" * 9, headers=kind, **how))  # type: ignore[arg-type]

    @property
    def env(self) -> dict[str, str]:
        return {"SSL_CERT_FILE": str(self.authority / "ca.pem"), "HOME": str(self.authority)}


@pytest.fixture
def world(open_ones: ExitStack, authority: Path) -> World:
    return World(open_ones, authority)


def ask(world: World, *places: Place, seconds: float = PLENTY, **env: str) -> list[Answer]:
    return list(triage(places, seconds=seconds, env={**world.env, **env}))


def code(url: str) -> Place:
    return Place(what=What.CODE, url=url)


def index(server: Loopback, host: str = "127.0.0.1", **more: object) -> Place:
    return Place(what=What.INDEX, url=server.url("/simple", host), **more)  # type: ignore[arg-type]


def verdicts(answers: list[Answer]) -> dict[str, Verdict]:
    return {one.what.value: one.verdict for one in answers}
