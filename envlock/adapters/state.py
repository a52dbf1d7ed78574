"""What envlock remembers of each target: a copy of the manifest, and the folder of kept wheels."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from envlock.adapters import files
from envlock.errors import Refused, UnusableInput
from envlock.model.diff import losses, vanished
from envlock.model.facts import Finding, Layout
from envlock.model.manifest import Manifest, dump, load

TXN = ".envlock-txn"


@dataclass(frozen=True, slots=True)
class Memory:
    """The remembered state of one target, in ``$XDG_STATE_HOME/envlock/KEY/``."""

    folder: Path

    @property
    def manifest_path(self) -> Path:
        return self.folder / "manifest.yaml"

    def manifest(self) -> Manifest | None:
        """The remembered manifest, or None."""
        if not self.manifest_path.exists():
            return None
        return read_manifest(self.manifest_path)

    def known(self) -> Manifest | None:
        """The remembered manifest; None too where it cannot be read."""
        try:
            return self.manifest()
        except UnusableInput:
            return None

    def remember(self, manifest: Manifest) -> list[Finding]:
        """Keeps a copy; what was remembered before does not matter.

        Returns:
            Why not, where the state folder cannot be written: a finding, since what was to be
            remembered is done already.
        """
        return self._write("manifest.yaml", dump(manifest))

    def remember_restored(self, manifest: Manifest) -> list[Finding]:
        """Keeps a copy of what was just restored, unless a protected build vanished in it.

        Returns:
            What it did not remember, and why.
        """
        old = self.known()
        lost = vanished(old, manifest) if old is not None else []
        if not lost:
            return self.remember(manifest)
        return [
            Finding(
                code="state.not-remembered",
                subject="manifest",
                what="not remembered: " + "; ".join(f"'{f.subject}': {f.what}" for f in lost),
                why="the remembered manifest has it",
                hint="'envlock snapshot --force' remembers the target as it is now",
            )
        ]

    @property
    def report_path(self) -> Path:
        """The last verify report, where there was one."""
        return self.folder / "verify-report.json"

    def remember_report(self, text: str) -> list[Finding]:
        """Keeps the last verify report; returns why not, as :meth:`remember` does."""
        return self._write(self.report_path.name, text)

    def wheels(self) -> Path | None:
        """The folder of kept wheels, if it is still there."""
        try:
            folder = Path((self.folder / "wheels").read_text(encoding="utf-8").strip())
        except OSError:
            return None
        return folder if folder.is_dir() else None

    def remember_wheels(self, folder: str) -> list[Finding]:
        """Notes where this target's wheels are kept; returns why not, as :meth:`remember` does."""
        return self._write("wheels", os.path.realpath(folder) + "\n")

    def _write(self, name: str, text: str) -> list[Finding]:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            files.write_whole(self.folder / name, text)
        except OSError as error:
            return [
                Finding(
                    code="state.unwritable",
                    subject="state",
                    what=f"'{self.folder}' cannot be written: {error.strerror}",
                    why="it is not remembered, and has to be named each time",
                    hint="set XDG_STATE_HOME to a folder that can be written",
                )
            ]
        return []


def memory_of(layout: Layout, env: Mapping[str, str]) -> Memory:
    """The memory of a target: keyed by its real purelib and this node, since home folders are
    shared between nodes and site-packages are not."""
    base = env.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):  # as the XDG specification has it
        base = os.path.join(_home(env), ".local", "state")
    key = f"{os.path.realpath(layout.purelib)}\n{platform.node()}"
    return Memory(Path(base) / "envlock" / hashlib.sha256(key.encode()).hexdigest()[:16])


def _home(env: Mapping[str, str]) -> str:
    """The home folder: ``$HOME``, else the user database's, else one that does not exist; never
    the working folder."""
    named = env.get("HOME") or env.get("USERPROFILE", "")
    if os.path.isabs(named):
        return named
    try:
        import pwd  # not on every host

        return pwd.getpwuid(os.getuid()).pw_dir
    except (ImportError, KeyError):  # containers run with user ids that nobody has
        return os.path.join(os.sep, "nonexistent")


def read_manifest(path: str | os.PathLike[str]) -> Manifest:
    """Reads a manifest file.

    Raises:
        UnusableInput: it cannot be read or is no manifest; names the file and the bad value.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        what = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise UnusableInput(
            f"{os.fspath(path)}: {what}", "name a manifest that 'envlock snapshot' wrote"
        ) from error
    return load(text, os.fspath(path))


def unfinished(layout: Layout) -> str:
    """Path of an unfinished restore in a target; empty when there is none."""
    path = os.path.join(os.path.realpath(layout.purelib), TXN)
    return path if os.path.lexists(path) else ""


def refuse_unfinished(layout: Layout) -> None:
    """Leaves a target alone in which a restore has not ended.

    Raises:
        UnusableInput: there is one, running or cut.
    """
    path = unfinished(layout)
    if path and not _has_just_ended(layout):
        raise UnusableInput(
            f"target: a restore has not ended: '{path}'",
            "if none is running now, end it with 'envlock restore --recover'",
        )


def _has_just_ended(layout: Layout) -> bool:
    """Whether a restore that was there a moment ago is not any more.

    Raises:
        UnusableInput: it is running.
    """
    from envlock.adapters.locking import HeldError, lock_folder, refusal  # POSIX only

    folder = os.path.realpath(layout.purelib)
    try:
        lock_folder(folder).release()
    except HeldError as error:
        raise refusal(folder, error) from error
    except OSError:
        return False  # nobody can tell
    return not unfinished(layout)


def keep_manifest(path: str, manifest: Manifest, memory: Memory, *, force: bool) -> list[Finding]:
    """Writes a manifest and remembers it for its target.

    Neither the file nor the memory ever moves to a state in which a protected build vanished or
    changed, unless ``force``.

    Returns:
        Why it is not remembered, where the state folder cannot be written.

    Raises:
        Refused: it would; the message names every build.
        UnusableInput: the file cannot be written, or what is there is no manifest.
    """
    if not force:
        _refuse_losses(path, manifest, (path, os.fspath(memory.manifest_path)))
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        files.write_whole(path, dump(manifest))
    except OSError as error:
        raise UnusableInput(
            f"{path}: cannot be written: {error.strerror}", "name another file with -o"
        ) from error
    return memory.remember(manifest)


def _refuse_losses(path: str, manifest: Manifest, kept: Iterable[str]) -> None:
    for old in filter(os.path.exists, kept):
        try:
            lost = losses(read_manifest(old), manifest)
        except UnusableInput as error:
            raise UnusableInput(
                f"{error.message}; what it protects is not known",
                "move it away, or write over it with --force",
            ) from error
        if lost:
            raise Refused(
                f"{path}: not written, since '{old}' has builds that would be lost: "
                + "; ".join(f"'{one.subject}': {one.what}" for one in lost),
                "put the builds back with 'envlock restore', or insist with --force",
            )
