#!/usr/bin/env bash
# Writes the file Kustomization of each folder that is the base of an overlay, because kustomize has
# no wildcards. The file has no extension, so that `ko apply -Rf`, which reads all YAML files, ignores it.
set -euo pipefail
cd "$(dirname "$0")/.."
for dir in config/core config/judge config/notify config/protection config/permission; do
  {
    cat <<'HEAD'
# Written by make generate: the manifests of this folder, as a base of overlays.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
HEAD
    (cd "$dir" && printf -- '  - %s\n' [0-9]*.yaml)
  } >"$dir/Kustomization"
done
