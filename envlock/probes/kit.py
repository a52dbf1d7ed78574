"""``start.py`` of a kit: ``python3 KIT [DIR]``. Standard library only, Python 3.8 and newer.

Makes an environment for the envlock inside the kit, from the wheels beside this script: no pip, no
ensurepip, no venv module, no network, no root, nothing executed from a temporary folder. Then that
envlock unpacks the wheelhouse. Imports nothing of envlock and is imported by nobody.
"""

import base64
import csv
import fcntl
import hashlib
import io
import json
import os
import platform
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import zipfile

USAGE = """usage: python3 {kit} [DIR]

Unpacks this kit into DIR (default: {default}):
  DIR/envlock   envlock, in an environment of its own
  DIR/wheels    the wheelhouse
Nothing else is written, and nothing is installed anywhere else.
"""
NEW, OLD = ".envlock.part", ".envlock.old"
AGAIN = "copy the kit again, or join its parts again with cat"
LAUNCHER = """#!/bin/sh
'''exec' "$(dirname "$(readlink -f "$0")")/python" -I "$0" "$@"
' '''
"""
CONSOLE = (
    LAUNCHER
    + """import sys

from envlock.cli import main

sys.exit(main())
"""
)


class KitError(Exception):
    """Something that a person can mend: what is wrong, and what to do."""

    def __init__(self, what, hint=""):
        super().__init__(what)
        self.what, self.hint = what, hint


class Kit:
    """The kit that this script is in."""

    def __init__(self, path):
        self.path = path
        try:
            with zipfile.ZipFile(path) as archive:
                self.contents = json.loads(archive.read("kit.json").decode("ascii"))
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise KitError("'{}' is damaged: {}".format(path, error), AGAIN) from error

    def tools(self):
        """The entries of envlock's own wheels."""
        return [blob for blob in self.contents["blobs"] if blob["file"].startswith("envlock/")]

    def read(self, blob):
        """The bytes of a file in the kit."""
        with open(self.path, "rb") as file:
            file.seek(blob["at"])
            data = file.read(blob["size"])
        if hashlib.sha256(data).hexdigest() != blob["sha256"]:
            raise KitError("'{}' is damaged: {}".format(self.path, blob["file"]), AGAIN)
        return data


def own_path():
    return os.path.dirname(os.path.abspath(__file__))


def default_folder(kit):
    folder, name = os.path.split(kit)
    stem, suffix = os.path.splitext(name)
    known = suffix in (".kit", ".pyz", ".zip") and stem
    return os.path.join(folder, stem if known else name + "-unpacked")


def need_python(contents):
    """The Python that the wheels inside are for."""
    wanted = contents["python"]
    here = "{}.{}".format(*sys.version_info[:2])
    if here != wanted or sys.implementation.name != "cpython":
        found = shutil.which("python" + wanted)
        hint = "type: {} {}".format(found or "python" + wanted, shlex.quote(own_path()))
        if not found:
            hint += " (there is none on PATH here)"
        what = "the envlock inside is for Python {}, and this is {} {}"
        raise KitError(what.format(wanted, platform.python_implementation(), here), hint)
    machine = contents["machine"]
    if machine and platform.machine() != machine:
        what = "the envlock inside is for {}, and this is {}"
        raise KitError(what.format(machine, platform.machine()), "pack a kit for this machine")


def need_folder(folder):
    """Makes the folder; whether it was not there before."""
    made = not os.path.isdir(folder)
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        what = "'{}' cannot be made: {}".format(folder, error.strerror)
        raise KitError(what, elsewhere()) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise KitError("'{}' cannot be written".format(folder), elsewhere())
    if os.statvfs(folder).f_flag & getattr(os, "ST_NOEXEC", 8):
        if made:
            os.rmdir(folder)
        what = "'{}' is on a file system that runs no programs (noexec)"
        raise KitError(what.format(folder), elsewhere())
    return made


def elsewhere():
    return "name another folder: python3 {} DIR".format(shlex.quote(own_path()))


def lock(folder):
    """Keeps a second run out for as long as this one lives."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise KitError("another run is unpacking into '{}'".format(folder), "wait for it") from None
    except OSError:
        pass  # a network file system without locks
    return descriptor


def set_up(kit, folder):
    """envlock's environment; one that was there before lies beside it until the run has ended."""
    place, new, old = (os.path.join(folder, name) for name in ("envlock", NEW, OLD))
    wanted = json.dumps([blob["sha256"] for blob in kit.tools()])
    try:
        with open(os.path.join(place, "kit-wheels.json")) as file:
            if file.read() == wanted:
                return
    except OSError:
        pass
    if os.path.lexists(place) and not os.path.exists(os.path.join(place, "pyvenv.cfg")):
        raise KitError("'{}' is there already, and is not envlock's".format(place), elsewhere())
    make_environment(kit, new)
    with open(os.path.join(new, "kit-wheels.json"), "w") as file:
        file.write(wanted)
    if os.path.lexists(place):
        os.rename(place, old)
    os.rename(new, place)


def put_back(folder):
    """The envlock of before, where a run did not come to its end. Whole or not at all: whatever is
    deleted has the name of what is half-done by then."""
    place, new, old = (os.path.join(folder, name) for name in ("envlock", NEW, OLD))
    shutil.rmtree(new, ignore_errors=True)
    if os.path.lexists(old):
        if os.path.lexists(place):
            os.rename(place, new)
        os.rename(old, place)
        shutil.rmtree(new, ignore_errors=True)


def let_go(folder):
    """The envlock of before is not needed any more."""
    new, old = (os.path.join(folder, name) for name in (NEW, OLD))
    if os.path.lexists(old):
        os.rename(old, new)
        shutil.rmtree(new, ignore_errors=True)


def make_environment(kit, prefix):
    """What ``python -m venv --without-pip`` makes, by hand: that module is missing in many images.

    Nothing in it names the folder it is in, so that it can be renamed.
    """
    base = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
    version = "python{}.{}".format(*sys.version_info[:2])
    site = os.path.join(prefix, "lib", version, "site-packages")
    programs = os.path.join(prefix, "bin")
    os.makedirs(site)
    os.makedirs(programs)
    with open(os.path.join(prefix, "pyvenv.cfg"), "w") as file:
        file.write("home = {}\n".format(os.path.dirname(base)))
        file.write("include-system-site-packages = false\n")
        file.write("version = {}\n".format(platform.python_version()))
    try:
        os.symlink(base, os.path.join(programs, "python"))
    except OSError:  # a file system without links
        shutil.copy2(base, os.path.join(programs, "python"))
    for blob in kit.tools():
        Wheel(kit.read(blob), blob["file"]).install(site, prefix)
    write(os.path.join(programs, "envlock"), CONSOLE.encode(), True)


class Wheel:
    """A wheel, installed member by member; each is what RECORD says, or nothing is."""

    def __init__(self, data, name):
        self.name = name
        self.archive = zipfile.ZipFile(io.BytesIO(data))
        self.members = [info for info in self.archive.infolist() if not info.is_dir()]
        names = [info.filename for info in self.members]
        self.record = next(
            n for n in names if n.endswith(".dist-info/RECORD") and n.count("/") == 1
        )
        text = self.archive.read(self.record).decode("utf-8")
        self.claimed = {row[0]: row[1] for row in csv.reader(io.StringIO(text)) if row}

    def install(self, site, prefix):
        rows = []
        for info in self.members:
            if info.filename == self.record:
                continue
            data = self.archive.read(info)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
            if self.claimed.get(info.filename) != "sha256=" + digest.decode("ascii"):
                self.refuse(info, "is not what RECORD says")
            path, script = self.place(info, site, prefix)
            if script and data.startswith(b"#!python"):
                data = LAUNCHER.encode() + data.partition(b"\n")[2]
            mode = info.external_attr >> 16
            write(path, data, script or (stat.S_ISREG(mode) and mode & 0o111))
            rows.append((os.path.relpath(path, site), "", ""))
        rows.append((self.record, "", ""))
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        write(os.path.join(site, *self.record.split("/")), text.getvalue().encode("utf-8"), False)

    def place(self, info, site, prefix):
        """Path of a member, and whether it is a script."""
        parts = info.filename.split("/")
        odd = "\\" in info.filename or ":" in parts[0] or stat.S_ISLNK(info.external_attr >> 16)
        if odd or not all(parts) or ".." in parts or "." in parts:
            self.refuse(info, "has no safe path")
        if not parts[0].endswith(".data") or len(parts) < 3:
            return os.path.join(site, *parts), False
        roots = {
            "purelib": site,
            "platlib": site,
            "scripts": os.path.join(prefix, "bin"),
            "headers": os.path.join(prefix, "include"),
            "data": prefix,
        }
        if parts[1] not in roots:
            self.refuse(info, "is in an unknown scheme")
        return os.path.join(roots[parts[1]], *parts[2:]), parts[1] == "scripts"

    def refuse(self, info, why):
        raise KitError("{}: '{}' {}".format(self.name, info.filename, why), AGAIN)


def write(path, data, executable):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "xb") as file:
        file.write(data)
    if executable:
        mode = os.stat(path).st_mode
        os.chmod(path, mode | (mode & 0o444) >> 2)


def unpack(kit, folder):
    """Lets the envlock that was set up do the rest."""
    python = os.path.join(folder, "envlock", "bin", "python")
    wheels = os.path.join(folder, "wheels")
    words = [python, "-I", "-m", "envlock", "wheelhouse", "unpack", kit.path, wheels]
    child = subprocess.Popen(words)
    try:
        return child.wait()
    finally:
        if child.poll() is None:
            child.terminate()
            child.wait()


def run(argv):
    path = own_path()
    default = default_folder(path)
    if len(argv) > 1 or (argv and argv[0].startswith("-")):
        print(USAGE.format(kit=shlex.quote(path), default=default))
        return 0 if argv and argv[0] in ("-h", "--help") else 2
    kit = Kit(path)
    need_python(kit.contents)
    folder = os.path.abspath(argv[0]) if argv else default
    print("unpacking into {}".format(folder), flush=True)
    made = need_folder(folder)
    held = lock(folder)
    before = any(os.path.lexists(os.path.join(folder, name)) for name in ("envlock", OLD))
    code = None
    try:
        put_back(folder)
        set_up(kit, folder)
        code = unpack(kit, folder)
        if code == 0:
            let_go(folder)
    except OSError as error:
        text = "'{}': {}".format(error.filename or folder, error.strerror or error)
        raise KitError(text, elsewhere()) from error
    finally:
        if code != 0:
            undo(folder, before, made)
        os.close(held)
    if code == 0:
        tell(folder)
    return code


def undo(folder, before, made):
    """Takes away what this run has made; the envlock of before is there again."""
    try:
        put_back(folder)
    except OSError:
        pass  # it lies beside still, and the next run puts it back
    if not before:
        shutil.rmtree(os.path.join(folder, "envlock"), ignore_errors=True)
    if made:
        try:
            os.rmdir(folder)
        except OSError:
            pass


def tell(folder):
    program, wheels = (
        os.path.join(folder, *n) for n in (("envlock", "bin", "envlock"), ("wheels",))
    )
    print("envlock is {}".format(shlex.quote(program)))
    print("next, into the environment of this shell:")
    print("  {} restore --wheelhouse {}".format(shlex.quote(program), shlex.quote(wheels)))
    print("or into a new one: add --into VENV", flush=True)


def interrupt(_number, _frame):
    raise KeyboardInterrupt


def main():
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, interrupt)
    try:
        return run(sys.argv[1:])
    except KitError as error:
        print("error: kit: {}".format(error.what), file=sys.stderr)
        if error.hint:
            print("hint: {}".format(error.hint), file=sys.stderr)
        return 4
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
