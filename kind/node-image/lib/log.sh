# shellcheck shell=bash disable=SC2154 # build, which reads this file, sets the variables
# What people see of the build: steps, progress of long ones, and errors that say what to do.

say() { echo "node image: $*"; }
die() { echo "node image: $*" >&2; exit 1; }

# timed NAME COMMAND... runs a long command, tells every 10 seconds how far it is, and shows the end of its output if it fails.
timed() {
  local name=$1 begin=$SECONDS told=$SECONDS log pid
  shift
  log=$work/$(echo "$name" | tr -c 'a-z0-9\n' -).log
  "$@" >"$log" 2>&1 &
  pid=$!
  children+=("$pid")
  while kill -0 "$pid" 2>/dev/null; do
    if ((SECONDS - told >= 10)); then
      told=$SECONDS
      say "$name: $((SECONDS - begin)) s, $(wc -l <"$log") steps so far, last: $(tail -n 1 "$log" | cut -c 1-80)"
    fi
    sleep 0.2
  done
  if ! wait "$pid"; then
    tail -n 20 "$log" >&2
    die "$name failed; what is above is the end of its output. What was finished is kept: run the same command again"
  fi
  say "$name: done in $((SECONDS - begin)) s"
}

megabytes() { echo "$((($(stat -c %s "$1") + 500000) / 1000000)) MB"; }
