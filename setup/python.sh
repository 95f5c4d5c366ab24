#!/usr/bin/env bash
# Makes .venv from one hash-locked list: setup/python.sh requirements.txt
# PYTHON=... picks the interpreter that the environment is made with.
set -euo pipefail
cd "$(dirname "$0")/.."
source setup/say.sh

requirements=$1

# True where $1 is a Python of 3.11 or newer; a shim for a version that is not installed fails here too.
is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
  local candidate
  for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.14}; do
    if is_new_enough "$candidate"; then
      command -v "$candidate"
      return
    fi
  done
  fail "no Python 3.11 or newer${PYTHON:+ at $PYTHON}" "install one, or name it: make setup PYTHON=/path/to/python3.11"
}

make_venv() {
  local python=$1
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    step "the module venv is missing; installing python3-venv"
    as_root_apt python3-venv || fail "$python has no module venv" "as root: apt-get install python3-venv"
  fi
  step "making .venv with $("$python" --version)"
  rm -rf .venv
  "$python" -m venv .venv
}

# A checkout that was moved, or whose Python is gone, has a .venv that no longer works.
if ! is_new_enough .venv/bin/python || [ "$(cat .venv/made-in 2>/dev/null)" != "$PWD" ]; then
  python=$(find_python)
  make_venv "$python"
  echo "$PWD" > .venv/made-in
fi

step "installing $requirements: $(grep -c '==' "$requirements") packages, each checked against its hash"
watched .venv/pip.log '^Collecting' 20 packages \
  .venv/bin/python -m pip install --disable-pip-version-check --progress-bar off --require-hashes -r "$requirements" \
  || fail "pip could not install $requirements" "the lines above say which package; check the network, then run the same command again"
watched .venv/pip.log '^$' 1 "" \
  .venv/bin/python -m pip install --disable-pip-version-check --no-deps --no-build-isolation --editable . \
  || fail "pip could not install Sluice itself" "remove .venv and run the same command again"
touch ".venv/$requirements.done"
