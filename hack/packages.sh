#!/usr/bin/env bash
# Installs the Debian packages that the unit tests need: the permission centre's
# tests start their own PostgreSQL and MariaDB, the judge's tests a Prometheus with
# recorded releases, promtool tests the alerts, jq is needed by scripts, and Chromium shows the site. Where a package is missing, tests of
# databases fail, or are skipped with BREAKWATER_SKIP_DATABASES=1; the others are skipped.
set -euo pipefail
# Without root, or with BREAKWATER_SKIP_DATABASES=1, nothing is installed.
[[ $EUID -eq 0 && "${BREAKWATER_SKIP_DATABASES:-}" != 1 ]] || exit 0
missing=()
compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || missing+=(postgresql)
command -v mariadbd >/dev/null || missing+=(mariadb-server)
command -v promtool >/dev/null || missing+=(prometheus)
command -v zstd >/dev/null || missing+=(zstd)
command -v jq >/dev/null || missing+=(jq)
command -v chromium >/dev/null || missing+=(chromium)
[[ ${#missing[@]} -gt 0 ]] || exit 0
command -v apt-get >/dev/null || exit 0
echo "==> apt-get install ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
# At this run level Debian's package scripts do not start the services.
export RUNLEVEL=1
install=(apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=120 "${missing[@]}")
"${install[@]}" >/dev/null || { apt-get update -qq && "${install[@]}" >/dev/null; }
