# How the set-up scripts speak, and the one way they ask for a system package. Sourced by the others.

step() { printf '==> %s\n' "$1" >&2; }

# What went wrong, and what to do about it.
fail() {
  printf '\n!!! %s\n    %s\n\n' "$1" "$2" >&2
  exit 1
}

# Installs packages where we are root on a system with apt-get; says no elsewhere.
as_root_apt() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q "$@" >&2 && return
  apt-get update -q >&2 && DEBIAN_FRONTEND=noninteractive apt-get install -y -q "$@" >&2
}

# Runs a command with its output in a log; shows a sign of life at each N-th line that matches, and the log's end where it fails.
# watched LOG PATTERN N WHAT command...
watched() {
  local log=$1 pattern=$2 every=$3 what=$4
  shift 4
  if ! "$@" 2>&1 | tee "$log" \
    | awk -v pattern="$pattern" -v every="$every" -v what="$what" \
      '$0 ~ pattern && ++n % every == 0 { print "    " n " " what; fflush() }' >&2; then
    tail -n 15 "$log" >&2
    return 1
  fi
}
