"""env.dtk: the vendor's environment script gives what the stack needs. Warnings only.

The checks run with the script's variables, whether the shell has them or not.
"""

import glob
import os

import harness

#: Folders of a stack whose libraries are asked for by name.
FOLDERS = ("hip/lib", "lib", "lib64", "dcc/lib", "llvm/lib")
#: Needed by torch besides the runtime's own libraries.
MORE = ("libomp.so",)


def search_path(given):
    said = (given.get("variables") or {}).get("LD_LIBRARY_PATH", "")
    return [os.path.realpath(part) for part in said.split(os.pathsep) if part]


def reachable(given, root):
    """Each library that the stack has is in a folder of the search path."""
    folders, missed = search_path(given), {}
    for name in (*(given.get("libraries") or ()), *MORE):
        homes = [one for one in FOLDERS if glob.glob(os.path.join(root, one, name + "*"))]
        inside = [os.path.realpath(os.path.join(root, one)) for one in homes]
        if homes and not set(inside) & set(folders):
            missed[name] = homes[0]
    if missed:
        text = "LD_LIBRARY_PATH leads to none of {}".format(
            ", ".join("{}/{}".format(missed[name], name) for name in sorted(missed))
        )
        return {"warning": text, "missed": missed}
    return {"folders": len(folders)}


def linked(given, root):
    """Variables name the stack by its link: compilers look at the folder's own name."""
    said = given.get("variables") or {}
    odd = []
    for name in ("ROCM_PATH", "ROCM_HOME", "DTKROOT", "DTK_HOME"):
        value = (said.get(name) or "").rstrip("/")
        same = value and os.path.realpath(value) == os.path.realpath(root)
        if value and same and os.path.islink(root) and not os.path.islink(value):
            odd.append(
                "{}='{}' names the folder itself, not the link '{}'".format(name, value, root)
            )
        elif value and not os.path.isdir(value):
            odd.append("{}='{}' is not there".format(name, value))
        elif value and not same:
            odd.append("{}='{}' is another stack than '{}'".format(name, value, root))
    return {"warning": "; ".join(odd)} if odd else {"root": root}


def gone(given):
    """Folders of the search path that are not there."""
    lost = [path for path in search_path(given) if not os.path.isdir(path)]
    return {"folders": len(search_path(given)), "lost": lost}


def check(context):
    given = context.given
    root = given.get("root", "")
    if not given.get("env_script"):
        raise harness.Skip("the profile has no environment script")
    if not root:
        raise harness.Skip("the stack is not on this machine")
    yield context.case("libraries", reachable, given, root)
    yield context.case("root", linked, given, root)
    yield context.case("search path", gone, given)
