"""``python -m benchmarks``: envlock beside sha256sum, openssl, pip, uv and zipfile.

Every contestant works in folders of its own that nothing was deleted from before: a file system
avoids inodes that were freed a moment ago, and a benchmark that begins with ``rm -rf`` measures
that.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import statistics
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.download import download
from benchmarks.fleet import fleet
from benchmarks.installs import Installs, steps
from benchmarks.kit import kit
from benchmarks.measure import Contest, command, envlock, shell
from tests.support.pythons import clean_env, make_venv, pip, torch_wheels, uv
from tests.support.wheels import make_wheel

#: Shell commands that pack the files listed in ``$2`` into ``$3``.
PACKERS = {
    "zip -6": 'zip -q -6 -@ "$3.zip" < "$2" && mv "$3.zip" "$3"',
    "tar and xz -6, all CPUs": 'tar cf - --no-recursion -T "$2" | xz -6 -T0 > "$3"',
}


class Bench:
    """A real environment with torch, and what is kept of it."""

    def __init__(self, scratch: Path, runs: int, cold: bool) -> None:
        self.scratch, self.runs, self.cold = scratch, runs, cold
        self.python = make_venv(scratch / "venv")
        uv("pip", "install", "-q", "--python", str(self.python), "--no-index", "--find-links",
           str(torch_wheels()), "--link-mode", "copy", "torch", "triton", "numpy")  # fmt: skip
        pip(
            self.python, "install", "-q", "--no-index", "--find-links", str(torch_wheels()), "torch"
        )
        self.site = next((scratch / "venv/lib").glob("python*/site-packages"))
        self.wheels = scratch / "wheels"
        self.kernels: Path | None = None

    def contest(self, title: str, base: str) -> Contest:
        return Contest(title, self.runs, base)

    def harvest(self) -> None:
        if not self.wheels.exists():
            envlock("wheelhouse", "harvest", self.wheels, "--python", self.python, "-q")

    def snapshot(self) -> None:
        """Every byte read, beside what only hashes the same files."""
        listed = self.scratch / "files.txt"
        found = (path for path in self.site.rglob("*") if path.is_file())
        listed.write_bytes(b"\0".join(str(path).encode() for path in sorted(found)))
        contest = self.contest("snapshot, every byte read", "openssl, all CPUs")
        hashing = 'xargs -0 -P"$(nproc)" -n 400 {} < "$1" > "$2"'
        for name, tool in (
            ("openssl, all CPUs", "openssl dgst -sha256"),
            ("sha256sum", "sha256sum"),
        ):
            words = shell(hashing.format(tool), listed, self.scratch / "sums.txt")
            contest.add(name, lambda _, words=words: command(*words))  # type: ignore[misc]
        contest.add("envlock snapshot", lambda number: self._snapshot(number))
        contest.show()
        contest = self.contest("snapshot --trust-record", "pip inspect")
        pip_inspect = (sys.executable, "-m", "pip", "--python", self.python, "inspect", "--local")
        contest.add("pip inspect", lambda _: command(*pip_inspect))
        contest.add(
            "envlock snapshot --trust-record",
            lambda number: self._snapshot(number, "--trust-record"),
        )
        contest.show()

    def _snapshot(self, number: int, *words: str) -> None:
        output = self.scratch / f"lock-{number}{''.join(words)}.yaml"
        envlock("snapshot", "--python", self.python, "--profile", "cpu", "-q", "-o", output, *words)

    def pack(self) -> None:
        """harvest of the environment, beside what else makes one file of many."""
        contest = self.contest("harvest", "zipfile level 6")
        sizes: dict[str, int] = {}
        listed = self.scratch / "packed.txt"
        found = (path for path in self.site.rglob("*") if path.is_file() and path.suffix != ".pyc")
        names = [str(path.relative_to(self.site)) for path in sorted(found)]
        listed.write_text("".join(f"{name}\n" for name in names))

        def plain(number: int) -> None:
            path = self.scratch / f"plain-{number}.zip"
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
                for name in names:
                    archive.write(self.site / name, name)
            sizes["zipfile level 6"] = path.stat().st_size

        def by_program(name: str, script: str, number: int) -> None:
            path = self.scratch / f"{name.replace(' ', '')}-{number}"
            command(*shell(f'cd "$1" && {script}', self.site, listed, path))
            sizes[name] = path.stat().st_size

        def harvest(number: int, how: str) -> None:
            folder = self.scratch / f"wheels-{how}-{number}"
            envlock("wheelhouse", "harvest", folder, "--python", self.python, "-q",
                    "--compress", how)  # fmt: skip
            sizes[f"harvest {how}"] = sum(path.stat().st_size for path in folder.glob("*.whl"))

        contest.add("zipfile level 6", plain)
        for name, script in PACKERS.items():
            if all(shutil.which(word) for word in {"zip", "tar", "xz"} & set(name.split())):
                contest.add(name, lambda n, name=name, script=script: by_program(name, script, n))  # type: ignore[misc]
        for how in ("fast", "best", "none"):
            contest.add(f"harvest {how}", lambda number, how=how: harvest(number, how))  # type: ignore[misc]
        contest.show()
        print("\n| contestant | MB | of zipfile's |\n|---|---|---|")
        for name, size in sizes.items():
            print(f"| {name} | {size / 1e6:.0f} | {size / sizes['zipfile level 6']:.2f} |")

    def restore(self) -> None:
        """A whole environment into an empty venv, and repairs."""
        self.harvest()
        Installs(self.scratch / "installs", self.wheels, self.cold).show(self.runs)
        steps(self.wheels, self.scratch / "steps")
        self._repair()

    def _repair(self) -> None:
        contest = self.contest("restore when little or nothing is missing", "full snapshot")
        contest.add("full snapshot", lambda number: self._snapshot(number + 100))
        contest.add("restore, nothing missing", lambda _: self._restore())

        def one(_: int) -> None:
            (self.site / "networkx/__init__.py").write_text("broken\n")
            self._restore()

        contest.add("restore, one distribution broken", one)
        contest.show()

    def _restore(self) -> None:
        envlock("restore", "-q", "--wheelhouse", self.wheels, "--python", self.python)

    def guard(self) -> None:
        """An allowed install of a small wheel, beside the bare command and its dry run.

        Every run installs a wheel of its own, so that there is always something to do.
        """
        small = self.scratch / "small"
        links = ("install", "-q", "--no-index", "--find-links", small)
        bare: dict[str, tuple[str | Path, ...]] = {
            "pip": (sys.executable, "-m", "pip", "--python", self.python, *links),
            "uv": (Path(sys.executable).with_name("uv"), "pip", *links, "--python", self.python),
        }
        typed: dict[str, tuple[str | Path, ...]] = {
            "pip": ("guard", "-q", "--python", self.python, "pip", *links),
            "uv": ("guard", "-q", "--python", self.python, "uv", "pip", *links),
        }
        for tool in ("pip", "uv"):
            for number in range(self.runs):
                for kind in ("bare", "guarded"):
                    make_wheel(small, f"{kind}-{tool}-{number}", "1.0")
            own, guarded = bare[tool], typed[tool]
            contest = self.contest(f"an allowed install with {tool}", f"{tool} install")
            contest.add(f"{tool} install", lambda n, t=tool, o=own: command(*o, f"bare-{t}-{n}"))  # type: ignore[misc]
            contest.add(
                f"{tool} install --dry-run",
                lambda n, t=tool, o=own: command(*o, "--dry-run", f"guarded-{t}-{n}"),  # type: ignore[misc]
            )
            contest.add(
                f"envlock guard {tool} install",
                lambda n, t=tool, g=guarded: envlock(*g, f"guarded-{t}-{n}"),  # type: ignore[misc]
            )
            contest.show()
            once, dry, all_of_it = (statistics.median(times) for times in contest.times.values())
            print(f"\nbeyond the install and one dry run: {all_of_it - once - dry:+.2f} s")

    def download(self) -> None:
        """A large wheel from a server on this machine, whole and after a kill."""
        download(self.scratch / "download", self.runs)

    def kit(self) -> None:
        """A kit of the environment, or of GPU kernels, beside other archives of the same files."""
        kit(self.scratch / "kits", self.runs, self.python, self.kernels)

    def fleet(self) -> None:
        """Reports of 10 to 10,000 nodes merged into one verdict."""
        fleet(self.scratch / "fleet", self.runs)

    def refuse(self) -> None:
        """A refusal where nobody can be asked, beside the least that envlock can do."""
        own = (sys.executable, "-m", "envlock")
        env = clean_env(PIP_CONFIG_FILE=os.devnull, UV_NO_CONFIG="1")
        contest = self.contest("a refusal without an index", "envlock --version")
        contest.add("envlock --version", lambda _: command(*own, "--version"))
        with socket.create_server(("127.0.0.1", 0)) as silent:
            index = f"http://127.0.0.1:{silent.getsockname()[1]}/simple"
            for tool in ("pip", "uv pip"):
                words: tuple[str | Path, ...] = (
                    "guard", "--python", self.python, *tool.split(), "install", "-U", "torch",
                )  # fmt: skip
                cut_off: tuple[str | Path, ...] = ("unshare", "-rn", *own, *words)
                asked: tuple[str | Path, ...] = (*own, *words, "-i", index)
                for name, typed in ((f"{tool}, no network", cut_off), (f"{tool}, silence", asked)):
                    contest.add(name, lambda _, t=typed: command(*t, env=env, code=3))  # type: ignore[misc]
            contest.show()

    def start(self) -> None:
        """How long a person waits for the help text."""
        contest = self.contest("start", "import typer")
        contest.add("import typer", lambda _: command(sys.executable, "-c", "import typer"))
        contest.add("envlock --help", lambda _: envlock("--help"))
        contest.show()


def main() -> None:
    """Runs the named contests, all by default."""
    names = ("start", "snapshot", "pack", "restore", "guard", "download", "refuse", "kit", "fleet")
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("contest", nargs="*", choices=[*names, []], help=", ".join(names))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--kernels", type=Path, help="kit: a tar of an installed distribution")
    parser.add_argument(
        "--cold", action="store_true", help="empty the page cache before each install"
    )
    parser.add_argument("--scratch", type=Path, help="on the file system to measure")
    asked = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="envlock-bench-", dir=asked.scratch))
    try:
        bench = Bench(scratch, asked.runs, asked.cold)
        bench.kernels = asked.kernels
        for name in asked.contest or names:
            work: Callable[[], None] = getattr(bench, name)
            work()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
