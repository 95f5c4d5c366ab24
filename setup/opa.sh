#!/usr/bin/env bash
# Puts Open Policy Agent at .tools/opa: the one on PATH where it speaks Rego v1, else built with Go, else the official release.
set -euo pipefail
cd "$(dirname "$0")/.."
source setup/say.sh

version=1.22.3
packages=770 # that its build compiles, Go's own included; what is in Go's cache already is not counted
releases=https://github.com/open-policy-agent/opa/releases/download/v$version

# True where $1 is an OPA of 1.0 or newer.
speaks_rego_v1() { "$1" version 2>/dev/null | grep -qx 'Rego Version: v1'; }

link_from_path() {
  local found
  found=$(command -v opa) && speaks_rego_v1 "$found" || return 1
  step "using $found ($("$found" version | head -n 1))"
  ln -sf "$found" .tools/opa
}

build_with_go() {
  PATH=$PATH:/usr/local/go/bin # where Go's own archive is unpacked, whether or not a profile says so
  command -v go >/dev/null || return 1
  step "building OPA $version with $(go version | cut -d' ' -f3): about 3 minutes on 2 cores, once"
  step "(to skip this: Ctrl-C, put an opa of 1.0 or newer on PATH, and run the same command again)"
  GOBIN=$PWD/.tools CGO_ENABLED=0 watched .tools/opa-build.log '^[^ ]+$' 50 "of about $packages packages compiled" \
    go install -v "github.com/open-policy-agent/opa@v$version"
}

download_release() {
  local name expected
  case "$(uname -s)-$(uname -m)" in
    Linux-x86_64) name=opa_linux_amd64_static ;;
    Linux-aarch64) name=opa_linux_arm64_static ;;
    Darwin-x86_64) name=opa_darwin_amd64 ;;
    Darwin-arm64) name=opa_darwin_arm64_static ;;
    *) return 1 ;;
  esac
  command -v curl >/dev/null || return 1
  step "fetching the release $name of OPA $version"
  curl -fsSL --retry 2 --connect-timeout 10 -o .tools/opa.new "$releases/$name" || return 1
  expected=$(curl -fsSL --retry 2 --connect-timeout 10 "$releases/$name.sha256" | cut -d' ' -f1) || return 1
  if [ "$(sha256_of .tools/opa.new)" != "$expected" ]; then
    rm -f .tools/opa.new
    fail "the fetched OPA does not match its checksum" "try again; if it stays so, do not use that file and report it to the OPA project"
  fi
  chmod +x .tools/opa.new
  mv .tools/opa.new .tools/opa
}

sha256_of() { { sha256sum "$1" 2>/dev/null || shasum -a 256 "$1"; } | cut -d' ' -f1; }

is_right() { .tools/opa version 2>/dev/null | grep -qx "Version: $version"; }

mkdir -p .tools
is_right || rm -f .tools/opa
is_right || link_from_path || build_with_go || download_release \
  || fail "no Open Policy Agent: none of 1.0 or newer on PATH, Go could not build it, and no release could be fetched" \
    "install Go 1.21 or newer with a network, or put an opa of 1.0 or newer on PATH, then run the same command again"
speaks_rego_v1 .tools/opa || fail ".tools/opa does not run" "remove it and run the same command again"
touch .tools/opa.done
step "OPA is ready: $(.tools/opa version | head -n 1)"
