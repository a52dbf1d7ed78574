"""The options that pip and uv know, and how their parsers read a command line.

Only what has to be told apart is told apart: which word is an option, which is the value of one,
and which is a requirement. Tables from ``pip --help`` (9.0 to 26.3) and ``uv pip --help`` (0.13).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The options of one subcommand.

    Attributes:
        names: canonical name of each spelling.
        valued: canonical names of options that take a value.
        abbreviate: an unambiguous beginning of a long option is that option (optparse does so).
    """

    names: Mapping[str, str]
    valued: frozenset[str]
    abbreviate: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A command line, read.

    Attributes:
        flags: canonical names of the options without a value that were given.
        values: values of the others, in order.
        words: what is no option.
        unknown: options that the table does not have: the tool rejects them.
    """

    flags: frozenset[str] = frozenset()
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    def value(self, name: str) -> tuple[str, ...]:
        """Every value given for an option."""
        return self.values.get(name, ())

    def has(self, *names: str) -> bool:
        """Whether one of these was given, with or without a value."""
        return any(name in self.flags or name in self.values for name in names)


def table(*lines: str, abbreviate: bool = False) -> Table:
    """Reads ``-r/--requirement=``: the first long spelling is canonical, ``=`` takes a value."""
    names: dict[str, str] = {}
    valued: set[str] = set()
    for entry in " ".join(lines).split():
        spellings = entry.rstrip("=").split("/")
        canonical = next((name for name in spellings if name.startswith("--")), spellings[0])
        names.update((name, canonical) for name in spellings)
        if entry.endswith("="):
            valued.add(canonical)
    return Table(names=names, valued=frozenset(valued), abbreviate=abbreviate)


class _Reader:
    """One pass over the words, as optparse and clap make it."""

    def __init__(self, words: Sequence[str], options: Table) -> None:
        self._left = list(words)
        self._options = options
        self.flags: set[str] = set()
        self.values: dict[str, list[str]] = {}
        self.words: list[str] = []
        self.unknown: list[str] = []

    def read(self, interspersed: bool) -> None:
        while self._left:
            word = self._left.pop(0)
            if word == "--":
                self.words += self._left
                self._left = []
            elif word.startswith("--"):
                self._long(word)
            elif word.startswith("-") and len(word) > 1:
                self._short(word[1:])
            elif interspersed:
                self.words.append(word)
            else:
                self.words = [word, *self._left]
                return

    def _find(self, name: str) -> str | None:
        names = self._options.names
        if name in names:
            return names[name]
        if not self._options.abbreviate:
            return None
        meant = {full for spelled, full in names.items() if spelled.startswith(name)}
        return meant.pop() if len(meant) == 1 else None

    def _long(self, word: str) -> None:
        name, equals, value = word.partition("=")
        full = self._find(name)
        if full is None:
            self.unknown.append(word)
        elif full in self._options.valued:
            self._add(full, [value] if equals else self._take())
        else:
            self.flags.add(full)

    def _short(self, cluster: str) -> None:
        while cluster:
            full = self._options.names.get(f"-{cluster[0]}")
            rest = cluster[1:]
            if full is None:
                self.unknown.append(f"-{cluster}")
                return
            if full in self._options.valued:
                self._add(full, [rest.removeprefix("=")] if rest else self._take())
                return
            self.flags.add(full)
            cluster = rest

    def _take(self) -> list[str]:
        return [self._left.pop(0)] if self._left else []

    def _add(self, name: str, value: list[str]) -> None:
        self.values.setdefault(name, []).extend(value)


def parse(words: Sequence[str], options: Table, *, interspersed: bool = True) -> Parsed:
    """Reads a command line.

    Args:
        interspersed: options may follow the first word; if not, ``words`` begins with it.
    """
    reader = _Reader(words, options)
    reader.read(interspersed)
    return Parsed(
        flags=frozenset(reader.flags),
        values={name: tuple(values) for name, values in reader.values.items()},
        words=tuple(reader.words),
        unknown=tuple(reader.unknown),
    )


def join(first: Parsed, second: Parsed) -> Parsed:
    """Both, one after the other; the words are the first's."""
    names = first.values.keys() | second.values.keys()
    return Parsed(
        flags=first.flags | second.flags,
        values={name: first.value(name) + second.value(name) for name in sorted(names)},
        words=first.words,
        unknown=first.unknown + second.unknown,
    )


def without(words: Iterable[str], options: Table, dropped: Iterable[str]) -> list[str]:
    """The words without some options (canonical names) and their values.

    Clusters of short options are taken apart where one of them goes.
    """
    gone = set(dropped)
    left = list(words)
    kept: list[str] = []
    while left:
        word = left.pop(0)
        if word == "--":
            return [*kept, word, *left]
        if word.startswith("-") and len(word) > 1:
            one = parse([word], options)
            valueless = any(not given for given in one.values.values())
            value = [left.pop(0)] if valueless and left else []
            if gone & (one.flags | one.values.keys()):
                kept += _remainder(word, value, options, gone)
            else:
                kept += [word, *value]
        else:
            kept.append(word)
    return kept


def without_words(words: Iterable[str], options: Table, gone: Container[str]) -> list[str]:
    """The words without some requirements, plain or editable; values of other options stay."""
    left = list(words)
    kept: list[str] = []
    while left:
        word = left.pop(0)
        if word == "--":
            return [*kept, word, *(one for one in left if one not in gone)]
        if word.startswith("-") and len(word) > 1:
            one = parse([word], options)
            valueless = any(not given for given in one.values.values())
            value = [left.pop(0)] if valueless and left else []
            tree = [*one.value("--editable"), *value] if "--editable" in one.values else []
            if any(path in gone for path in tree):
                kept += _remainder(word, value, options, {"--editable"})
            else:
                kept += [word, *value]
        elif word not in gone:
            kept.append(word)
    return kept


def only_options(words: Sequence[str], options: Table) -> list[str]:
    """The options of a command line, with their values, in order; what they are about is gone."""
    left = list(words)
    kept: list[str] = []
    while left and (word := left.pop(0)) != "--":
        if word.startswith("-") and len(word) > 1:
            one = parse([word], options)
            valueless = any(not given for given in one.values.values())
            kept += [word, *([left.pop(0)] if valueless and left else [])]
    return kept


def _remainder(word: str, value: list[str], options: Table, gone: set[str]) -> list[str]:
    """What stays of a cluster such as ``-Uq`` or ``-Ur FILE``; nothing of a long option."""
    if word.startswith("--"):
        return []
    stays = "-"
    for place, letter in enumerate(word[1:], start=1):
        full = options.names.get(f"-{letter}", "")
        if full in gone:
            if full in options.valued:
                break  # the rest is its value
        elif full in options.valued or not full:
            return [stays + word[place:], *value]
        else:
            stays += letter
    return [stays] if stays != "-" else []


_PIP_GENERAL = (
    "-h/--help --debug --isolated --require-virtualenv/--require-venv -v/--verbose -q/--quiet "
    "-V/--version --no-input --no-cache-dir --disable-pip-version-check --no-color --no-proxy-env "
    "--no-python-version-warning --python= --log/--log-file/--local-log= --keyring-provider= "
    "--proxy= --retries= --timeout/--default-timeout= --exists-action= --trusted-host= --cert= "
    "--client-cert= --cache-dir= --use-feature= --use-deprecated= --resume-retries="
)
_PIP_INSTALL = (
    "-r/--requirement= -c/--constraint= --build-constraint= --requirements-from-script= "
    "-e/--editable= -t/--target= --platform= --python-version= --implementation= --abi= --root= "
    "--prefix= --src/--source/--source-dir/--source-directory= --upgrade-strategy= "
    "-C/--config-settings/--config-setting= --global-option= --install-option= --build-option= "
    "--progress-bar= --root-user-action= --report= --group= --all-releases= --only-final= "
    "--no-binary= --only-binary= -i/--index-url/--pypi-url= --extra-index-url= "
    "--refresh-package= -f/--find-links= --uploaded-prior-to= -b/--build/--build-dir= "
    "--no-deps/--no-dependencies --only-deps/--only-dependencies --dry-run --user --no-user "
    "-U/--upgrade --force-reinstall -I/--ignore-installed --ignore-requires-python "
    "--no-build-isolation --use-pep517 --no-use-pep517 --check-build-dependencies "
    "--break-system-packages --compile --no-compile --no-warn-script-location "
    "--no-warn-conflicts --require-hashes --no-require-hashes --no-clean --pre --prefer-binary "
    "--no-index"
)
_PIP_UNINSTALL = "-r/--requirement= -y/--yes --root-user-action= --break-system-packages"

_UV_GENERAL = (
    "-h/--help -V/--version -q/--quiet -v/--verbose --color= --native-tls --no-native-tls "
    "--system-certs --no-system-certs --offline --no-offline --allow-insecure-host/"
    "--trusted-host= --no-progress --directory= --project= --config-file= --no-config -n/"
    "--no-cache/--no-cache-dir --cache-dir= --no-color --managed-python --no-managed-python "
    "--no-python-downloads --python-preference= --python-fetch= --preview --no-preview "
    "--preview-features= --isolated"
)
_UV_SHARED = (
    "-r/--requirements/--requirement= -p/--python= --keyring-provider= --system --no-system "
    "--break-system-packages --no-break-system-packages -t/--target= --prefix= --dry-run "
    "--cert="
)
#: Known to uv and without effect.
_UV_IGNORED = "--disable-pip-version-check"
_UV_INSTALL = (
    "-e/--editable= --no-editable --no-editable-package= -c/--constraints/--constraint= "
    "--overrides/--override= --excludes/--exclude= -b/--build-constraints/--build-constraint= "
    "--extra= --all-extras --no-all-extras --group= --no-deps --require-hashes "
    "--no-require-hashes --no-verify-hashes --verify-hashes --require-build-hashes --no-build "
    "--build --no-binary= --only-binary= --python-version= --python-platform= --exact --inexact "
    "--strict --no-strict --check --output-format= --torch-backend= --user --index= "
    "--default-index= -i/--index-url/--pypi-url= --extra-index-url= -f/--find-links= --no-index "
    "--index-strategy= -U/--upgrade --no-upgrade -P/--upgrade-package= --upgrade-group= "
    "--resolution= --prerelease= --pre --prerelease-package= --fork-strategy= --exclude-newer= "
    "--exclude-newer-package= --no-sources --no-sources-package= --reinstall/--force-reinstall "
    "--no-reinstall --reinstall-package= --link-mode= --compile-bytecode/--compile "
    "--no-compile-bytecode/--no-compile -C/--config-setting/--config-settings= "
    "--config-settings-package= --no-build-isolation --build-isolation "
    "--no-build-isolation-package= --refresh --no-refresh --refresh-package="
)

_UV_SYNC = (
    "-c/--constraints/--constraint= -b/--build-constraints/--build-constraint= --extra= "
    "--all-extras --no-all-extras --group= --require-hashes --no-require-hashes "
    "--no-verify-hashes --verify-hashes --require-build-hashes --no-build --build --no-binary= "
    "--only-binary= --allow-empty-requirements --no-allow-empty-requirements --python-version= "
    "--python-platform= --strict --no-strict --check --output-format= --torch-backend= --user "
    "--index= --default-index= -i/--index-url/--pypi-url= --extra-index-url= -f/--find-links= "
    "--no-index --index-strategy= --exclude-newer= --exclude-newer-package= --no-sources "
    "--no-sources-package= --reinstall/--force-reinstall --no-reinstall --reinstall-package= "
    "--link-mode= --compile-bytecode/--compile --no-compile-bytecode/--no-compile "
    "-C/--config-setting/--config-settings= --config-settings-package= --no-build-isolation "
    "--build-isolation --no-build-isolation-package= --refresh --no-refresh --refresh-package="
)
#: ``uv sync``, ``uv run``, ``uv add`` and ``uv remove`` share these.
_UV_PROJECT = (
    "--extra= --no-extra= --all-extras --no-all-extras --dev --no-dev --only-dev --group= "
    "--no-group= --no-default-groups --only-group= --all-groups --no-editable --editable "
    "--no-editable-package= --inexact --exact --active --no-active --no-install-project "
    "--no-install-workspace --no-install-local --no-install-package= --locked --frozen "
    "--dry-run --check --no-sync --sync --all-packages --package= --script= --output-format= "
    "--python-platform= --index= --default-index= -i/--index-url= --extra-index-url= "
    "-f/--find-links= --no-index --index-strategy= --keyring-provider= -U/--upgrade "
    "--no-upgrade -P/--upgrade-package= --upgrade-group= --resolution= --prerelease= "
    "--prerelease-package= --fork-strategy= --exclude-newer= --exclude-newer-package= "
    "--no-sources --no-sources-package= --reinstall/--force-reinstall --no-reinstall "
    "--reinstall-package= --link-mode= --compile-bytecode/--compile "
    "--no-compile-bytecode/--no-compile -C/--config-setting/--config-settings= "
    "--config-settings-package= --no-build-isolation --build-isolation "
    "--no-build-isolation-package= --no-build --no-build-package= --no-binary "
    "--no-binary-package= --require-build-hashes --no-require-build-hashes --refresh "
    "--no-refresh --refresh-package= -p/--python="
)
_UV_ADD = (
    "-r/--requirements/--requirement= -c/--constraints/--constraint= --optional= --raw "
    "--bounds= --rev= --tag= --branch= --lfs --workspace --no-workspace"
)
_UV_RUN = (
    "-m/--module --env-file= --no-env-file -w/--with= --with-editable= --with-requirements= "
    "--isolated --gui-script --no-project"
)
_PIP_SYNC = (
    "-h/--help --version -a/--ask -n/--dry-run --force -f/--find-links= -i/--index-url= "
    "--extra-index-url= --trusted-host= --no-index --python-executable= -v/--verbose -q/--quiet "
    "--user --cert= --client-cert= --pip-args= --config= --no-config"
)

PIP = table(_PIP_GENERAL, abbreviate=True)
PIP_COMMANDS = {
    "install": table(_PIP_GENERAL, _PIP_INSTALL, abbreviate=True),
    "uninstall": table(_PIP_GENERAL, _PIP_UNINSTALL, abbreviate=True),
    "sync": table(_PIP_SYNC),  # pip-sync: pip has no subcommand of this name
}
UV = table(_UV_GENERAL)
UV_COMMANDS = {
    "install": table(_UV_GENERAL, _UV_SHARED, _UV_INSTALL, _UV_IGNORED),
    "uninstall": table(_UV_GENERAL, _UV_SHARED, _UV_IGNORED, "-y/--yes"),
    "sync": table(_UV_GENERAL, _UV_SHARED, _UV_SYNC),
}
UV_PROJECT_COMMANDS = {
    "sync": table(_UV_GENERAL, _UV_PROJECT),
    "add": table(_UV_GENERAL, _UV_PROJECT, _UV_ADD, "-m/--marker="),
    "remove": table(_UV_GENERAL, _UV_PROJECT, "--optional="),
    "run": table(_UV_GENERAL, _UV_PROJECT, _UV_RUN, "-s/--script"),
}
#: Options that pip reads in requirements files.
FILE = table(
    "-i/--index-url/--pypi-url= --extra-index-url= --no-index -f/--find-links= -c/--constraint= "
    "-r/--requirement= -e/--editable= --no-binary= --only-binary= --prefer-binary "
    "--require-hashes --pre --trusted-host= --use-feature= --all-releases= --only-final=",
    abbreviate=True,
)
