#!/usr/bin/env bash
# The whole loop on real distributions, as a person would type it.
#
#   examples/loop.sh WHEELS [SCRATCH]
#
# WHEELS   a folder with wheels of torch (a build with a label, such as 2.13.0+cpu), triton, numpy
#          and what they need
# SCRATCH  where everything happens; default: a new temporary folder, kept for you to look at
#
# Steps 1 and 2 ask the index your pip is configured for. From step 3 on nothing needs a network;
# where `unshare -n` is allowed, steps 5 and 6 run without one.
set -euo pipefail

wheels=$(realpath "$1")
scratch=${2:-$(mktemp -d -t envlock-loop-XXXXXX)}
mkdir -p "$scratch"
cd "$scratch"
export XDG_STATE_HOME=$scratch/state
export VIRTUAL_ENV=$scratch/target
site() { echo "$VIRTUAL_ENV"/lib/python3*/site-packages; }
bytes() { (cd "$VIRTUAL_ENV" && find . -name __pycache__ -prune -o -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum); }
step() { printf '\n=== %s\n' "$*"; }
ok() { echo "ok: $*"; }
fails_with() { # CODE COMMAND...
    local wanted=$1 code=0
    shift
    "$@" || code=$?
    [ "$code" = "$wanted" ] || { echo "'$*' ended with $code, not $wanted"; exit 1; }
}
offline=()
if unshare -n true 2>/dev/null; then offline=(unshare -n); fi
envlock() { ${alone[@]+"${alone[@]}"} python3 -m envlock "$@"; }
alone=()

step "0  a target environment with torch"
python3 -m venv --without-pip target
uv pip install -q --python target --no-index --find-links "$wheels" --link-mode copy torch triton numpy
python3 -m pip --python target/bin/python install -q --no-index --find-links "$wheels" setuptools

step "1  lock it"
envlock snapshot --profile cpu -o lock.yaml
grep -A3 'name: torch$' lock.yaml | grep -q 'protected: true'
[ "$(grep -c '^- name:' lock.yaml)" = "$(grep -c '^  content: sha256:' lock.yaml)" ]
ok "torch is protected, every distribution has a content digest"

step "2  guard it"
before=$(bytes)
fails_with 3 envlock guard pip install -U torch 2>refusal.txt
cat refusal.txt
installed=$(sed -n '/name: torch$/{n;s/.*version: //p}' lock.yaml)
grep -qF "$installed" refusal.txt
[ "$before" = "$(bytes)" ]
ok "refused, and the target is byte for byte as before"
envlock guard pip install -q tabulate
target/bin/python -c 'import tabulate'
ok "an install that cannot hurt ran"
envlock snapshot --profile cpu -o lock.yaml -q

step "3  keep the wheels"
envlock wheelhouse harvest W -q
envlock wheelhouse harvest W2 -q
for file in W/*.whl; do cmp "$file" "W2/${file#W/}"; done
(cd W && sha256sum --quiet -c SHA256SUMS)
envlock wheelhouse check W
python3 -m venv --without-pip by-pip
python3 -m pip --python by-pip/bin/python install -q --no-index --find-links W torch
python3 -m venv --without-pip by-uv
uv pip install -q --python by-uv --no-index --find-links W torch
for python in by-pip by-uv; do $python/bin/python -c 'import torch; assert torch.ones(2).sum() == 2'; done
ok "two harvests are the same bytes, whole, and pip and uv install them"

step "4  damage it"
rm "$(site)"/numpy.libs/libscipy_openblas*.so
printf 'x' | dd of="$(echo $(site))/sympy/core/basic.py" bs=1 seek=100 conv=notrunc status=none
python3 - "$scratch/public" <<'PY'
import hashlib, sys, zipfile
from base64 import urlsafe_b64encode
from pathlib import Path

folder = Path(sys.argv[1])
folder.mkdir()
info = "torch-99.0.dist-info"
files = {
    "torch/__init__.py": "__version__ = '99.0'\n",
    f"{info}/METADATA": "Metadata-Version: 2.1\nName: torch\nVersion: 99.0\n",
    f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}
rows = [
    f"{name},sha256={urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip('=')},{len(text)}"
    for name, text in files.items()
]
files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""])
with zipfile.ZipFile(folder / "torch-99.0-py3-none-any.whl", "w") as wheel:
    for name, text in files.items():
        wheel.writestr(name, text)
PY
python3 -m pip --python target/bin/python install -q -U --no-index --find-links public --no-deps torch
fails_with 3 envlock verify --level static 2>&1 | tee damage.txt
for name in torch numpy sympy; do grep -q "$name" damage.txt; done
for name in triton networkx jinja2 tabulate; do ! grep -q "$name" damage.txt; done
ok "exactly the damaged distributions are named"

step "5  put it back and prove it, without network"
alone=(${offline[@]+"${offline[@]}"})
envlock restore --wheelhouse W
envlock verify --device cpu --report report.json
envlock restore --wheelhouse W --plan
ok "every content digest equals the manifest's, and it computes"

step "6  the same in a new environment"
envlock restore --wheelhouse W --into new
envlock verify --device cpu --python new
ok "a new environment computes too"

printf '\nall steps passed; look at %s\n' "$scratch"
