#!/usr/bin/env bash
# Writes config/core/Kustomization, the base of the overlays, because kustomize
# has no wildcards. The file has no extension, so that `ko apply -Rf config/core`,
# which reads all YAML files, ignores it.
set -euo pipefail
cd "$(dirname "$0")/.."
{
  cat <<'HEAD'
# Written by make generate: the manifests of this folder, for config/overlays.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
HEAD
  (cd config/core && printf -- '  - %s\n' [0-9]*.yaml)
} >config/core/Kustomization
