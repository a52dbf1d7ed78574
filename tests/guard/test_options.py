"""Options and requirements that are taken out of a command line, or only known."""

from __future__ import annotations

from envlock.guard import options
from envlock.guard.command import parse


def test_options_can_be_taken_out() -> None:
    table = options.PIP_COMMANDS["install"]

    def without(line: str, *names: str) -> str:
        return " ".join(options.without(line.split(), table, names))

    assert without("-U --upgrade-strategy eager peft", "--upgrade-strategy") == "-U peft"
    assert without("--upgrade-strategy=eager -U a", "--upgrade-strategy") == "-U a"
    assert without("-Uq -r f a", "--upgrade", "--requirement") == "-q a"
    assert without("a -qrf b", "--requirement") == "a -q b"
    assert without("-U -- -U", "--upgrade") == "-- -U"
    # what is no part of it stays, with its value
    assert without("-Ur r.txt a", "--upgrade") == "-r r.txt a"
    assert without("-Urr.txt -UqIe .", "--upgrade", "--ignore-installed") == "-rr.txt -qe ."
    assert without("-Ir r.txt", "--ignore-installed") == "-r r.txt"
    assert without("-Ue .", "--upgrade") == "-e ."
    assert without("-Ur r.txt", "--upgrade", "--requirement") == ""
    assert without("-UX a", "--upgrade") == "-X a"  # the tool says what it does not know
    assert options.only_options(["-U", "a", "-i", "x", "b", "--pre", "--", "c"], table) == [
        "-U",
        "-i",
        "x",
        "--pre",
    ]


def test_what_uv_takes_from_pip_and_ignores_is_known() -> None:
    install = "uv pip install --disable-pip-version-check --no-cache-dir --no-color x"
    assert parse(install.split()).given.unknown == ()
    assert parse(install.split()).given.has("--no-cache")
    remove = "uv pip uninstall --disable-pip-version-check -y x"
    assert parse(remove.split()).given.unknown == ()


def test_requirements_can_be_taken_out() -> None:
    table = options.UV_COMMANDS["install"]

    def left(line: str, *gone: str) -> str:
        return " ".join(options.without_words(line.split(), table, gone))

    assert left("-P torch torch peft", "torch") == "-P torch peft"
    assert left("-Ue ./torch x", "./torch") == "-U x"
    assert left("--editable=./torch -e ./y", "./torch") == "-e ./y"
    assert left("-q -- torch x", "torch") == "-q -- x"
