"""dev.nodes: the device's nodes are there and may be opened, asked before anything is imported.

A runtime that finds no node, or may not open it, can hang in an import or say "no device" without a
word about why.
"""

import errno
import glob
import os

import harness

_FLAGS = os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)


def opened(path):
    """Opens a node and closes it again; empty, or why not."""
    try:
        os.close(os.open(path, _FLAGS))
    except OSError as error:
        return "{}: {}".format(
            errno.errorcode.get(error.errno, error.errno), explained(path, error)
        )
    return ""


def explained(path, error):
    """What an error means for a device node."""
    if error.errno == errno.EACCES:
        return "no permission; it belongs to group {}, this process is in {}".format(
            group_of(path), ", ".join(own_groups()) or "none that has a name"
        )
    if error.errno == errno.EPERM:
        return "the container may not use it"
    return error.strerror or "cannot be opened"


def group_of(path):
    try:
        return named(os.stat(path).st_gid)
    except OSError:
        return "?"


def own_groups():
    return sorted(named(number) for number in set(os.getgroups()) | {os.getegid()})


def named(number):
    try:
        import grp

        return grp.getgrgid(number).gr_name
    except (ImportError, KeyError):
        return str(number)


def found(pattern):
    """Nodes of a pattern; ``a|b`` is either."""
    return sorted(path for one in pattern.split("|") for path in glob.glob(one))


def usable(pattern, expected, optional):
    """At least one node may be opened: a container is given some of the machine's devices."""
    nodes = found(pattern)
    metrics = {"nodes": nodes}
    if not nodes:
        text = "ENOENT: there is no {}".format(pattern)
        if optional:
            return {"warning": text}
        if expected:
            raise harness.Failure(text)
        raise harness.Skip("no device: " + text)
    refused = {path: why for path, why in ((path, opened(path)) for path in nodes) if why}
    if len(refused) == len(nodes):
        raise harness.Failure("; ".join("{}: {}".format(*pair) for pair in sorted(refused.items())))
    if refused:
        metrics["refused"] = refused
    return metrics


def check(context):
    if context.on_cpu:
        raise harness.Skip("no device is asked for")
    needed = context.given.get("nodes") or ()
    if not needed:
        raise harness.Skip("the profile names no device nodes")
    # a part of the nodes is worse than none: somebody gave the container half of what it needs
    expected = context.expected or any(found(one) for one in needed)
    for one in needed:
        yield context.case(one, usable, one, expected, False)
    if not expected:
        return
    for one in context.given.get("optional_nodes") or ():
        yield context.case(one, usable, one, expected, True)
