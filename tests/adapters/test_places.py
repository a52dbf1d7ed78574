"""Which servers will be wanted, and where that is said."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from envlock.adapters import places as module
from envlock.adapters.configuration import File, pip_files
from envlock.adapters.index_settings import read_index_settings
from envlock.adapters.places import configured_places
from envlock.model.triage import Access, Place, What


@pytest.fixture(autouse=True)
def default(monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings of this machine, and a public index that is nobody's."""
    monkeypatch.setattr(module, "default_index", lambda: ["https://default.test/simple"])
    for name in ("pip_files", "uv_files"):
        monkeypatch.setattr(module, name, _without_machine(getattr(module, name)))


def _without_machine(read: Callable[..., list[File]]) -> Callable[..., list[File]]:
    return lambda *where: [one for one in read(*where) if not one[0].startswith("/etc/")]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A person's folder, and a target in it, with no settings."""
    (tmp_path / "target").mkdir()
    (tmp_path / "settings" / "uv").mkdir(parents=True)
    return tmp_path


def places(home: Path, **env: str) -> list[Place]:
    base = {
        "HOME": str(home), "XDG_CONFIG_HOME": str(home / "settings"),
        "XDG_CONFIG_DIRS": str(home / "machine"),
    }  # fmt: skip
    return list(configured_places({**base, **env}, str(home / "target")))


def indexes(found: list[Place]) -> list[tuple[str, str, str]]:
    return [(one.url, one.tools, one.origin) for one in found if one.what is What.INDEX]


def hubs(found: list[Place]) -> list[tuple[str, str]]:
    return [(one.url, one.origin) for one in found if one.what is What.HUB]


def test_nothing_is_configured(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    found = places(home)
    assert indexes(found) == [("https://default.test/simple", "pip and uv", "default")]
    assert [one.what for one in found] == [What.INDEX, What.CODE, What.HUB]


def test_the_targets_own_file(home: Path) -> None:
    """It is the target's pip that will ask, not envlock's."""
    file = home / "target" / "pip.conf"
    file.write_text(
        "[global]\nindex-url = https://me:secret@a.test/simple\nproxy = http://p.test:3128\n"
        "[install]\ntrusted_host = a.test b.test\n"
    )
    found = places(home, UV_NO_CONFIG="1")
    assert indexes(found) == [
        ("https://me:secret@a.test/simple", "pip", f"{file} [global]"),
        ("https://default.test/simple", "uv", "default"),
    ]
    access = found[0].access
    assert access.proxy_origin == f"{file} [global]"
    assert (access.proxy, access.trusted) == ("http://p.test:3128", ("a.test", "b.test"))
    assert "secret" not in repr(found)


def test_variables_are_stronger(home: Path) -> None:
    (home / "target" / "pip.conf").write_text("[global]\nindex-url = https://a.test/simple\n")
    found = places(
        home, UV_NO_CONFIG="1", PIP_INDEX_URL="https://b.test/simple/",
        UV_DEFAULT_INDEX="main=https://b.test/simple", PIP_EXTRA_INDEX_URL="https://c.test",
        UV_INDEX="https://d.test", PIP_FIND_LINKS="https://e.test/x.html ./wheels",
    )  # fmt: skip
    assert indexes(found) == [
        ("https://b.test/simple/", "pip and uv", "$PIP_INDEX_URL, $UV_DEFAULT_INDEX"),
        ("https://c.test", "pip", "$PIP_EXTRA_INDEX_URL"),
        ("https://e.test/x.html", "pip", "$PIP_FIND_LINKS"),
        ("https://d.test", "uv", "$UV_INDEX"),
    ]
    assert [one.url for one in found if one.page] == ["https://e.test/x.html"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('index-url = "https://a.test/"\n', ["https://a.test/"]),
        ('[pip]\nindex-url = "https://a.test/"\n', ["https://a.test/"]),
        (
            'index = [{url = "https://b.test/"}, {url = "https://a.test/", default = true}]\n',
            ["https://a.test/", "https://b.test/"],
        ),
        ("no-index = true\n", []),
        ("index = 1\n[pip]\nextra-index-url = 3\n", ["https://default.test/simple"]),
        ("not toml", ["https://default.test/simple"]),
    ],
)
def test_uvs_own_file(
    text: str, wanted: list[str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    (home / "settings" / "uv" / "uv.toml").write_text(text)
    found = indexes(places(home, PIP_NO_INDEX="1"))
    assert [url for url, tools, _ in found if tools == "uv"] == wanted


def test_what_is_switched_off_is_not_asked(home: Path) -> None:
    found = places(home, PIP_NO_INDEX="1", UV_OFFLINE="1", HF_HUB_OFFLINE="1")
    assert [one.what for one in found] == [What.CODE]


def test_hubs(home: Path) -> None:
    assert hubs(places(home, HF_ENDPOINT="https://mirror.test", VLLM_USE_MODELSCOPE="True")) == [
        ("https://mirror.test", "$HF_ENDPOINT"),
        ("https://www.modelscope.cn", "$VLLM_USE_MODELSCOPE"),
    ]
    assert hubs(places(home, MODELSCOPE_DOMAIN="m.test", VLLM_USE_MODELSCOPE="false"))[1:] == [
        ("https://m.test", "$MODELSCOPE_DOMAIN")
    ]


@pytest.mark.skipif(shutil.which("git") is None, reason="git")
def test_as_git_is_configured(home: Path) -> None:
    """Its own proxy, a mirror in the place of the server, a certificate that is not checked."""
    path = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1"}

    def code(text: str, **env: str) -> Place:
        (home / ".gitconfig").write_text(text)
        found = places(home, GIT_CEILING_DIRECTORIES=str(home), **path, **env)
        return next(one for one in found if one.what is What.CODE)

    plain = code("[user]\nname = x\n")
    assert (plain.url, plain.origin, plain.access) == ("https://github.com", "default", Access())
    proxied = code("[http]\nproxy = http://me:secret@p.test:1\nsslVerify = false\n")
    assert proxied.access.proxy == "http://me:secret@p.test:1"
    assert proxied.access.proxy_origin == "git:http.proxy"
    assert proxied.access.trusted == ("github.com",)
    elsewhere = code('[http "https://other.test"]\nproxy = http://p.test:1\n')
    assert elsewhere.access == Access()
    mirrored = code(
        '[url "https://far.test/"]\ninsteadOf = https://\n'
        '[url "https://mirror.test/gh/"]\ninsteadOf = https://github.com/\n'
        '[http "https://mirror.test"]\nsslCAInfo = /m.pem\n'
    )
    assert (mirrored.url, mirrored.origin) == ("https://mirror.test/gh/", "git:url.insteadOf")
    assert mirrored.access == Access(cert="/m.pem")
    named = code("", GIT_SSL_CAINFO="/n.pem", GIT_SSL_NO_VERIFY="1")
    assert named.access == Access(cert="/n.pem", trusted=("github.com",))
    assert code("[broken\n").access == Access()


def test_without_git(home: Path) -> None:
    found = places(home, PATH=str(home))
    assert [one.url for one in found if one.what is What.CODE] == ["https://github.com"]


def test_a_file_that_pip_cannot_read(home: Path) -> None:
    (home / "target" / "pip.conf").write_text("index-url = https://a.test\n")
    assert indexes(places(home, UV_OFFLINE="1")) == [
        ("https://default.test/simple", "pip", "default")
    ]


def test_it_is_what_pip_itself_says(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files in all their places, sections and variables, one over the other."""
    monkeypatch.setattr(module, "pip_files", pip_files)
    named = home / "named.conf"
    named.write_text(
        "[global]\nindex-url = https://global.test/simple\nextra-index-url =\n"
        "    https://one.test\n    https://two.test\nproxy = p.test:1\n"
        "[install]\nindex-url = https://install.test/simple\ncert = /x.pem\n"
    )
    for more in ({}, {"PIP_INDEX_URL": "https://env.test"}, {"PIP_TRUSTED_HOST": "a b"}):
        env = {"HOME": str(home), "PATH": os.environ["PATH"], "PIP_CONFIG_FILE": str(named), **more}
        told = read_index_settings(env)
        found = [one for one in configured_places(env, str(home)) if one.tools == "pip"]
        assert [one.url for one in found] == [told.index, *told.more]
        access = found[0].access
        assert (access.proxy, access.cert, access.trusted) == (told.proxy, told.cert, told.trusted)
