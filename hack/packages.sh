#!/usr/bin/env bash
# Installs the Debian packages that unit tests run: the permission centre's
# tests start a PostgreSQL and a MariaDB of their own. Without apt-get those
# tests say what is missing.
set -euo pipefail
# Who may not install them, or does not want to, is told what is missing, or skips
# those tests.
[[ $EUID -eq 0 && "${BREAKWATER_SKIP_DATABASES:-}" != 1 ]] || exit 0
missing=()
compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || missing+=(postgresql)
command -v mariadbd >/dev/null || missing+=(mariadb-server)
[[ ${#missing[@]} -gt 0 ]] || exit 0
command -v apt-get >/dev/null || exit 0
echo "==> apt-get install ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
# At this run level Debian's scripts start no service: only tests start any.
export RUNLEVEL=1
install=(apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=120 "${missing[@]}")
"${install[@]}" >/dev/null || { apt-get update -qq && "${install[@]}" >/dev/null; }
