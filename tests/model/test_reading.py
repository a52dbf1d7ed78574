"""Typed getters: the right value, or a message with the path of the wrong one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from envlock.errors import UnusableInput
from envlock.model.reading import Node

Getter = Callable[[Node], Any]


@pytest.mark.parametrize(
    ("value", "get", "expected"),
    [
        ("x", Node.text, "x"),
        ("", Node.text, ""),
        (None, lambda node: node.text("other"), "other"),
        ("", lambda node: node.text("other"), ""),
        ("12", Node.integer, 12),
        (12, Node.integer, 12),
        (0, Node.integer, 0),
        (None, lambda node: node.integer(7), 7),
        ("1.5", Node.number, 1.5),
        (2, Node.number, 2.0),
        ("true", Node.boolean, True),
        ("false", Node.boolean, False),
        (True, Node.boolean, True),
        (None, lambda node: node.boolean(True), True),
        ("a", lambda node: node.choice("a", "b"), "a"),
        ("0" * 64, Node.sha256, "0" * 64),
        ("sha256:" + "0" * 64, Node.content, "sha256:" + "0" * 64),
        (None, Node.content, ""),
        (["a", "b"], Node.texts, ("a", "b")),
        (None, Node.texts, ()),
        ({"a": "b"}, Node.mapping, {"a": "b"}),
        (None, Node.mapping, {}),
        (None, Node.items, []),
    ],
)
def test_value(value: Any, get: Getter, expected: Any) -> None:
    assert get(Node(value)) == expected


@pytest.mark.parametrize(
    ("value", "get", "message"),
    [
        (None, Node.text, "expected text, found nothing"),
        (3, Node.text, "expected text, found 3"),
        (["x"], Node.text, "expected text, found ['x']"),
        ("-1", Node.integer, "expected a whole number, found '-1'"),
        (-1, Node.integer, "expected a whole number, found -1"),
        (True, Node.integer, "expected a whole number, found True"),
        ("1.0", Node.integer, "expected a whole number, found '1.0'"),
        ("²", Node.integer, "expected a whole number, found '²'"),
        ("9" * 5000, Node.integer, f"expected a whole number, found '{'9' * 56}…"),
        (None, Node.integer, "expected a whole number, found nothing"),
        ("x", Node.number, "expected a number, found 'x'"),
        (None, Node.number, "expected a number, found nothing"),
        ("yes", Node.boolean, "expected true or false, found 'yes'"),
        (1, Node.boolean, "expected true or false, found 1"),
        ([], Node.boolean, "expected true or false, found []"),
        ("c", lambda node: node.choice("a", "b"), "expected a | b, found 'c'"),
        ([], lambda node: node.choice("a", "b"), "expected a | b, found []"),
        ("0" * 63, Node.sha256, f"expected 64 hexadecimal digits, found '{'0' * 56}…"),
        ("A" * 64, Node.sha256, f"expected 64 hexadecimal digits, found '{'A' * 56}…"),
        ("0" * 64 + "\n", Node.sha256, f"expected 64 hexadecimal digits, found '{'0' * 56}…"),
        ("x", Node.content, "expected sha256:…, found 'x'"),
        ([], Node.content, "expected sha256:…, found []"),
        ("x", Node.items, "expected a list, found 'x'"),
        ("x", Node.mapping, "expected a mapping, found 'x'"),
        ("x", lambda node: node.get("key"), "expected a mapping, found 'x'"),
    ],
)
def test_wrong_value(value: Any, get: Getter, message: str) -> None:
    with pytest.raises(UnusableInput) as caught:
        get(Node(value, "a.b", "lock.yaml", "do this"))
    assert caught.value.message == f"lock.yaml: a.b: {message}"
    assert caught.value.hint == "do this"


def test_paths() -> None:
    document = Node({"dists": [{"name": "a"}, {"wheel": {"size": "x"}}]}, file="lock.yaml")
    size = document.get("dists").items()[1].get("wheel").get("size")
    assert size.path == "dists[1].wheel.size"
    assert size.present
    assert not document.get("other").present


def test_message_without_file_or_path() -> None:
    with pytest.raises(UnusableInput, match=r"^document: expected text, found nothing$"):
        Node(None).text()


def test_wrong_value_in_a_mapping_is_named() -> None:
    with pytest.raises(UnusableInput, match=r"^markers\.os_name: expected text, found \[\]$"):
        Node({"os_name": []}, "markers").mapping()
