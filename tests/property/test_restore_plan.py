"""The plan of a restore: manifest minus target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from envlock.model.dist import Distribution
from envlock.model.manifest import Manifest
from envlock.restore.plan import Plan, Present, make_plan, needed_by
from tests.support.fake_manifest import locked

NAMES = ["torch", "triton", "numpy", "tqdm"]
VERSIONS = ["1.0", "1.0.0", "2.0+das.opt1", "odd_version"]
DIGESTS = ["", "sha256:" + "a" * 64, "sha256:" + "b" * 64]
PLACES = st.frozensets(st.sampled_from(["bin/x", "lib/x"])).map(sorted).map(tuple)

names = st.sampled_from(NAMES)
distributions = st.builds(
    Distribution,
    name=names,
    version=st.sampled_from(VERSIONS),
    protected=st.booleans(),
    content=st.sampled_from(DIGESTS),
    executable=PLACES,
    reason=st.just("no RECORD"),
)
presents = st.builds(
    Present,
    name=names,
    version=st.sampled_from(VERSIONS),
    content=st.sampled_from(DIGESTS),
    executable=PLACES,
    copies=st.integers(1, 2),
    reason=st.just("no RECORD"),
)
manifests = st.lists(distributions, unique_by=lambda dist: dist.name).map(lambda d: locked(*d))
targets = st.lists(presents, unique_by=lambda one: one.name)
wishes = st.frozensets(st.sampled_from([*NAMES, "protected"]))


def looked_at(manifest: Manifest, only: frozenset[str]) -> set[str]:
    return {
        dist.name
        for dist in manifest.distributions
        if not only or dist.name in only or ("protected" in only and dist.protected)
    }


@given(manifests, targets, wishes, st.booleans())
def test_everything_is_in_one_place(
    manifest: Manifest, target: Sequence[Present], only: frozenset[str], exact: bool
) -> None:
    """Each distribution that is looked at is kept, changed, or told to be impossible."""
    plan = make_plan(manifest, target, only=only, exact=exact)
    wanted = [step.name for step in plan.steps if step.wanted]
    told = [finding.subject for finding in plan.findings]
    kept = [dist.name for dist in plan.kept]
    assert sorted([*wanted, *told, *kept]) == sorted(looked_at(manifest, only))
    removed = [step.name for step in plan.steps if step.wanted is None]
    extra = {one.name for one in target} - {dist.name for dist in manifest.distributions}
    assert sorted([*removed, *plan.extra]) == sorted(extra)
    assert not removed or (exact and not only)
    assert [step.name for step in plan.steps] == sorted(step.name for step in plan.steps)


def done(plan: Plan, target: Sequence[Present]) -> list[Present]:
    """The target once a plan was carried out."""
    steps = {step.name: step.wanted for step in plan.steps}
    stays = [one for one in target if one.name not in steps]
    return stays + [
        Present(name=d.name, version=d.version, content=d.content, executable=d.executable)
        for d in steps.values()
        if d is not None
    ]


@given(manifests, targets, wishes, st.booleans())
def test_a_second_restore_has_nothing_to_do(
    manifest: Manifest, target: Sequence[Present], only: frozenset[str], exact: bool
) -> None:
    plan = make_plan(manifest, target, only=only, exact=exact)
    again = make_plan(manifest, done(plan, target), only=only, exact=exact)
    assert not again.work
    assert again.findings == plan.findings


@given(manifests, targets)
def test_own_is_never_removed(manifest: Manifest, target: Sequence[Present]) -> None:
    plan = make_plan(manifest, target, exact=True, own=NAMES)
    assert all(step.wanted for step in plan.steps)


@given(manifests)
def test_what_is_there_is_kept(manifest: Manifest) -> None:
    sound = replace(manifest, distributions=tuple(d for d in manifest.distributions if d.content))
    target = [
        Present(name=d.name, version=d.version, content=d.content, executable=d.executable)
        for d in sound.distributions
    ]
    assert make_plan(sound, target, exact=True) == Plan(kept=sound.distributions)


def test_what_envlock_runs_with() -> None:
    """Where envlock lives in the target, ``--exact`` must not take its own feet away."""
    requires = {
        "envlock": ["typer>=0.26", "Ruamel.YAML", "gone", "win; sys_platform == 'win32'", "(bad)"],
        "typer": ["rich", "envlock"],
        "rich": [],
        "ruamel-yaml": [],
        "win": [],
        "torch": ["rich"],
    }
    found = needed_by("envlock", requires, {"sys_platform": "linux"})
    assert found == {"envlock", "typer", "rich", "ruamel-yaml"}
    assert needed_by("envlock", {"torch": []}, {}) == set()
