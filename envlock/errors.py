"""The errors people can meet. Each class owns its exit code; ``cli.main`` is the only handler.

A message has the form ``where: what`` with a small first letter, no full stop and names in
single quotes; ``hint`` says what to do. Anything that is not an EnvlockError is a bug and stays
a traceback (exit code 1).
"""

from __future__ import annotations


class EnvlockError(Exception):
    """Base of all errors meant for people.

    Args:
        message: ``where: what``, without the leading ``error:``.
        hint: what to do about it; empty when there is nothing to say.
    """

    exit_code = 4

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageProblem(EnvlockError):
    """The command line is wrong."""

    exit_code = 2


class Refused(EnvlockError):
    """The answer is no: a protected build would be lost, or things differ."""

    exit_code = 3


class UnusableInput(EnvlockError):
    """A manifest, wheelhouse, baseline or target cannot be used. Nothing was touched."""

    exit_code = 4


class ProgramFailed(EnvlockError):
    """Another program is missing or failed."""

    exit_code = 5


class RestoreFailed(EnvlockError):
    """Restore failed, and the target is as it was."""

    exit_code = 6


class UndoIncomplete(EnvlockError):
    """Restore or put-back failed and the undo is incomplete. The message names the stash."""

    exit_code = 7


class Incomplete(EnvlockError):
    """A required check could not run, or nothing ran."""

    exit_code = 8


class Interrupted(EnvlockError):
    """INT, TERM or HUP, after the undo."""

    exit_code = 130
