"""A target for fake checks, and a run over them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from envlock.adapters.interpreter import Named, read_target
from envlock.model.check import Check
from envlock.model.facts import Target
from envlock.model.manifest import Manifest
from envlock.model.profile import Profile
from envlock.verify.plan import Options
from envlock.verify.run import Outcome, Watch, run_suite
from tests.support.fake_checks import write_checks

CPU = Profile(name="cpu", title="CPU", labels=(), names=(), device="cpu")


@pytest.fixture(scope="session")
def own_target() -> Target:
    """The Python that runs the tests."""
    return read_target(Named(sys.executable, "test"), dict(os.environ))


RunFakes = Callable[..., Outcome]


@pytest.fixture
def run_fakes(tmp_path: Path, own_target: Target) -> RunFakes:
    """Runs fake checks, in the order given, with a canary that passes unless told otherwise."""

    def run(
        *checks: Check,
        manifest: Manifest | None = None,
        watch: Watch | None = None,
        env: Mapping[str, str] | None = None,
        profile: Profile = CPU,
        bodies: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Outcome:
        scripts = tmp_path / "checks"
        own = dict(bodies or {})
        names = [Path(c.script).stem for c in checks if c.script]
        write_checks(scripts, *[name for name in names if name not in own], **own)
        if "dev_first" not in own:
            write_checks(scripts, dev_first="yield context.case('one', dict)")
        chosen = Options(level="quick", checks=checks, scripts=scripts, grace=0.5, **options)
        environment = dict(os.environ) if env is None else env
        return run_suite(own_target, manifest, profile, chosen, env=environment, watch=watch)

    return run
