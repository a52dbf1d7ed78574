"""The published schema of a profile: the bundled ones keep it, and it says what the code reads."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from envlock.adapters.profiles import BUNDLED
from envlock.errors import UnusableInput
from envlock.model.manifest import dump_yaml, parse_yaml
from envlock.model.profile import Peaks, Profile, read_profile
from envlock.model.runtime import Runtime

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs/schemas/profile-1.json").read_text(encoding="utf-8"))
VALID = jsonschema.Draft202012Validator(
    SCHEMA, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
)


def _document(name: str) -> Any:
    text = (resources.files("envlock") / "profiles" / f"{name}.yaml").read_text("utf-8")
    return yaml.safe_load(text)


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled(name: str) -> None:
    VALID.validate(_document(name))


def test_it_knows_every_key() -> None:
    parts = SCHEMA["properties"]
    for one, described in (
        (Profile, SCHEMA),
        (Peaks, parts["peaks"]["items"]),
        (Runtime, parts["runtime"]),
    ):
        assert set(described["properties"]) == {item.name for item in fields(one)}


#: A change of the DTK profile, and what is said of it.
WRONG = [
    (("device",), "tpu", "device: expected cuda | cpu, found 'tpu'"),
    (("lables",), [], "lables: no such key"),
    (("roots",), ["opt/dtk"], "roots[0]: expected an absolute path, found 'opt/dtk'"),
    (("tool_folders", 1), "bin", "tool_folders[1]: expected an absolute path, found 'bin'"),
    (("labels", 1), "(", "labels[1]: expected a regular expression"),
    (("module_names",), "[", "module_names: expected a regular expression"),
    (("names",), {"torch": ""}, "names: expected a list, found {'torch': ''}"),
    (("runtime", "kind"), "opencl", "runtime.kind: expected hip | cuda, found 'opencl'"),
    (("runtime", "driver"), {}, "runtime.driver: no such key"),
    (("runtime", "vendors", 0), "0x1d94", "runtime.vendors[0]: expected four hexadecimal digits"),
    (("runtime", "triton"), ["hip"], "runtime.triton: expected backend, architecture and lanes"),
    (("runtime", "drivers"), ["6.3"], "runtime.drivers: expected a mapping, found ['6.3']"),
    (("peaks", 0, "clock"), 1, "peaks[0].clock: no such key"),
    (("peaks", 0, "compute_units"), "many", "peaks[0].compute_units: expected a whole number"),
    (("peaks", 0, "values", "fp16"), 0, "peaks[0].values.fp16: expected a number above zero"),
]


@pytest.mark.parametrize(("path", "value", "said"), WRONG, ids=[row[2] for row in WRONG])
def test_schema_and_reader_agree_on_what_is_wrong(
    path: tuple[str | int, ...], value: Any, said: str
) -> None:
    document = copy.deepcopy(_document("dtk"))
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    assert not VALID.is_valid(document)
    with pytest.raises(UnusableInput) as caught:
        read_profile(parse_yaml(dump_yaml(document), "mine.yaml"))
    assert caught.value.message.startswith(f"mine.yaml: {said}")


def test_names_as_people_write_them() -> None:
    document = {"name": "x", "title": "X", "device": "cpu", "names": ["Flash_Attn", "torch"]}
    VALID.validate(document)
    assert read_profile(parse_yaml(dump_yaml(document))).names == ("flash-attn", "torch")


def test_the_example_of_the_documents() -> None:
    text = (ROOT / "docs/profiles.md").read_text(encoding="utf-8")
    [example] = re.findall(r"^```yaml\n(.*?)^```", text, re.M | re.S)
    VALID.validate(yaml.safe_load(example))
    assert read_profile(parse_yaml(example)).knows_label("2.10.0+acme12.g123456")
    listed = re.findall(r"^\| `(\w+)` \|", text, re.M)
    assert listed == list(BUNDLED)
