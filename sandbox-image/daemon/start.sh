#!/bin/sh
# Starts the daemon by what its harness wants of Node: `start.sh [PROGRAM]`. `start.sh flags` says those words instead: code
# is compiled by the same ones, or Node would not use it. Sources: docs/decisions/0049, 0054.
set -eu
case "${BEEUNI_HARNESS-}" in
  # Pi runs in this process, and its tools are heavy work for JavaScript.
  pi) flags='--max-semi-space-size=2' ;;
  # Beside a harness of its own the daemon passes events on: it makes little garbage, and no code of it is worth the 8 MB
  # that V8's optimizing compilers take. What starting left is collected once.
  *) flags='--max-semi-space-size=1 --optimize-for-size --no-maglev --no-opt --expose-gc' ;;
esac
if [ "${1-}" = flags ]; then
  echo "$flags"
else
  # shellcheck disable=SC2086 # They are words.
  exec node $flags "${1-/opt/beeuni/bundle/beeunid.mjs}"
fi
