"""A target made of plain files becomes a manifest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from envlock.adapters.profiles import load_profile
from envlock.errors import UnusableInput
from envlock.model.dist import Distribution, WheelRef
from envlock.model.facts import Finding, Machine, Target
from envlock.model.manifest import Manifest, Stack, dump, load
from envlock.snapshot import Request, original_wheel, take
from tests.adapters.site import Site

LABEL = "2.10.0+das.opt1.dtk2604.20260325.g6b060a"
DIGEST = "0123456789abcdef" * 4


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "home/somebody/venv")


def target_of(site: Site, *sys_path: str) -> Target:
    return Target(
        executable=str(site.prefix / "bin/python"),
        source="test",
        python="3.10.12",
        markers={"python_version": "3.10", "sys_platform": "linux"},
        tags=("cp310-cp310-linux_x86_64",),
        layout=site.layout,
        sys_path=sys_path or (str(site.site),),
        glibc=None,
        venv=True,
        pip=None,
        externally_managed=None,
    )


def request(profile: str = "dtk", **more: object) -> Request:
    basic = Request(
        profile=load_profile(profile),
        machine=Machine(os="Linux"),
        stack=Stack(root="/opt/dtk"),
        created="2026-11-30T08:00:00Z",
        tool="tests",
    )
    return replace(basic, **more)  # type: ignore[arg-type]


def snap(site: Site, asked: Request | None = None, *sys_path: str) -> Manifest:
    manifest, _ = take(target_of(site, *sys_path), asked or request())
    assert load(dump(manifest)) == manifest
    return manifest


def entry(manifest: Manifest, name: str) -> Distribution:
    found = manifest.find(name)
    assert found is not None
    return found


def codes(findings: object) -> list[str]:
    return [finding.code for finding in findings]  # type: ignore[attr-defined]


def from_url(info: Path, document: Mapping[str, object]) -> None:
    (info / "direct_url.json").write_text(json.dumps(document))


def archive(url: str, **info: object) -> dict[str, object]:
    return {"url": url, "archive_info": info}


def test_two_runs_differ_in_created_only(site: Site) -> None:
    for name in ("torch", "numpy", "Flash.Attn"):
        site.add(name, LABEL, {f"{name.lower()}/__init__.py": ""})
    one = dump(snap(site))
    two = dump(snap(site, request(created="2027-01-01T00:00:00Z")))
    changed = [pair for pair in zip(one.splitlines(), two.splitlines(), strict=True)
               if pair[0] != pair[1]]  # fmt: skip
    assert [line.partition(":")[0] for pair in changed for line in pair] == ["created"] * 2


def test_labels_protect_and_name_the_stack(site: Site) -> None:
    site.add("lightop", LABEL)
    site.add("tqdm", "4.67.1", {"tqdm.py": ""})
    site.add("distro-info", "1.1+ubuntu0.2", {"distro_info.py": ""})
    manifest = snap(site)
    assert manifest.name == "dtk2604-cp310"
    assert manifest.stack == Stack(tag="dtk2604", root="/opt/dtk")
    assert [dist.name for dist in manifest.protected] == ["lightop"]
    assert entry(manifest, "lightop").vendor == ("label",)
    assert entry(manifest, "tqdm").vendor == ()


def test_a_direct_url_protects(site: Site) -> None:
    from_url(site.add("mine", "1.0"), archive("file:///x/mine-1.0-py3-none-any.whl"))
    assert entry(snap(site), "mine").vendor == ("direct-url",)
    assert entry(snap(site), "mine").protected


def test_the_name_list_protects_and_is_told(site: Site) -> None:
    """Already replaced by the public one: protected, and said."""
    site.add("torch", "2.11.0")
    manifest, findings = take(target_of(site), request())
    assert entry(manifest, "torch").protected
    assert codes(findings) == ["stack.looks-public"]
    site.add("tqdm", "4.67.1", {"tqdm.py": ""})
    _, again = take(target_of(site), request())
    assert again == findings


def test_protect_by_hand(site: Site) -> None:
    site.add("tqdm", "4.67.1")
    assert not entry(snap(site), "tqdm").protected
    assert entry(snap(site, request(protect=("tqdm",))), "tqdm").protected


def test_what_is_known_stays_protected_while_its_bytes_do(site: Site) -> None:
    """A restore leaves no direct_url.json, and nobody repeats --protect each time."""
    info = site.add("mine", "1.0", {"mine.py": "x = 1\n"})
    site.add("tqdm", "4.67.1", {"tqdm.py": ""})
    from_url(info, archive("file:///x/mine-1.0-py3-none-any.whl"))
    known = snap(site, request(protect=("tqdm",)))
    (info / "direct_url.json").unlink()
    assert snap(site).protected == ()
    again = snap(site, request(known=known))
    assert again.protected == tuple(replace(dist, wheel=None) for dist in known.protected)
    (site.site / "mine.py").write_text("x = 2\n")
    assert [dist.name for dist in snap(site, request(known=known)).protected] == ["tqdm"]


ORIGINS: list[tuple[dict[str, object] | None, WheelRef | None]] = [
    (
        archive(
            "https://me:pw@host/a%2Bb/x-1.0%2Bcpu-py3-none-any.whl#y", hashes={"sha256": DIGEST}
        ),
        WheelRef(
            file="x-1.0+cpu-py3-none-any.whl",
            sha256=DIGEST,
            origin="url",
            url="https://host/a%2Bb/x-1.0%2Bcpu-py3-none-any.whl",
        ),
    ),
    (
        archive("file:///a/x-1.0-py3-none-any.whl", hash=f"sha256={DIGEST.upper()}"),
        WheelRef(file="x-1.0-py3-none-any.whl", sha256=DIGEST, origin="file"),
    ),
    (archive("file:///a/x-1.0-py3-none-any.whl"), None),
    (archive("file:///a/x-1.0-py3-none-any.whl", hashes={"md5": DIGEST[:32]}), None),
    (archive("file:///a/x-1.0-py3-none-any.whl", hashes={"sha256": "z" * 64}), None),
    (archive("file:///a/x-1.0-py3-none-any.whl", hashes=["sha256"]), None),
    (archive("file:///a/x-1.0.tar.gz", hashes={"sha256": DIGEST}), None),
    (archive("file:///a/.whl", hashes={"sha256": DIGEST}), None),
    (archive("file:///a/x-1%5C2-py3-none-any.whl", hashes={"sha256": DIGEST}), None),
    ({"url": "https://host/x.git", "vcs_info": {"vcs": "git"}}, None),
    ({"url": 3, "archive_info": 4}, None),
    ({}, None),
    (None, None),
]


@pytest.mark.parametrize(("document", "expected"), ORIGINS)
def test_original_wheel(document: dict[str, object] | None, expected: WheelRef | None) -> None:
    assert original_wheel(document) == expected


def test_whatever_direct_url_says_the_manifest_can_be_read(site: Site) -> None:
    for index, (document, _) in enumerate(ORIGINS):
        info = site.add(f"p{index}", "1.0", {f"p{index}.py": ""})
        from_url(info, document or {})
    assert len([d for d in snap(site).distributions if d.wheel]) == 2


def test_broken_ones_are_entries_with_a_reason(site: Site) -> None:
    (site.add("bare", "1.0", {"bare.py": ""}) / "RECORD").unlink()
    site.add("gone", "1.0", {"gone.py": ""})
    (site.site / "gone.py").unlink()
    site.add("twin", "1.0", {"twin.py": ""})
    site.add("twin", "2.0", {"twin.py": ""})
    site.add("odd", "2.1.0_gita38191a_dtk22.04.2", {"odd.py": ""})
    (site.site / "egg-1.0-py3.10.egg-info").write_text("Name: egg\nVersion: 1.0\n")
    link = site.add("linked", "1.0", {"linked.pth": ""})
    from_url(link, {"url": "file:///src", "dir_info": {"editable": True}})
    (site.site / "~umpy").mkdir()
    manifest, findings = take(target_of(site), request())
    reasons = {dist.name: dist.reason for dist in manifest.distributions}
    assert reasons == {
        "bare": "no RECORD: its files are not known",
        "egg": "no .dist-info (an egg): its files are not known",
        "gone": "'lib/gone.py': No such file or directory",
        "linked": "editable install",
        "odd": "",
        "twin": "two .dist-info for one name: twin-1.0.dist-info, twin-2.0.dist-info",
    }
    assert entry(manifest, "linked").editable
    assert all(not d.content and not d.files for d in manifest.distributions if d.reason)
    assert codes(findings).count("dist.broken") == 5  # an editable install is no fault
    assert "dist.leftover" in codes(findings)
    assert "dist.leftover" in codes(manifest.health)


def test_a_broken_vendor_build_is_an_error(site: Site) -> None:
    (site.add("torch", LABEL) / "RECORD").unlink()
    _, [finding] = take(target_of(site), request())
    assert (finding.code, finding.level) == ("dist.broken", "error")


def test_nothing_personal_is_in_a_manifest(site: Site, tmp_path: Path) -> None:
    """Meant to be shared: no credentials, no path that says whose machine this was."""
    info = site.add("torch", LABEL, {"torch.py": ""}, extra_rows="/home/somebody/secret/x.py,,\n")
    (info / "METADATA").write_text(
        f"Name: torch\nVersion: {LABEL}\nRequires-Dist: dep @ https://me:pw@host/d.whl\n"
    )
    from_url(info, archive("https://me:pw@host/torch-1.0-py3-none-any.whl",
                           hashes={"sha256": DIGEST}))  # fmt: skip
    (site.site / "~orch").mkdir()
    user = tmp_path / "home/somebody/.local/site-packages"
    (user / "torch-9.dist-info").mkdir(parents=True)
    manifest, findings = take(target_of(site, str(user), str(site.site)), request())
    text = dump(manifest)
    assert "somebody" not in text
    assert "pw" not in text
    assert str(tmp_path) not in text
    shadow = next(finding for finding in findings if finding.code == "path.shadowed")
    assert str(user) in shadow.what  # the person is told where


def test_shadowed_copies(site: Site, tmp_path: Path) -> None:
    site.add("torch", LABEL)
    before, after = tmp_path / "before", tmp_path / "after"
    for folder in (before, after):
        (folder / "torch-1.0.dist-info").mkdir(parents=True)
    path = [str(before), str(before), "/nothing/there", str(site.site), str(after)]
    manifest, findings = take(target_of(site, *path), request())
    shadows = [finding for finding in manifest.health if finding.code == "path.shadowed"]
    assert [(one.subject, one.level) for one in shadows] == [
        ("torch", "warning"),
        ("torch", "info"),
    ]
    assert "comes first" in shadows[0].what
    assert codes(findings) == ["path.shadowed", "path.shadowed"]


def test_health_of_what_is_installed(site: Site) -> None:
    info = site.add("torch", LABEL, {"shared.py": "", "torch.py": ""})
    (info / "METADATA").write_text(
        f"Name: torch\nVersion: {LABEL}\n"
        "Requires-Dist: numpy>=3\nRequires-Dist: gone\nRequires-Dist: pytz (>dev)\n"
        "Requires-Dist: odd; python_version ~= '3'\n"
    )
    site.add("numpy", "2.0", {"shared.py": ""})
    found = [(one.code, one.subject) for one in snap(site).health]
    assert found == [
        ("file.two-owners", "numpy"),
        ("requires.version", "torch"),
        ("requires.missing", "torch"),
        ("requires.invalid", "torch"),
        ("requires.missing", "torch"),
    ]


def test_site_packages_that_is_not_there(site: Site) -> None:
    """No manifest of nothing: a lock without distributions would protect nothing."""
    site.site.rmdir()
    with pytest.raises(UnusableInput, match="cannot be read: No such file or directory"):
        take(target_of(site), request())


def test_empty_target(site: Site) -> None:
    manifest, findings = take(target_of(site), request())
    assert (manifest.distributions, findings) == ((), [])
    assert manifest.name == "dtk-cp310"


def test_trusted_record_is_told_apart_from_the_files(site: Site) -> None:
    site.add("torch", LABEL, {"torch.py": "x = 1\n"})
    whole, trusted = snap(site), snap(site, request(trust_record=True))
    assert whole == trusted
    (site.site / "torch.py").write_text("x = 2\n")
    assert snap(site, request(trust_record=True)) == whole
    assert snap(site) != whole


def test_findings_are_values(site: Site) -> None:
    site.add("torch", "2.11.0")
    _, [finding] = take(target_of(site), request())
    assert isinstance(finding, Finding) and finding.hint
