"""Which servers people and tools will want on this machine, and where that is configured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from envlock.adapters import pip_conf
from envlock.adapters.configuration import pip_files, read_toml, uv_files
from envlock.adapters.git_access import git_access
from envlock.adapters.index_settings import (
    IndexSettings,
    is_page,
    parse_index_settings,
    with_uv_settings,
)
from envlock.adapters.network import default_index
from envlock.errors import UnusableInput
from envlock.model.triage import Access, Place, What

_CODE = "https://github.com"
_HUB = "https://huggingface.co"
_MODELSCOPE = "https://www.modelscope.cn"
#: Variables by which a tool takes its models from there.
_USES_MODELSCOPE = (
    "VLLM_USE_MODELSCOPE", "SGLANG_USE_MODELSCOPE", "USE_MODELSCOPE_HUB", "MODELSCOPE_CACHE",
    "MODELSCOPE_API_TOKEN",
)  # fmt: skip
_NO = ("", "0", "false", "no", "off")
#: Of pip's sections, strongest first (pip's configuration precedence).
_SECTIONS = (":env:", "install", "global")


def configured_places(env: Mapping[str, str], home: str) -> tuple[Place, ...]:
    """The indexes of pip and uv, the code host and the model hubs; what is switched off is left
    out.

    Args:
        home: the target's ``sys.prefix``, which has a configuration file of pip's.
    """
    indexes = _merged([*_of_pip(env, home), *_of_uv(env)])
    url, origin, access = git_access(_CODE, env)
    code = Place(what=What.CODE, url=url, origin=origin, tools="git", access=access)
    return (*indexes, code, *_hubs(env))


def _merged(places: Iterable[Place]) -> Iterator[Place]:
    """One place where pip and uv ask the same in the same way."""
    found: dict[tuple[str, Access], list[Place]] = {}
    for place in places:
        found.setdefault((place.url.rstrip("/"), place.access), []).append(place)
    for alike in found.values():
        tools = " and ".join(dict.fromkeys(place.tools for place in alike))
        origin = ", ".join(dict.fromkeys(place.origin for place in alike))
        first = alike[0]
        yield Place(
            what=first.what, url=first.url, origin=origin, tools=tools, page=first.page,
            access=first.access,
        )  # fmt: skip


def _of_pip(env: Mapping[str, str], home: str) -> list[Place]:
    known = _pip_values(env, home)
    listed = [f"{section}.{key}={value!r}" for (section, key), (value, _) in known.items()]
    settings = parse_index_settings("\n".join(listed))

    def origin(key: str) -> str:
        return next((known[s, key][1] for s in _SECTIONS if known.get((s, key), ("",))[0]), "")

    access = Access(
        proxy=settings.proxy,
        proxy_origin=origin("proxy"),
        cert=settings.cert,
        client_cert=settings.client_cert,
        trusted=settings.trusted,
    )
    return _indexes(settings, "pip", access, origin)


def _pip_values(env: Mapping[str, str], home: str) -> dict[tuple[str, str], tuple[str, str]]:
    """Value and origin of every setting of the target's pip, by section and key."""
    found: dict[tuple[str, str], tuple[str, str]] = {}
    for path, text in pip_files(env, home):
        try:
            sections = pip_conf.parse(text.splitlines(keepends=True), path)
        except UnusableInput:  # pip itself ends with an error
            continue
        for section, values in sections.items():
            for key, value in values.items():
                found[section, key] = (value, f"{path} [{section}]")
    for name, value in env.items():
        if name.startswith("PIP_") and value:
            key = name.removeprefix("PIP_").lower().replace("_", "-")
            found[":env:", key] = (value, f"${name}")
    return found


def _of_uv(env: Mapping[str, str]) -> list[Place]:
    if env.get("UV_OFFLINE", "").lower() not in _NO:
        return []
    origins: dict[str, str] = {}
    settings = IndexSettings()
    for path, content in read_toml(uv_files(env)):
        own = content.get("pip", {})
        for values in (content, own if isinstance(own, Mapping) else {}):
            settings = _with_toml(settings, values)
        origins |= {"index-url": path, "extra-index-url": path, "find-links": path}
    variables = with_uv_settings(IndexSettings(), env)
    for key, names, given in (
        ("index-url", ("UV_DEFAULT_INDEX", "UV_INDEX_URL"), variables.index),
        ("extra-index-url", ("UV_INDEX", "UV_EXTRA_INDEX_URL"), variables.more),
        ("find-links", ("UV_FIND_LINKS",), variables.links),
    ):
        if given:
            origins[key] = next(f"${name}" for name in names if env.get(name))
    settings = IndexSettings(
        index=variables.index or settings.index,
        more=variables.more or settings.more,
        links=variables.links or settings.links,
        no_index=variables.no_index or settings.no_index,
        trusted=(*variables.trusted, *settings.trusted),
    )
    access = Access(trusted=settings.trusted)
    return _indexes(settings, "uv", access, lambda key: origins.get(key, ""))


def _with_toml(before: IndexSettings, values: Mapping[str, Any]) -> IndexSettings:
    """Settings with those of a table of uv's: what it says replaces what was said before."""
    tables = [one for one in _several(values.get("index")) if isinstance(one, Mapping)]
    mains = [str(one.get("url", "")) for one in tables if one.get("default") is True]
    others = [str(one.get("url", "")) for one in tables if one.get("default") is not True]
    main = mains[0] if mains else values.get("index-url", before.index)
    more = [*others, *map(str, _several(values.get("extra-index-url")))]
    links = tuple(map(str, _several(values.get("find-links"))))
    trusted = tuple(map(str, _several(values.get("allow-insecure-host"))))
    return IndexSettings(
        index=str(main),
        more=tuple(more) or before.more,
        links=links or before.links,
        no_index=values.get("no-index", before.no_index) is True,
        trusted=trusted or before.trusted,
    )


def _several(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def _indexes(settings: IndexSettings, tools: str, access: Access, origin: Any) -> list[Place]:
    pages = [link for link in settings.links if is_page(link) and link.startswith("http")]
    wanted = [(url, "find-links", True) for url in pages]
    if not settings.no_index:
        main = [settings.index] if settings.index else default_index()
        wanted = [
            *((url, "index-url", False) for url in main),
            *((url, "extra-index-url", False) for url in settings.more),
            *wanted,
        ]
    return [
        Place(
            what=What.INDEX, url=url, origin=origin(key) or "default", tools=tools, page=page,
            access=access,
        )
        for url, key, page in wanted
        if url.startswith("http")
    ]  # fmt: skip


def _hubs(env: Mapping[str, str]) -> Iterator[Place]:
    if env.get("HF_HUB_OFFLINE", "").lower() in _NO:
        endpoint = env.get("HF_ENDPOINT", "")
        origin = "$HF_ENDPOINT" if endpoint else "default"
        yield Place(what=What.HUB, url=endpoint or _HUB, origin=origin, tools="huggingface_hub")
    domain = env.get("MODELSCOPE_DOMAIN", "")
    used = [name for name in _USES_MODELSCOPE if env.get(name, "").lower() not in _NO]
    if domain or used:
        url = domain if "://" in domain else f"https://{domain}"
        yield Place(
            what=What.HUB,
            url=url if domain else _MODELSCOPE,
            origin="$MODELSCOPE_DOMAIN" if domain else f"${used[0]}",
            tools="modelscope",
        )
