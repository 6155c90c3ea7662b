#!/bin/sh
# Removes from a node_modules folder what never runs: source maps, type declarations, change logs, examples, other systems' binaries.
# Usage: prune.sh FOLDER
set -eu
cd "$1"
find . -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' -o -name 'CHANGELOG*.md' -o -name 'HISTORY.md' \) -delete
rm -rf ./@types ./@earendil-works/pi-coding-agent/examples ./@earendil-works/pi-tui/native/darwin ./@earendil-works/pi-tui/native/win32
find . -type d -empty -delete
