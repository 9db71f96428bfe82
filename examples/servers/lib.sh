# What the server scripts share.

# Installs a Debian package unless the command is there. The service that comes with the package is not started.
need() {
  local command=$1 package=$2
  command -v "$command" >/dev/null && return
  apt-get update -qq >&2
  RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >&2
}

# A port of the loopback interface on which nobody answers, below the range that the system gives to clients.
free_port() {
  local port
  while
    port=$((20000 + RANDOM % 12000))
    (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null
  do :; done
  echo "$port"
}

# Runs a command until it succeeds, for at most 30 s.
until_ready() {
  local tries
  for tries in {1..300}; do
    "$@" >/dev/null 2>&1 && return
    sleep 0.1
  done
  echo "not ready after 30 s: $*" >&2
  return 1
}
