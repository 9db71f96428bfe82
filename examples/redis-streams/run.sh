#!/usr/bin/env bash
# Starts a Redis server of its own, drills the consumer group on it, and stops it.
set -euo pipefail
cd "$(dirname "$0")"
server=$PWD/../servers/redis
dir=$(mktemp -d)
trap '"$server" stop "$dir"; rm -rf "$dir"' EXIT

cargo build --quiet
"$server" start "$dir"
cargo run --quiet -- drill "$server" "$dir"
