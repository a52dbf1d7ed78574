"""What every node has to do, as one word that any shell and any launcher leaves as it is."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from envlock.errors import UsageProblem
from envlock.model.reading import Node

#: Bytes of one argument that a kernel takes are 131,072; the rest of a command needs some, too.
MOST = 100_000
#: Stand in the words of a job for what is only known on the node.
NODE, MANIFEST, KIT, REPORT = "{node}", "{manifest}", "{kit}", "{report}"
#: In the folder of reports: what runs write that are going on.
RUNS = ".fleet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run, the same on all nodes.

    Attributes:
        run: its name; nobody else's.
        out: absolute folder for the reports, on the launching host.
        words: envlock's command, with placeholders.
        reports: the command writes its report by itself, whole after every step.
        beside: ending of another file that it writes beside its report, ``.yaml``; empty for none.
        seconds: after which a node ends it; 0 for never.
        manifest: text of the manifest, where the nodes need not find the file.
        towards: address of the launching host, to tell which of its own a node is reached at.
        slurm: srun starts it: its variables are this node's. Other launchers hand on those of the
            host they were started on.
    """

    run: str
    out: str
    words: tuple[str, ...]
    reports: bool = False
    beside: str = ""
    seconds: float = 0.0
    manifest: str = ""
    towards: str = ""
    slurm: bool = False


def encode(job: Job) -> str:
    """The word; letters, digits, ``-`` and ``_`` alone."""
    return pack(asdict(job))


def decode(word: str) -> Job:
    """The job of a word.

    Raises:
        UsageProblem: it is none.
    """
    hint = "'envlock fleet verify' starts this command by itself"
    try:
        document = unpack(word)
    except ValueError as error:
        raise UsageProblem(f"job: {error}", hint) from error
    node = Node(document, "", "job", hint)
    words = node.get("words")
    return Job(
        run=node.get("run").text(),
        out=node.get("out").text(),
        words=tuple(word.text() for word in words.items()),
        reports=node.get("reports").boolean(False),
        beside=node.get("beside").text(""),
        seconds=node.get("seconds").number(),
        manifest=node.get("manifest").text(""),
        towards=node.get("towards").text(""),
        slurm=node.get("slurm").boolean(False),
    )


def filled(words: Sequence[str], known: Mapping[str, str]) -> list[str]:
    """Words with what is known on a node in the places that stand for it."""
    found = []
    for word in words:
        for place, value in known.items():
            word = word.replace(place, value)
        found.append(word)
    return found


def pack(document: Mapping[str, Any]) -> str:
    """A document as one word."""
    text = json.dumps(document, ensure_ascii=True, separators=(",", ":"))
    return base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")


def unpack(word: str) -> Any:
    """The document of a word.

    Raises:
        ValueError: it is none.
    """
    try:
        data = base64.urlsafe_b64decode(word + "=" * (-len(word) % 4))
        return json.loads(zlib.decompress(data))
    except (ValueError, zlib.error) as error:
        raise ValueError(f"not one of ours: {error}") from error
