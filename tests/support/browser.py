"""A headless Chromium, driven over a pair of pipes: what a page logs, asks for and looks like."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
# the protocol is spoken over descriptors 3 and 4, whatever their numbers are here
_LAUNCH = "import os, sys; r, w = int(sys.argv[1]), int(sys.argv[2]); os.dup2(r, 3); os.dup2(w, 4); os.execvp(sys.argv[3], sys.argv[3:])"  # noqa: E501
_SECONDS = 60.0


def find_browser() -> str | None:
    """Path of a Chromium on PATH, or None."""
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


@dataclass
class Seen:
    """What happened while a page was shown.

    Attributes:
        logged: everything a console would show, and uncaught exceptions.
        requests: URLs, without the page itself and what it carries as ``data:``.
        text: what a person reads.
        overflow: pixels by which the page is wider than the window.
        png: a picture of the whole page.
    """

    logged: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    text: str = ""
    overflow: int = 0
    png: bytes = b""


class _Pipe:
    """JSON messages that end with a NUL."""

    def __init__(self, reader: int, writer: int) -> None:
        self.reader, self.writer = reader, writer
        self.number, self.buffer = 0, b""
        self.events: list[Mapping[str, Any]] = []

    def call(self, method: str, session: str = "", **params: Any) -> Mapping[str, Any]:
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.writer, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.next()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                found: Mapping[str, Any] = answer["result"]
                return found
            self.events.append(answer)

    def wait_for(self, event: str) -> None:
        while not any(one.get("method") == event for one in self.events):
            self.events.append(self.next())

    def next(self) -> Mapping[str, Any]:
        end = time.monotonic() + _SECONDS
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.reader], [], [], max(0.0, end - time.monotonic()))
            piece = os.read(self.reader, 1 << 20) if ready else b""
            assert piece, "the browser went away, or said nothing for a minute"
            self.buffer += piece
        text, _, self.buffer = self.buffer.partition(b"\0")
        found: Mapping[str, Any] = json.loads(text)
        return found


def _above_four(descriptor: int) -> int:
    """The same pipe under a number that does not stand in the way of 3 and 4."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD, 10)
    os.close(descriptor)
    return moved


@contextlib.contextmanager
def _browser(program: str, folder: Path) -> Iterator[_Pipe]:
    (their_end, our_end), (our_start, their_start) = os.pipe(), os.pipe()
    their_end, their_start = _above_four(their_end), _above_four(their_start)
    command = [
        sys.executable, "-c", _LAUNCH, str(their_end), str(their_start), program, "--headless",
        "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
        "--disable-background-networking", "--hide-scrollbars", "--remote-debugging-pipe",
        f"--user-data-dir={folder / 'profile'}", "about:blank",
    ]  # fmt: skip
    process = subprocess.Popen(
        command, pass_fds=(their_end, their_start), stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(their_end)
    os.close(their_start)
    pipe = _Pipe(our_start, our_end)
    try:
        yield pipe
    finally:
        with contextlib.suppress(AssertionError, OSError):
            pipe.call("Browser.close")
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(our_start)
        os.close(our_end)


def look(
    page: Path, folder: Path, *, dark: bool = False, width: int = 1180, media: str = ""
) -> Seen:
    """Opens a page and says what happened.

    Args:
        page: the file.
        folder: for the browser's own files.
        dark: what the person's system prefers.
        media: ``print`` to see it as it is printed.
    """
    program = find_browser()
    assert program is not None
    with _browser(program, folder) as pipe:
        target = pipe.call("Target.createTarget", url="about:blank")["targetId"]
        session = pipe.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            pipe.call(f"{domain}.enable", session)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        pipe.call("Emulation.setEmulatedMedia", session, media=media, features=[scheme])
        pipe.call(
            "Emulation.setDeviceMetricsOverride", session,
            width=width, height=900, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        pipe.call("Page.navigate", session, url=page.as_uri())
        pipe.wait_for("Page.loadEventFired")
        seen = Seen(
            text=_value(pipe, session, "document.body.innerText"),
            overflow=_value(
                pipe, session, "document.documentElement.scrollWidth - window.innerWidth"
            ),
        )
        picture = pipe.call("Page.captureScreenshot", session, captureBeyondViewport=True)
        seen.png = base64.b64decode(picture["data"])
        _judge(pipe.events, page.as_uri(), seen)
    return seen


def _value(pipe: _Pipe, session: str, expression: str) -> Any:
    return pipe.call("Runtime.evaluate", session, expression=expression)["result"]["value"]


def _judge(events: list[Mapping[str, Any]], page: str, seen: Seen) -> None:
    for event in events:
        method, params = event.get("method", ""), event.get("params", {})
        if method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
            seen.logged.append(json.dumps(params))
        elif method == "Log.entryAdded":
            seen.logged.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            url = params["request"]["url"]
            if url != page and not url.startswith("data:"):
                seen.requests.append(url)
