"""Describes the Python that runs it. Standard library only, Python 3.8 and newer.

usage: environment.py ANSWER

Writes one JSON document to the file ANSWER; nothing is read from standard output, where a target's
``sitecustomize`` may print. Imports nothing of envlock and is imported by nobody.
"""

import sys

HERE = sys.path.pop(0) if sys.path and sys.path[0].endswith("probes") else ""

import json  # noqa: E402  # the folder of this script must not shadow the target's modules
import os  # noqa: E402
import platform  # noqa: E402
import site  # noqa: E402
import sysconfig  # noqa: E402


def full_version(info):
    version = "{}.{}.{}".format(info.major, info.minor, info.micro)
    if info.releaselevel != "final":
        version += info.releaselevel[0] + str(info.serial)
    return version


def markers():
    """The PEP 508 environment, as the specification spells each variable."""
    implementation = sys.implementation
    return {
        "implementation_name": implementation.name,
        "implementation_version": full_version(implementation.version),
        "os_name": os.name,
        "platform_machine": platform.machine(),
        "platform_python_implementation": platform.python_implementation(),
        "platform_release": platform.release(),
        "platform_system": platform.system(),
        "platform_version": platform.version(),
        "python_full_version": platform.python_version(),
        "python_version": ".".join(platform.python_version_tuple()[:2]),
        "sys_platform": sys.platform,
    }


def glibc():
    """``[major, minor]``, or None where the C library is another one."""
    try:
        name, version = os.confstr("CS_GNU_LIBC_VERSION").split()
        major, minor = version.split(".")[:2]
    except (AttributeError, OSError, ValueError, TypeError):
        return None
    return [int(major), int(minor)] if name == "glibc" else None


def abi():
    """The ABI tag: ``cp310``, with ``t`` for a free-threaded and ``d`` for a debug build."""
    free_threaded = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    debug = "d" if hasattr(sys, "gettotalrefcount") else ""
    return "cp{}{}{}{}".format(sys.version_info[0], sys.version_info[1], free_threaded, debug)


def platform_tag():
    """``linux_x86_64``; a 32-bit Python on a 64-bit kernel is i686 or armv7l (PEP 425)."""
    tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    if sys.maxsize <= 2**32:
        tag = {"linux_x86_64": "linux_i686", "linux_aarch64": "linux_armv7l"}.get(tag, tag)
    return tag


def in_venv():
    return sys.prefix != getattr(sys, "base_prefix", sys.prefix) or hasattr(sys, "real_prefix")


def paths():
    """Where installers put files; headers follow pip: a venv has no headers folder of its own."""
    found = sysconfig.get_paths()
    if in_venv():
        version = "python{}.{}".format(*sys.version_info[:2])
        headers = os.path.join(sys.prefix, "include", "site", version)
    else:
        headers = found["include"]
    return {
        "prefix": found["data"],
        "purelib": found["purelib"],
        "platlib": found["platlib"],
        "scripts": found["scripts"],
        "headers": headers,
        "data": found["data"],
        "stdlib": found["stdlib"],
    }


def pip_version():
    """Version of the target's own pip, read from its files: importing it costs a second."""
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            if name.lower().startswith("pip-") and name.endswith(".dist-info"):
                return name[len("pip-") : -len(".dist-info")]
    return None


def externally_managed(stdlib):
    marker = os.path.join(stdlib, "EXTERNALLY-MANAGED")
    return marker if not in_venv() and os.path.exists(marker) else None


def describe():
    where = paths()
    return {
        "schema": 1,
        "executable": sys.executable,
        "prefix": sys.prefix,
        "python": full_version(sys.version_info),
        "version": list(sys.version_info[:2]),
        "implementation": sys.implementation.name,
        "markers": markers(),
        "abi": abi(),
        "platform": platform_tag(),
        "glibc": glibc(),
        "paths": where,
        "sys_path": [entry for entry in sys.path if entry],
        "user_site": site.getusersitepackages() if site.ENABLE_USER_SITE else None,
        "venv": in_venv(),
        "pip": pip_version(),
        "externally_managed": externally_managed(where["stdlib"]),
    }


def main():
    answer = sys.argv[1]
    with open(answer + ".part", "w", encoding="utf-8") as file:
        json.dump(describe(), file)
    os.replace(answer + ".part", answer)


if __name__ == "__main__":
    main()
