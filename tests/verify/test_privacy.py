"""A report does not say whose machine it was made on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import envlock
from envlock.model.facts import Target
from envlock.verify import privacy
from envlock.verify.privacy import Hidden, hidden
from tests.support.fake_checks import fake_check
from tests.verify.conftest import RunFakes

HIDDEN = Hidden(
    paths=(("/data/people/ann/venv", "PREFIX"), ("/data/people/ann", "~")),
    host=("node7.cluster.example", "node7"),
    user=("ann",),
)

TEXTS = [
    ("/data/people/ann/venv/lib/x.so: undefined symbol", "PREFIX/lib/x.so: undefined symbol"),
    ("'/data/people/ann/venv'", "'PREFIX'"),
    ("/data/people/ann/.cache", "~/.cache"),
    ("/data/people/annabel/x", "/data/people/annabel/x"),
    ('File "/home/bob/src/torch/x.py", line 3', 'File "~/src/torch/x.py", line 3'),
    ("/Users/bob/x and /home/bob", "~/x and ~"),
    ("built in {root}/src, {root}ed/x".format(root="/root"), "built in ~/src, /rooted/x"),
    ("/opt/dtk/lib and /mnt/home/x/lib", "/opt/dtk/lib and /mnt/home/x/lib"),
    ("on node7.cluster.example (node7), not node77", "on HOST (HOST), not node77"),
    ("/scratch/ann/tmp, USER=ann, ann@10.0.0.1", "/scratch/USER/tmp, USER=USER, USER@10.0.0.1"),
    ("ann is a word, /scratch/anna too", "ann is a word, /scratch/anna too"),
    ("odd \ud800 name", "odd ? name"),
    ("https://me:secret@example.org/x", "https://****@example.org/x"),
]


@pytest.mark.parametrize(("text", "shown"), TEXTS)
def test_texts(text: str, shown: str) -> None:
    assert HIDDEN.text(text) == shown


def test_values_and_keys_at_any_depth() -> None:
    value = {"/home/bob/x": [{"a": "/home/bob/y"}, 1, None, True, 2.5], "b": ("node7",)}
    assert HIDDEN.value(value) == {"~/x": [{"a": "~/y"}, 1, None, True, 2.5], "b": ["HOST"]}


def test_names_that_say_nothing_are_left(
    own_target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("envlock.verify.privacy.platform.node", lambda: "localhost")
    monkeypatch.setattr(privacy, "_user", lambda: "root")
    found = hidden(own_target, {"HOME": "/", "USER": "", "LOGNAME": "root"})
    assert (found.host, found.user) == ((), ())
    assert "/" not in [path for path, _ in found.paths]


def test_the_longest_path_first(own_target: Target) -> None:
    layout = replace(own_target.layout, prefix="/data/ann/venv/")
    target = replace(own_target, layout=layout, home="/data/ann/venv")
    found = hidden(target, {"HOME": "/data/ann"})
    assert found.paths[-2:] == (("/data/ann/venv", "PREFIX"), ("/data/ann", "~"))
    own = Path(envlock.__file__).parent
    assert found.text(f'File "{own}/probes/harness.py"') == 'File "ENVLOCK/probes/harness.py"'


def test_nothing_of_it_is_in_a_report(
    run_fakes: RunFakes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a check says, in every place where it can say something."""
    monkeypatch.setattr("envlock.verify.privacy.platform.node", lambda: "node7.cluster.example")
    secret = f"{tmp_path}/home/x on node7 for /scratch/ann/y"
    body = f"""print({secret!r}); context.facts[{secret!r}] = [{secret!r}]
    yield context.case({secret!r}, lambda: {{'a': {secret!r}}})
    raise harness.Failure({secret!r}, b={secret!r})"""
    env = {"PATH": "/usr/bin:/bin", "HOME": f"{tmp_path}/home", "USER": "ann"}
    outcome = run_fakes(fake_check("tells"), bodies={"tells": body}, env=env)
    text = json.dumps(outcome.report)
    assert "~/x on HOST for /scratch/USER/y" in text
    for word in ("node7", "/ann/", f"{tmp_path}/home"):
        assert word not in text
