"""The one error handler: forms, codes, and what is not an error."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from envlock import __version__
from envlock.cli import main
from tests.support.pythons import ROOT, clean_env

USAGE = [
    ([], 2, "Usage: envlock [OPTIONS] COMMAND", ""),
    (["wheelhouse"], 2, "Usage: envlock wheelhouse [OPTIONS] COMMAND", ""),
    (["--version"], 0, f"envlock {__version__}", ""),
    (["gaurd"], 2, "", ("error: command line: no such command 'gaurd'. Did you mean 'guard'?\n"
                       "hint: see 'envlock --help'\n")),
    (["snapshot", "--bogus"], 2, "", "error: command line: no such option: --bogus"),
    (["snapshot", "extra"], 2, "", "error: command line: got unexpected extra argument"),
    (["wheelhouse", "chekc"], 2, "", "hint: see 'envlock wheelhouse --help'"),
    (["guard"], 2, "", "hint: see 'envlock guard --help'"),
    (["guard", "conda", "install", "x"], 2, "", "error: guard: 'conda' is not understood\nhint: "),
    (["verify", "--level", "huge"], 2, "", "error: --level: 'huge' is not known\nhint: one of "),
    (["snapshot", "--python", "/nothing"], 4, "", ("error: target: '/nothing' does not exist\n"
                                                  "hint: name it with --python PATH\n")),
    (["wheelhouse", "check", "/nothing"], 4, "", "error: /nothing/envlock.yaml: No such file"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "code", "out", "err"), USAGE, ids=[" ".join(u[0]) for u in USAGE]
)
def test_words_and_codes(
    words: list[str], code: int, out: str, err: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == code
    said = capsys.readouterr()
    assert out in said.out
    assert err in said.err
    assert (said.out == "") == (out == "")


def test_error_as_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["snapshot", "--json", "--python", "/nothing"]) == 4
    document = json.loads(capsys.readouterr().out)
    assert {key: document[key] for key in ("schema", "command", "exit")} == {
        "schema": "1.0",
        "command": "snapshot",
        "exit": 4,
    }
    assert document["findings"][0]["what"] == "target: '/nothing' does not exist"


def test_a_bug_stays_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("envlock.cli.wiring.open_target", broken)
    with pytest.raises(ZeroDivisionError):
        main(["snapshot"])


def test_passwords_are_masked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["snapshot", "--python", "https://me:secret@host/x"]) == 4
    said = capsys.readouterr().err
    assert "secret" not in said
    assert "https://****@host/x" in said


def test_reader_that_has_gone() -> None:
    """``envlock --help | head -0``."""
    done = subprocess.run(
        ["bash", "-c", f"'{sys.executable}' -u -m envlock --help | true; echo ${{PIPESTATUS[0]}}"],
        cwd=ROOT, env=clean_env(), capture_output=True, text=True,
    )  # fmt: skip
    assert done.stderr == ""
    assert int(done.stdout) in (0, 128 + signal.SIGPIPE)


def test_hangup_that_is_ignored_stays_ignored() -> None:
    """What ``nohup`` asks for."""
    code = (
        "import signal, sys\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from envlock.cli import main\n"
        "main(['--version'])\n"
        "sys.exit(signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=clean_env()).returncode == 0
