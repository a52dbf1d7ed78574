"""A real Slurm on this machine: munged, slurmctld, and a slurmd for each of a few node names.

Everything is in one temporary folder, talks over the loopback and is ended by process id. Where the
kernel allows it, every node has a mount namespace of its own: ``local`` inside the folder is then
another folder on each node, as the disks of real nodes are.
"""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.pythons import clean_env

PROGRAMS = ("slurmctld", "slurmd", "munged", "srun", "salloc", "sbatch", "sinfo", "sbcast")
SBIN = "/usr/sbin:/usr/local/sbin"
NAMES = ("n1", "n2", "n3", "n4")
_SECONDS = 40.0
_CONF = """\
ClusterName=envlock
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={root}/munge/socket
CredType=cred/munge
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool/%n
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd-%n.pid
SlurmctldLogFile={root}/log/slurmctld
SlurmdLogFile={root}/log/slurmd-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmdTimeout=6
MessageTimeout=6
KillWait=5
SchedulerParameters=sched_interval=1,batch_sched_delay=0
SlurmdParameters=config_overrides
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def why_not() -> str:
    """What is missing for a Slurm of one's own; empty when nothing is."""
    path = f"{os.environ.get('PATH', '')}:{SBIN}"
    missing = [name for name in PROGRAMS if shutil.which(name, path=path) is None]
    return f"not installed: {', '.join(missing)} (Debian: slurm-wlm, munge)" if missing else ""


def free_ports(number: int) -> list[int]:
    """Ports that nobody has at the moment."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [int(one.getsockname()[1]) for one in held]
    for one in held:
        one.close()
    return ports


def can_mount() -> bool:
    """Whether this user may mount in a namespace of its own."""
    if shutil.which("unshare") is None:
        return False
    command = ["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(command, capture_output=True).returncode == 0


@dataclass(slots=True)
class Cluster:
    """A running Slurm.

    Attributes:
        root: its folder.
        private: whether each node has a ``local`` of its own.
    """

    root: Path
    private: bool
    children: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def local(self) -> Path:
        """The folder that is another one on every node, by the same path."""
        return self.root / "local"

    def disk(self, node: str) -> Path:
        """The same folder of a node, from outside."""
        return self.root / "nodes" / node

    def env(self, **more: str) -> dict[str, str]:
        """The environment of a user of this cluster."""
        path = f"{os.environ['PATH']}:{SBIN}"
        return clean_env(SLURM_CONF=str(self.root / "slurm.conf"), PATH=path, **more)

    def ask(self, *words: str) -> str:
        """What one of Slurm's own commands prints."""
        done = subprocess.run(words, env=self.env(), capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    # --- its life ---------------------------------------------------------------------------

    def start(self) -> None:
        """Starts all of it, and waits until every node is idle."""
        ports = free_ports(1 + len(NAMES))
        text = _CONF.format(
            root=self.root, port=ports[0], user=getpass.getuser(),
            host=socket.gethostname().partition(".")[0],
        )  # fmt: skip
        for name, port in zip(NAMES, ports[1:], strict=True):
            host = socket.gethostname().partition(".")[0]
            where = f"NodeHostname={host} NodeAddr=127.0.0.1 Port={port}"
            text += f"NodeName={name} {where} CPUs=2 State=UNKNOWN\n"
        for folder in ("state", "log", "spool", "munge", "local"):
            (self.root / folder).mkdir()
        for name in NAMES:
            self.disk(name).mkdir(parents=True)
        (self.root / "slurm.conf").write_text(text)
        self._munge()
        conf = str(self.root / "slurm.conf")
        self._run("slurmctld", "slurmctld", "-D", "-c", "-f", conf)
        for name in NAMES:
            self.start_node(name)
        self.wait_idle()

    def _munge(self) -> None:
        folder = self.root / "munge"
        folder.chmod(0o700)
        key = folder / "key"
        key.write_bytes(os.urandom(64))
        key.chmod(0o400)
        names = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log",
                 "seed-file": "seed"}  # fmt: skip
        options = [f"--{option}={folder / name}" for option, name in names.items()]
        self._run("munged", "munged", "--foreground", "--force", "--num-threads=2", *options)
        deadline = time.monotonic() + _SECONDS
        while not (folder / "socket").exists():
            assert time.monotonic() < deadline, "munged made no socket"
            time.sleep(0.05)

    def _run(self, key: str, *words: str) -> None:
        with (self.root / f"{key}.out").open("ab") as out:
            self.children[key] = subprocess.Popen(
                words, env=self.env(), stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                start_new_session=True,
            )  # fmt: skip

    def start_node(self, name: str, before: str = "") -> None:
        """Starts a node.

        Args:
            before: shell commands in its own namespace: another disk.
        """
        words = ["slurmd", "-D", "-N", name, "-f", str(self.root / "slurm.conf")]
        if self.private:
            mount = f"mount --bind {self.disk(name)} {self.local}"
            script = f'{mount} && {before or "true"} && exec "$@"'
            words = ["unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh", *words]
        self._run(name, *words)

    def restart_node(self, name: str, before: str = "", wait: bool = True) -> None:
        """The same node with another disk; waits until all nodes are idle."""
        self._end(self.children.pop(name))
        self.start_node(name, before)
        if wait:
            self.wait_idle()

    def wait_idle(self) -> None:
        """Until every node can be given work."""
        deadline = time.monotonic() + _SECONDS
        while True:
            done = subprocess.run(
                ["sinfo", "-N", "-h", "-o", "%T"], env=self.env(), capture_output=True, text=True
            )
            if done.stdout.split() == ["idle"] * len(NAMES):
                return
            assert time.monotonic() < deadline, f"{done.stdout}{done.stderr}{self.said()}"
            time.sleep(0.1)

    def said(self) -> str:
        """The ends of all logs."""
        logs = [*self.root.glob("*.out"), *self.root.glob("log/*")]
        return "".join(f"\n--- {log.name}\n{log.read_text()[-1500:]}" for log in logs)

    def kill_node(self, name: str) -> None:
        """The power of a node is gone: its slurmd, its steps, and what ran in them."""
        child = self.children.pop(name)
        child.kill()
        child.wait()
        tasks = self.processes(name)
        parents = {_parent(pid) for pid in tasks}
        steps = {pid for pid in parents if b"slurmstepd" in _file(pid, "cmdline")}
        for pid in (*steps, *tasks):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def processes(self, name: str = "") -> list[int]:
        """Processes of jobs of this cluster; those of one node where it is named."""
        conf = f"SLURM_CONF={self.root / 'slurm.conf'}".encode()
        node = f"SLURMD_NODENAME={name}".encode()
        found = []
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            env = _file(pid, "environ").split(b"\0")
            if conf in env and (node in env if name else b"SLURM_STEP_ID=" in b"".join(env)):
                found.append(pid)
        return found

    def steps(self) -> list[int]:
        """What stands between a slurmd and its tasks: nobody's child, known by its log file. One
        whose slurmctld is gone tries for ever to tell it of its end."""
        found = []
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            if b"slurmstepd" in _file(pid, "cmdline") and str(self.root) in _open_files(pid):
                found.append(pid)
        return found

    def stop(self) -> None:
        """Ends everything that was started."""
        for pid in (*self.processes(), *self.steps()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.children["slurmctld"].kill()  # it would wait for nodes, and its state goes anyway
        for key in sorted(self.children, key=lambda key: key == "munged"):
            self._end(self.children[key])

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        child.terminate()
        try:
            child.wait(15)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _file(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _open_files(pid: int) -> str:
    found = []
    with suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                found.append(os.readlink(f"/proc/{pid}/fd/{name}"))
    return " ".join(found)


def _parent(pid: int) -> int:
    rest = _file(pid, "stat").rpartition(b")")[2].split()
    return int(rest[1]) if len(rest) > 1 else 0


def new_cluster() -> Cluster:
    """A cluster that is up; its folder has a short name, since sockets must."""
    root = Path(tempfile.mkdtemp(prefix="envlock-slurm-"))
    root.chmod(0o755)
    cluster = Cluster(root=root, private=can_mount())
    try:
        cluster.start()
    except BaseException:
        cluster.stop()
        shutil.rmtree(root, ignore_errors=True)
        raise
    return cluster
