"""A Slurm for the tests that need one, and a stack for its nodes; made once for each worker."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from envlock.wheelhouse.folder import write_papers
from tests.fleet.nodes import Fleet, provide
from tests.support import slurm
from tests.support.pythons import CACHE, clean_env
from tests.support.worlds import vendor_world


@pytest.fixture(scope="session")
def slurm_cluster() -> Iterator[slurm.Cluster]:
    """A real slurmctld with four nodes on this machine."""
    missing = slurm.why_not()
    if missing:
        pytest.skip(missing)
    cluster = slurm.new_cluster()
    yield cluster
    cluster.stop()
    shutil.rmtree(cluster.root, ignore_errors=True)


@pytest.fixture
def cluster(slurm_cluster: slurm.Cluster) -> slurm.Cluster:
    """The same, with all nodes idle."""
    slurm_cluster.wait_idle()
    return slurm_cluster


@pytest.fixture
def private(cluster: slurm.Cluster) -> slurm.Cluster:
    """The same, where each node has a disk of its own."""
    if not cluster.private:
        pytest.skip("nodes cannot have disks of their own here (mount namespaces)")
    return cluster


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheelhouse of a vendor's stack."""
    world = vendor_world(tmp_path_factory.mktemp("stack"))
    write_papers(str(world.wheels), world.manifest)
    return world.wheels


@pytest.fixture(scope="session")
def kit(stack: Path) -> Path:
    """The same as a kit, with the envlock that is tested."""
    path = stack.parent / "stack.kit"
    command = [sys.executable, "-m", "envlock", "wheelhouse", "pack", str(stack), str(path)]
    env = clean_env(XDG_CACHE_HOME=str(CACHE))  # envlock's own wheels are fetched once
    env.pop("PIP_CONFIG_FILE")
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return path


@pytest.fixture
def fleet(cluster: slurm.Cluster, stack: Path, tmp_path: Path) -> Fleet:
    """Healthy targets on all nodes."""
    provide(cluster, stack)
    return Fleet(cluster=cluster, folder=tmp_path, wheels=stack)
