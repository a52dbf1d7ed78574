"""What ``envlock fleet`` says of the nodes: each as it ends, and all of them at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from envlock.cli.show import count
from envlock.fleet.launch import Ended, How, Node, Watch, host_of
from envlock.model.facts import Finding
from envlock.model.hostlist import fold

if TYPE_CHECKING:
    from envlock.cli.options import Common
    from envlock.cli.show import Advance


class Telling:
    """A line for each node that ended, on the screen of the person who waits."""

    def __init__(self, common: Common, advance: Advance, brief: bool) -> None:
        self.screen, self.advance, self.brief = common.screen, advance, brief

    def watch(self) -> Watch:
        """What the launch tells."""
        return Watch(on_node=self.node, on_wait=self.wait)

    def wait(self, names: Sequence[str]) -> None:
        """Nothing was heard for a while."""
        if not self.screen.quiet:
            self.screen.note(f"waiting for {fold(host_of(name) for name in names)}")

    def node(self, node: Node) -> None:
        """One ended."""
        self.advance(1)
        if not (self.brief and node.code == 0):
            self.screen.say(line(node))


_WORDS = {0: "done", 3: "failed", 8: "incomplete"}


def line(node: Node) -> str:
    """``n017  failed (3) after 12.5 s: …``."""
    word = {
        How.ENDED: _WORDS.get(node.code, "could not"),
        How.CUT: "gone",
        How.NO_ENVLOCK: "not started",
        How.SILENT: "silent",
    }[node.how]
    code = f" ({node.code})" if node.how is How.ENDED and node.code else ""
    after = f" after {node.seconds:.1f} s" if node.how is How.ENDED else ""
    why = f": {node.why}" if node.why else ""
    return f"{node.name}  {word}{code}{after}{why}"


def findings_of(ended: Ended) -> list[Finding]:
    """Every node that did not come to its end."""
    texts = {
        How.CUT: ("fleet.cut", "it began, and was not heard of again"),
        How.NO_ENVLOCK: ("fleet.no-envlock", ""),
        How.SILENT: ("fleet.silent", "it never answered"),
    }
    return [
        Finding(code=texts[node.how][0], subject=node.name, what=texts[node.how][1] or node.why)
        for node in ended.nodes
        if node.how in texts
    ]


def tell(
    common: Common, command: str, ended: Ended, code: int, more: Sequence[Finding] = ()
) -> int:
    """Findings, verdict and document."""
    screen, findings = common.screen, [*findings_of(ended), *more]
    screen.findings(findings)
    good = sum(node.how is How.ENDED and node.code == 0 for node in ended.nodes)
    screen.verdict(f"{good} of {count(len(ended.nodes), 'node')} done")
    if findings and ended.said and screen.verbose:
        screen.say(f"the launcher said: {ended.said}")
    nodes = [
        {"node": n.name, "how": n.how.value, "exit": n.code, "seconds": n.seconds, "why": n.why}
        for n in ended.nodes
    ]
    screen.document(command, code, findings, {"nodes": nodes})
    return code
