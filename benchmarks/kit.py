"""A kit beside what people would pack an environment with."""

from __future__ import annotations

import os
import shutil
import tarfile
import zipfile
from pathlib import Path

from benchmarks.measure import Contest, command, envlock, shell
from tests.support.pythons import make_venv


def kit(scratch: Path, runs: int, python: Path, kernels: Path | None) -> None:
    """Packs a wheelhouse of rebuilt wheels.

    Args:
        python: of an environment that is packed.
        kernels: an archive (tar) of an installed distribution with GPU kernels, packed instead.
    """
    scratch.mkdir()
    if kernels is not None:
        python = make_venv(scratch / "kernels")
        with tarfile.open(kernels) as archive:
            archive.extractall(_site(python), filter="data")
    wheels = scratch / "wheels"
    envlock("wheelhouse", "harvest", wheels, "--python", python, "-q")
    contest, sizes = Contest("pack", runs, "zipfile level 6"), dict[str, int]()
    _others(contest, sizes, scratch, _site(python))

    def pack(number: int, *words: str) -> None:
        path = scratch / f"{number}{''.join(words)}.kit"
        envlock("wheelhouse", "pack", wheels, path, "-q", "--python", python, *words)
        with zipfile.ZipFile(path) as archive:
            own = (i.file_size for i in archive.infolist() if i.filename.startswith("envlock/"))
            sizes[" ".join(["envlock wheelhouse pack", *words])] = path.stat().st_size - sum(own)

    contest.add("envlock wheelhouse pack", pack)
    if kernels is not None:  # minutes for 200 MB, and an hour for a whole stack
        contest.add("envlock wheelhouse pack --best", lambda number: pack(number, "--best"))
    contest.show()
    deflated = sum(path.stat().st_size for path in wheels.glob("*.whl"))
    print(f"\nthe deflated wheels: {deflated / 1e6:.1f} MB\n\n| | MB | of the deflated wheels |")
    print("|---|---|---|")
    for name, size in sizes.items():
        print(f"| {name} | {size / 1e6:.1f} | {size / deflated:.2f} |")
    print("\nenvlock's own wheels are in a kit, and not in these numbers")


def _site(python: Path) -> Path:
    return next(python.parents[1].glob("lib/python*/site-packages"))


def _others(contest: Contest, sizes: dict[str, int], scratch: Path, site: Path) -> None:
    """The same files by other means, without byte code."""
    listed = scratch / "files.txt"
    found = (p for p in site.rglob("*") if p.is_file() and p.suffix != ".pyc")
    names = sorted(os.fspath(path.relative_to(site)) for path in found)
    listed.write_text("".join(f"{name}\n" for name in names))

    def plain(number: int) -> None:
        path = scratch / f"{number}.zipfile"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            for name in names:
                archive.write(site / name, name)
        sizes["zipfile level 6"] = path.stat().st_size

    def by_shell(name: str, suffix: str, script: str) -> None:
        def run(number: int) -> None:
            path = scratch / f"{number}.{suffix}"
            command(*shell(script, site, listed, path))
            sizes[name] = path.stat().st_size

        contest.add(name, run)

    contest.add("zipfile level 6", plain)
    if shutil.which("zip"):
        by_shell("zip -6", "zip", 'cd "$1" && zip -q -6 -@ "$3" < "$2"')
    by_shell("tar, xz -T0", "xz", 'tar -C "$1" -cf - -T "$2" | xz -T0 > "$3"')
    if shutil.which("zstd"):
        by_shell("tar, zstd -10", "zst", 'tar -C "$1" -cf - -T "$2" | zstd -q -T0 -10 > "$3"')
