"""What happens on one node: its name, the command, and the report that goes back."""

from __future__ import annotations

import json
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envlock.adapters import files, process
from envlock.adapters.launching import host_name, into_file, own_address
from envlock.adapters.slurm import launched_from, node_name, step_nodes
from envlock.fleet.job import KIT, MANIFEST, NODE, REPORT, RUNS, Job, filled
from envlock.fleet.wire import lines_of
from envlock.model.hostlist import is_host_name

#: Seconds that a command has to put its work right once its time is over.
GRACE = 30.0
_MOST_TWINS = 10_000

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """This node in a run.

    Attributes:
        host: its name.
        name: the same, or ``n017~2`` where another process of this run has it already.
        shared: whether it sees the folder of the launching host.
        id: of this process, in all it says.
    """

    host: str
    name: str
    shared: bool
    id: str

    def stem(self, job: Job, scratch: str) -> str:
        """Path of its report without ``.json``: where the launching host finds it, else beside."""
        return os.path.join(job.out if self.shared else scratch, self.name)


def work(job: Job, env: Mapping[str, str], say: Say, kit: str = "") -> int:
    """Runs the job's command on this node and hands its report over.

    Args:
        env: of the command.
        say: takes the lines that go to the launching host.
        kit: folder that a kit was unpacked into; empty without one.

    Returns:
        The exit code of the command.
    """
    here = _here(job, env)
    began = time.monotonic()
    slurm = env if job.slurm else {}
    address = own_address(launched_from(slurm) or job.towards)
    _tell(say, "began", here, address=address, step=step_nodes(slurm))
    with tempfile.TemporaryDirectory(prefix="envlock-", ignore_cleanup_errors=True) as scratch:
        done, why = _run(job, here, scratch, env, kit)
        if not here.shared:
            for message in _files(job, here.stem(job, scratch)):
                _tell(say, "file", here, **message)
    seconds = round(time.monotonic() - began, 1)
    _tell(say, "ended", here, code=done, why=why, seconds=seconds)
    return done


def _tell(say: Say, kind: str, here: Here, **more: Any) -> None:
    message = {"kind": kind, "id": here.id, "name": here.name, **more}
    for line in lines_of(message, secrets.token_hex(8)):
        say(line)


def _here(job: Job, env: Mapping[str, str]) -> Here:
    host = (node_name(env) if job.slurm else "") or host_name()
    if not is_host_name(host):
        host = "node"
    folder = os.path.join(job.out, RUNS, job.run)
    shared = os.path.isdir(folder)
    name = _claimed(folder, host) if shared else host
    return Here(host=host, name=name, shared=shared, id=secrets.token_hex(8))


def _claimed(folder: str, host: str) -> str:
    """The first of ``n017``, ``n017~2`` … that no other process of this run has."""
    for number in range(1, _MOST_TWINS):
        name = host if number == 1 else f"{host}~{number}"
        try:
            os.close(os.open(os.path.join(folder, name), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            continue
        except OSError:  # a folder that this user may only read: told by the report
            return host
        return name
    return host


def _files(job: Job, stem: str) -> Iterator[dict[str, str]]:
    """The files of a node that does not see the launching host's folder."""
    for ending in filter(None, (".json", job.beside)):
        if os.path.exists(stem + ending):
            yield {"ending": ending, "text": Path(stem + ending).read_text(encoding="utf-8")}


def _run(job: Job, here: Here, scratch: str, env: Mapping[str, str], kit: str) -> tuple[int, str]:
    """Exit code of the command, and what is wrong where that is not 0."""
    answer, stem = os.path.join(scratch, "answer"), here.stem(job, scratch)
    manifest = os.path.join(scratch, "manifest.yaml")
    if job.manifest:
        Path(manifest).write_text(job.manifest, encoding="utf-8")
    words = filled(job.words, {NODE: here.host, MANIFEST: manifest, KIT: kit, REPORT: stem})
    words += [*(["--report", f"{stem}.json"] if job.reports else []), "--json"]
    done = process.run(
        into_file([sys.executable, "-m", "envlock", *words], answer),
        env=env,
        timeout=job.seconds or None,
        grace=GRACE,
    )
    code, why = _ending(done)
    report = f"{stem}.json"
    if job.reports and (known := _read(report)) is not None:
        return code, why if done.timed_out else str(known.get("said") or why)
    document = _answer(answer, job) or ended(here.host, code, why)
    try:
        files.write_whole(report, json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    except OSError as error:
        return 8, f"the report cannot be written: {error.strerror}"
    return code, why if code == 0 or done.timed_out else _first_error(document) or why


def _ending(done: process.Finished) -> tuple[int, str]:
    """Exit code as a shell says it, and the last words of a command that did not end with 0."""
    if done.timed_out:
        return 8, f"no end after {done.seconds:.0f} s"
    code = done.code if done.code >= 0 else 128 - done.code
    return code, "" if code == 0 else process.last_lines(done.output, 2)


def _read(path: str) -> dict[str, Any] | None:
    """A document; None where there is none."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _first_error(document: Mapping[str, Any]) -> str:
    findings = [one for one in document.get("findings", ()) if isinstance(one, dict)]
    return next((str(one.get("what")) for one in findings if one.get("level") == "error"), "")


def _answer(path: str, job: Job) -> dict[str, Any] | None:
    """The document that the command printed; None where it printed none."""
    found = _read(path)
    if found is None or "exit" not in found:
        return None
    # an error in the place of a report is no report: it is merged by its findings
    ours = job.reports or str(found.get("command")).startswith("fleet")
    return {**found, "command": "node"} if ours else found


def ended(node: str, code: int, why: str) -> dict[str, Any]:
    """The document for a node whose command left none."""
    finding = {
        "code": "node.ended", "subject": node, "what": why or f"exit code {code}, and no answer",
        "why": "", "hint": "", "level": "error",
    }  # fmt: skip
    return {"schema": "1.0", "command": "node", "exit": code, "findings": [finding], "data": {}}
