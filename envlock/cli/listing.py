"""How help pages list commands: in the order of the work, each in one line that is not cut short,
and with examples where they say more than a list of options."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

#: By group and command, in the order in which a page lists them; at most 62 letters each, so that
#: they fit a terminal of 80 columns.
_LINES = {
    ("envlock", "snapshot"): "Lock what is installed, every file by its content.",
    ("envlock", "guard"): "Run an install that costs no vendor build; refuse others.",
    ("envlock", "wheelhouse"): "Keep the wheels: harvest, build, check, pack, unpack.",
    ("envlock", "restore"): "Put the locked set back: all or nothing, no network.",
    ("envlock", "verify"): "Prove that the installed stack computes.",
    ("envlock", "diff"): "Show what differs: manifests, wheelhouses, reports, target.",
    ("envlock", "doctor"): "Say what this machine is, what is wrong, what to type.",
    ("envlock", "export"): "Write the manifest for pip and uv.",
    ("envlock", "fleet"): "The same on every node of a cluster, in one verdict.",
    ("envlock", "demo"): "Play the whole loop here: no device, no network.",
    ("wheelhouse", "harvest"): "Rebuild a wheel of everything installed.",
    ("wheelhouse", "build"): "Add distributions for the target, from any machine.",
    ("wheelhouse", "check"): "Are all wheels there, whole, fitting and enough?",
    ("wheelhouse", "pack"): "Pack a wheelhouse into one file that Python runs.",
    ("wheelhouse", "unpack"): "Unpack such a file into a wheelhouse.",
    ("fleet", "verify"): "Prove the stack on every node, all its devices.",
    ("fleet", "restore"): "Put the locked set back on every node.",
    ("fleet", "snapshot"): "Lock what is installed on every node.",
    ("fleet", "doctor"): "Facts and hints of every node.",
    ("fleet", "report"): "Merge the reports of many nodes into one verdict.",
}
_EXAMPLES = {
    ("envlock", "guard"): (
        "envlock guard pip install peft",
        "envlock guard --plan uv pip install -r requirements.txt",
        "envlock guard --hold pip install lightning",
        "envlock guard -- pip install --help",
    ),
    ("envlock", "restore"): (
        "envlock restore --wheelhouse wheels --plan",
        "envlock restore --wheelhouse wheels",
        "envlock restore --wheelhouse wheels --into ~/fresh",
    ),
    ("envlock", "verify"): (
        "envlock verify --level static",
        "envlock verify --level full --report healthy.json",
        "envlock verify --only 'fa.*' --device 1",
    ),
    ("envlock", "diff"): (
        "envlock diff",
        "envlock diff monday.yaml env --only protected",
        "envlock diff healthy.json now.json",
    ),
    ("envlock", "export"): (
        "envlock export --format constraints --only protected -o hold.txt",
        "envlock export --format pylock -o pylock.toml",
    ),
    ("wheelhouse", "build"): (
        "envlock wheelhouse build wheels peft 'datasets[audio]'",
        "envlock wheelhouse build wheels -r requirements.txt",
    ),
    ("wheelhouse", "pack"): (
        "envlock wheelhouse pack wheels stack.kit",
        "envlock wheelhouse pack wheels stack.kit --split 2G --with model/",
    ),
}


class Listed(TyperGroup):
    """A group whose page lists its commands as above."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names in the order of the work; what is not above comes last."""
        order = [command for group, command in _LINES if group == self.name]
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: order.index(name) if name in order else len(order))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command with its line and its examples."""
        found = super().get_command(ctx, cmd_name)
        place = (str(self.name), cmd_name)
        if found is not None and place in _LINES:
            found.short_help = _LINES[place]
            lines = _EXAMPLES.get(place, ())
            # the mark keeps the lines as they are
            found.epilog = "\n\n".join(("Examples:", "\b\n" + "\n".join(lines))) if lines else None
        return found
