"""The language that envlock speaks in.

Sentences are English everywhere, and translated at the door, by the templates of one gettext
catalogue. Nothing of that is imported or read for English.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from envlock.errors import UsageProblem

_LOCALE = Path(__file__).parents[1] / "locale"
_LANGUAGES = {"en": "", "zh": "zh_CN"}
_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")
#: Options of ``guard`` that take a value: what follows the first other word is not envlock's.
_VALUED = ("--python", "--manifest")


def take(arguments: Sequence[str], env: Mapping[str, str]) -> tuple[str, list[str]]:
    """The language, and the arguments without ``--lang``, which may stand anywhere before ``--``
    and before the command that ``guard`` is given.

    Raises:
        UsageProblem: it is not a language that envlock speaks.
    """
    kept: list[str] = []
    named, words = "", iter(arguments)
    for word in words:
        if word == "--" or (not word.startswith("-") and _guarded(kept)):
            kept += [word, *words]
        elif word == "--lang" or word.startswith("--lang="):
            named = word.partition("=")[2] or next(words, "")
            if named not in _LANGUAGES:
                raise UsageProblem(f"command line: --lang: there is no '{named}'", "one of en, zh")
        else:
            kept.append(word)
            if word in _VALUED:
                kept += [value for value in [next(words, None)] if value is not None]
    return named or of_environment(env), kept


def _guarded(words: Sequence[str]) -> bool:
    return next((word for word in words if not word.startswith("-")), "") == "guard"


def of_environment(env: Mapping[str, str]) -> str:
    """The language of LANGUAGE, LC_ALL, LC_MESSAGES and LANG, as gettext reads them: LANGUAGE
    counts where a locale is set at all."""
    locale = next((env[name] for name in _VARIABLES if env.get(name)), "C")
    if locale.partition(".")[0] in ("C", "POSIX"):
        return "en"
    for name in [*env.get("LANGUAGE", "").split(":"), locale]:
        if name[:2] in _LANGUAGES:
            return name[:2]
    return "en"


def translator(language: str) -> Callable[[str], str] | None:
    """What makes sentences of that language out of English ones; None for English."""
    folder = _LANGUAGES[language]
    if not folder:
        return None
    import gettext

    from envlock.cli.translating import Catalogue

    found = gettext.translation("envlock", localedir=_LOCALE, languages=[folder], fallback=True)
    # the standard library has no public way to ask which templates there are
    messages: Mapping[str, str] = vars(found).get("_catalog", {})
    return Catalogue(messages).say
