#!/usr/bin/env bash
# Writes the file Kustomization of config/core, which is the base of the overlays, and of
# config/judge, for overlays of your own, because kustomize has no wildcards. The file has no extension, so that
# `ko apply -Rf`, which reads all YAML files, ignores it.
set -euo pipefail
cd "$(dirname "$0")/.."
for dir in config/core config/judge; do
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
