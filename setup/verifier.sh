#!/usr/bin/env bash
# Builds the independent verifier of the audit log with Go: .tools/sluice-verify. Running Sluice does not need it.
set -euo pipefail
cd "$(dirname "$0")/.."
source setup/say.sh

PATH=$PATH:/usr/local/go/bin # where Go's own archive is unpacked, whether or not a profile says so
export GOTOOLCHAIN=${GOTOOLCHAIN:-auto} # distributions turn it off; an older Go then could not fetch what go.mod asks for
wanted=$(awk '$1 == "go" { print $2 }' verifier/go.mod)
remedy="install Go $wanted or newer (https://go.dev/dl), or 1.21 and newer with a network, then run the same command again"

command -v go >/dev/null || fail "Go is missing, and the verifier is built with it" "$remedy"
found=$(GOTOOLCHAIN=local go env GOVERSION)
case $found in
  go1.[0-9] | go1.[0-9].* | go1.1[0-9] | go1.1[0-9].* | go1.20 | go1.20.*)
    fail "$(command -v go) is $found, which cannot fetch the newer Go that the verifier needs" "$remedy"
    ;;
esac
if [ "$(printf '%s\n' "${found#go}" "$wanted" | sort -V | tail -n 1)" != "${found#go}" ]; then
  step "$found is older than $wanted: it fetches that one from Go's module proxy, once"
fi

mkdir -p .tools
step "building the verifier with $found"
CGO_ENABLED=0 watched .tools/verifier-build.log '^go: downloading' 1 "modules fetched" \
  go build -C verifier -trimpath -o "$PWD/.tools/sluice-verify" . \
  || fail "the verifier does not build" "read .tools/verifier-build.log; $remedy"
touch .tools/verifier.done
step "the verifier is ready: .tools/sluice-verify"
