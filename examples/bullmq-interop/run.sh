#!/usr/bin/env bash
# Starts a Redis server of its own, records what several versions of BullMQ do on it, stops it, and holds the recording
# against this crate and against the recording that is kept here.
#
#     run.sh --keep    keeps the new recording instead
set -euo pipefail
cd "$(dirname "$0")"
server=$PWD/../servers/redis
dir=$(mktemp -d)
trap '"$server" stop "$dir"; rm -rf "$dir"' EXIT

. ../servers/lib.sh
need npm npm
npm install --no-package-lock --no-audit --no-fund --loglevel=error
delays=$(cargo run --quiet)
"$server" start "$dir"
timeout 60 node record.mjs "$(cat "$dir/port")" "$delays" >"$dir/recording.tsv"
[ "${1:-}" != --keep ] || cp "$dir/recording.tsv" recording.tsv
cat "$dir/recording.tsv"
diff recording.tsv "$dir/recording.tsv"
RECORDING=$dir/recording.tsv cargo test --quiet
