"""The published JSON Schema of the manifest says what envlock writes and reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given

from envlock.errors import UnusableInput
from envlock.model.dist import ORIGINS
from envlock.model.manifest import SCHEMA as VERSION
from envlock.model.manifest import Manifest, dump, load
from tests.property.strategies import manifests
from tests.support.pythons import ROOT

PUBLISHED = ROOT / "docs" / "schemas" / f"manifest-{VERSION.partition('.')[0]}.json"
SCHEMA = json.loads(PUBLISHED.read_text(encoding="utf-8"))
GOLDEN = Path(__file__).parent / "golden_manifest.yaml"
_PLACES = ("manifests", "tests", "wheelhouse", "examples", "docs")


def in_the_repository() -> Iterator[Path]:
    """Every file that is a manifest by its first keys."""
    for folder in _PLACES:
        for path in sorted((ROOT / folder).rglob("*.yaml")):
            text = path.read_text(encoding="utf-8")
            if "\nschema: " in f"\n{text}" and "\ndistributions:" in text:
                yield path


FILES = list(in_the_repository())


def strict(part: Any) -> Any:
    """The schema with no room for keys that it does not name."""
    if isinstance(part, list):
        return [strict(one) for one in part]
    if not isinstance(part, dict):
        return part
    found = {key: strict(value) for key, value in part.items()}
    return {"additionalProperties": False, **found} if "properties" in found else found


VALID = jsonschema.Draft202012Validator(SCHEMA)
STRICT = jsonschema.Draft202012Validator(strict(SCHEMA))


def faults(document: Any, *, closed: bool = False) -> list[str]:
    found = (STRICT if closed else VALID).iter_errors(document)
    return [f"{one.json_path}: {one.message}" for one in found]


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    origins = SCHEMA["$defs"]["wheel"]["properties"]["origin"]["enum"]
    assert tuple(origins) == ORIGINS


@pytest.mark.parametrize("path", FILES, ids=[str(p.relative_to(ROOT)) for p in FILES])
def test_every_manifest_of_the_repository(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    load(text, str(path))
    assert faults(yaml.safe_load(text), closed=True) == []


def test_manifests_are_found() -> None:
    assert GOLDEN in FILES


@given(manifests)
def test_what_is_written_keeps_to_it(manifest: Manifest) -> None:
    """Any YAML reader gets the kinds of value that the schema says, and no key is without words."""
    assert faults(yaml.safe_load(dump(manifest)), closed=True) == []


def test_what_a_newer_minor_adds_is_no_fault() -> None:
    document = yaml.safe_load(GOLDEN.read_text(encoding="utf-8"))
    document["schema"] = "1.99"
    document["later"] = document["machine"]["later"] = document["distributions"][0]["later"] = 1
    assert faults(document) == []
    assert len(faults(document, closed=True)) == 3


BAD: list[tuple[tuple[str | int, ...], Any]] = [
    (("schema",), "2.0"),
    (("schema",), "10.0"),
    (("schema",), None),
    (("distributions",), None),
    (("distributions",), {}),
    (("target", "tags"), []),
    (("target", "python"), None),
    (("target", "markers"), ["x"]),
    (("machine", "limits"), {"cpus": -1}),
    (("machine", "devices", 0, "memory_mib"), "many"),
    (("health", 0, "level"), "fatal"),
    (("health", 0, "code"), None),
    (("distributions", 0, "name"), "A_b"),
    (("distributions", 0, "name"), "../x"),
    (("distributions", 0, "version"), None),
    (("distributions", 0, "version"), "1/2"),
    (("distributions", 2, "protected"), "maybe"),
    (("distributions", 2, "content"), "sha256:1"),
    (("distributions", 2, "bytes"), -1),
    (("distributions", 2, "wheel", "sha256"), "0"),
    (("distributions", 2, "wheel", "origin"), "moon"),
    (("distributions", 2, "wheel", "file"), "../torch.whl"),
    (("distributions", 2, "wheel", "file"), "torch.zip"),
    (("distributions", 2, "wheel", "url"), "file:///etc/passwd"),
]


@pytest.mark.parametrize(("path", "value"), BAD, ids=[f"{p} {v}" for p, v in BAD])
def test_what_envlock_refuses_the_schema_refuses(path: tuple[str | int, ...], value: Any) -> None:
    """None: the key is not there."""
    document = yaml.safe_load(GOLDEN.read_text(encoding="utf-8"))
    place = document
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    assert faults(document)
    with pytest.raises(UnusableInput):
        load(yaml.safe_dump(document))
