"""Names of many nodes in the form that Slurm, pdsh and Flux write: ``n[001-128,200],login1``.

The grammar is that of Flux RFC 29: comma separated expressions, brackets with numbers and ranges,
leading zeros kept; text may follow a bracket, and an expression may have several of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, product

from envlock.errors import UsageProblem

#: No cluster has more nodes; ``n[1-9999999999]`` must not fill the memory.
MOST_NODES = 200_000
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\Z")
_PIECES = re.compile(r"\[([^\[\]]*)\]|([^\[\]]+)")
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?\Z")
_NUMBERED = re.compile(r"(.*?)([0-9]+)\Z", re.S)
_HINT = "write it as 'scontrol show hostnames' reads it: n[001-128,200],login1"


def is_host_name(name: str) -> bool:
    """Whether a host can be called so, and a scheduler be given the name."""
    return len(name) <= 253 and _NAME.match(name) is not None


def expand(text: str) -> tuple[str, ...]:
    """The names of a list, in its order, each once; commas and white space part the expressions.

    Raises:
        UsageProblem: it is no such list, or names more than 200,000 nodes.
    """
    found: dict[str, None] = {}
    for part in _expressions(text):
        for name in _names(part):
            found[name] = None
            if len(found) > MOST_NODES:
                raise UsageProblem(f"list of nodes: more than {MOST_NODES} of them", _HINT)
    return tuple(found)


def _expressions(text: str) -> Iterator[str]:
    """The parts between commas that are in no bracket."""
    depth, part = 0, ""
    for letter in f"{text},":
        depth += (letter == "[") - (letter == "]")
        if depth not in (0, 1):
            break
        if depth == 0 and (letter == "," or letter.isspace()):
            if part:
                yield part
            part = ""
        else:
            part += letter
    if depth != 0:
        raise UsageProblem(f"list of nodes: a bracket without its other half in '{text}'", _HINT)


def _names(expression: str) -> Iterator[str]:
    pieces = [
        _numbers(inside, expression) if plain is None else [plain]
        for inside, plain in ((match[1], match[2]) for match in _PIECES.finditer(expression))
    ]
    for parts in product(*pieces):
        name = "".join(parts)
        if not is_host_name(name):
            raise UsageProblem(f"list of nodes: '{name}' cannot be the name of a host", _HINT)
        yield name


def _numbers(inside: str, expression: str) -> Sequence[str]:
    found: list[str] = []
    for part in inside.split(","):
        match = _RANGE.match(part.strip())
        if match is None:
            raise UsageProblem(f"list of nodes: '[{inside}]' in '{expression}'", _HINT)
        first, last = match[1], match[2] or match[1]
        if int(last) < int(first) or int(last) - int(first) >= MOST_NODES:
            raise UsageProblem(f"list of nodes: the range '{part}' in '{expression}'", _HINT)
        width = len(first) if first.startswith("0") else 0
        found += [f"{number:0{width}}" for number in range(int(first), int(last) + 1)]
    return found


def fold(names: Iterable[str]) -> str:
    """The shortest usual form of the names, sorted; ``expand(fold(names))`` are the same names."""
    split = [_split(name) for name in dict.fromkeys(names)]
    padded = {(head, len(digits)) for head, digits in split if digits[:1] == "0" < digits}
    keyed = sorted(
        (head, (len(digits) if (head, len(digits)) in padded else 0) if digits else -1, digits)
        for head, digits in split
    )
    parts: list[str] = []
    for (head, _), group in groupby(keyed, lambda one: one[:2]):
        numbers = [digits for _, _, digits in group]
        parts += [head] if numbers == [""] else [_bracket(head, numbers)]
    return ",".join(parts)


def _split(name: str) -> tuple[str, str]:
    """What stands before the last number, and its digits; a name without one has none."""
    match = _NUMBERED.match(name)
    if match is None or len(match[2]) > 18 or not match[1]:
        return name, ""
    return match[1], match[2]


def _bracket(head: str, numbers: Sequence[str]) -> str:
    if len(numbers) == 1:
        return f"{head}{numbers[0]}"
    return f"{head}[{','.join(_ranges(numbers))}]"


def _ranges(numbers: Sequence[str]) -> Iterator[str]:
    """``001-128`` for numbers that follow each other."""
    ordered = sorted(numbers, key=int)
    first = last = ordered[0]
    for number in [*ordered[1:], ""]:
        if number and int(number) == int(last) + 1:
            last = number
            continue
        yield first if first == last else f"{first}-{last}"
        first = last = number
