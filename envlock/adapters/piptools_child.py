"""Runs pip-tools' resolver as if on another machine; started by itself, imports nothing of envlock.

pip takes the tags of a foreign target from its options, and its markers and Python version from
the interpreter that runs it. Here all three are put in their place before anything is asked. The
question and the answer are JSON files::

    python -I piptools_child.py QUESTION ANSWER
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pip._internal.exceptions import DistributionNotFound, PipError
from pip._internal.index import collector
from pip._internal.index.package_finder import PackageFinder
from pip._internal.models.link import Link
from pip._internal.models.target_python import TargetPython
from pip._internal.network.session import PipSession
from pip._internal.resolution.resolvelib import candidates
from pip._vendor.packaging import markers
from pip._vendor.packaging.tags import Tag, parse_tag
from pip._vendor.packaging.utils import canonicalize_name
from piptools._compat import parse_requirements
from piptools._internal._pip_api import create_install_requirement_from_line
from piptools.repositories import PyPIRepository
from piptools.resolver import BacktrackingResolver
from piptools.utils import key_from_ireq

#: What pip says of a source where only wheels are allowed.
_PASSED_OVER = "No sources permitted for "
#: A page that is not there is an answer; who must log in, or come again later, has none.
_ANSWERS = re.compile(r"(?!401|407|408|429)4\d\d Client Error")
_PIECE = 1024 * 1024
_ROUNDS = 200  # each one lets go of the held versions that stood in the way


def be(question: dict[str, Any]) -> None:
    """Gives pip the target's markers, tags and Python version instead of this machine's."""
    version = tuple(int(part) for part in question["version"])
    tags = [tag for line in question["tags"] for tag in parse_tag(line)]
    there = dict(question["markers"])
    begin, requires = TargetPython.__init__, candidates.RequiresPythonCandidate.__init__

    def of_target(self: TargetPython, *_args: Any, **_options: Any) -> None:
        begin(self, py_version_info=version)

    def needs(self: candidates.RequiresPythonCandidate, _given: Any) -> None:
        requires(self, version)

    _put(markers, "default_environment", lambda: dict(there))
    _put(TargetPython, "__init__", of_target)
    _put(TargetPython, "get_sorted_tags", lambda _self: tags)
    _put(candidates.RequiresPythonCandidate, "__init__", needs)
    for module in [found for name, found in sys.modules.items() if name.startswith("pip.")]:
        if hasattr(module, "get_supported"):
            _put(module, "get_supported", lambda *_args, **_options: list[Tag](tags))


def _put(there: Any, name: str, what: Any) -> None:
    """Replaces a part of pip; one that is not there any more is no part to go on without."""
    if not hasattr(there, name):
        raise SystemExit(f"error: this pip has no '{there.__name__}.{name}'")
    setattr(there, name, what)


def only_stubs(held: dict[str, str], stubs: str) -> None:
    """Takes away what an index says of the very versions that are held: the target's own metadata
    counts."""
    find = PackageFinder.find_all_candidates

    def filtered(self: PackageFinder, name: str) -> list[Any]:
        version = held.get(canonicalize_name(name))
        return [
            one
            for one in find(self, name)
            if str(one.version) != version or _is_in(one.link, stubs)
        ]

    _put(PackageFinder, "find_all_candidates", filtered)


def _is_in(link: Link, folder: str) -> bool:
    return bool(link.is_file and Path(link.file_path).parent == Path(folder))


def record_failures() -> list[str]:
    """The list to which goes every index that could not be asked; pip itself goes on without."""
    failed: list[str] = []
    tell = collector._handle_get_simple_fail

    def told(link: Link, reason: Any, meth: Callable[..., None] | None = None) -> None:
        if not _ANSWERS.match(str(reason)):
            failed.append(f"{link}: {reason}")
        tell(link, reason, meth)

    _put(collector, "_handle_get_simple_fail", told)
    trusts = PipSession.is_secure_origin

    def trusted(self: PipSession, location: Link) -> bool:
        answer = trusts(self, location)
        if not answer:
            failed.append(f"{location}: neither https nor a trusted host")
        return answer

    _put(PipSession, "is_secure_origin", trusted)
    return failed


def record_sources() -> set[str]:
    """The set to which goes every project whose source was passed over."""
    found: set[str] = set()
    skip = PackageFinder._log_skipped_link

    def skipped(self: PackageFinder, link: Link, result: Any, detail: str) -> None:
        if detail.startswith(_PASSED_OVER):
            found.add(canonicalize_name(detail[len(_PASSED_OVER) :]))
        skip(self, link, result, detail)

    _put(PackageFinder, "_log_skipped_link", skipped)
    return found


def solve(question: dict[str, Any], repository: PyPIRepository) -> Iterator[dict[str, Any]]:
    """The pins."""
    options, session = repository.options, repository.session
    wanted = [
        requirement
        for path, bound in [
            *((path, False) for path in question["files"]),
            *((path, True) for path in question["constraints"]),
        ]
        for requirement in parse_requirements(
            path, session=session, finder=repository.finder, options=options, constraint=bound
        )
    ]
    existing = [
        create_install_requirement_from_line(f"{name}=={version}")
        for name, version in question["held"].items()
    ]
    resolver = BacktrackingResolver(
        constraints=[one for one in wanted if one.match_markers()],
        existing_constraints={key_from_ireq(one): one for one in existing},
        repository=repository,
        allow_unsafe=True,
    )
    named = {one.link.url_without_fragment for one in wanted if one.link is not None}
    for found in resolver.resolve(max_rounds=_ROUNDS):
        assert found.name and found.req and found.link
        version = next(iter(found.specifier)).version
        direct = found.req.url or found.link.url_without_fragment in named
        links = [found.link] if direct else _links(repository, found.name, version)
        yield {
            "name": canonicalize_name(found.name),
            "version": version,
            "direct": bool(direct),
            "kind": found.link.scheme,
            "files": [_file(link, repository.session) for link in links],
        }


def _links(repository: PyPIRepository, name: str, version: str) -> list[Link]:
    found = repository.find_all_candidates(name)
    return [one.link for one in found if str(one.version) == version]


def _file(link: Link, session: PipSession) -> dict[str, Any]:
    sha256 = link.hash if link.hash_name == "sha256" else ""
    if not sha256 and not link.is_vcs and not link.is_existing_dir():
        # an index that says no sha256, and a file that the request names: the bytes are asked
        with session.get(link.url_without_fragment, stream=True) as answer:
            answer.raise_for_status()
            total = hashlib.sha256()
            for piece in answer.iter_content(_PIECE):
                total.update(piece)
        sha256 = total.hexdigest()
    return {"url": link.url_without_fragment, "file": link.filename, "sha256": sha256}


def _causes(error: BaseException | None) -> str:
    """The requirements that no version meets together, as people write them."""
    causes = getattr(error, "causes", ())
    said = [f"{c.requirement} (needed by {c.parent})" if c.parent else str(c.requirement)
            for c in causes]  # fmt: skip
    return f"no version meets {' and '.join(sorted(set(said)))}" if said else ""


def without_wheel(finder: PackageFinder) -> set[str]:
    """Projects that were asked for, and have nothing that fits."""
    return {canonicalize_name(name) for name, found in finder._all_candidates.items() if not found}


def main(asked: str, answer: str) -> int:
    """Reads the question, writes the answer: ``pins``, or ``refused`` with what else is known."""
    question = json.loads(Path(asked).read_text(encoding="utf-8"))
    be(question)
    only_stubs(question["held"], question["stubs"])
    failed, passed_over = record_failures(), record_sources()
    repository = PyPIRepository(question["options"], cache_dir=question["cache"])
    try:
        found: dict[str, Any] = {"pins": list(solve(question, repository))}
        if failed:  # what it has may be what is meant: of the same name elsewhere nobody is to know
            found = {"refused": "", "program": True, "unreachable": failed, "only_source": []}
    except PipError as error:
        cause = error.__cause__ if isinstance(error, DistributionNotFound) else None
        found = {
            "refused": _causes(cause) or str(error),
            "program": not isinstance(error, DistributionNotFound),
            "unreachable": failed,
            "only_source": sorted(passed_over & without_wheel(repository.finder)),
        }
    Path(answer).write_text(json.dumps(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
