#!/usr/bin/env bash
# Starts a PostgreSQL server of its own, drills the outbox on it, and stops it.
set -euo pipefail
cd "$(dirname "$0")"
server=$PWD/../servers/postgres
dir=$(mktemp -d)
trap '"$server" stop "$dir"; rm -rf "$dir"' EXIT

cargo build --quiet
"$server" start "$dir"
cargo run --quiet -- drill "$server" "$dir"
