#!/usr/bin/env bash
# Builds the images and applies the manifests of the given folders to the
# cluster of KUBECONFIG, CRDs first: kubectl cannot know a kind whose CRD it is
# only about to create.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${KO_DOCKER_REPO:?set KO_DOCKER_REPO to a registry that the cluster can pull from}"
export KO_CONFIG_PATH="$PWD/ko.yaml"
ko=(ko)
command -v ko >/dev/null || ko=(go run github.com/google/ko@v0.19.1)

for dir in "$@"; do
  echo "==> $dir: CRDs"
  for crd in "$dir"/*-crd-*.yaml; do kubectl apply -f "$crd"; done
  kubectl wait --for=condition=Established --timeout=60s $(printf -- '-f %s ' "$dir"/*-crd-*.yaml) >/dev/null
  echo "==> $dir: images and the rest"
  "${ko[@]}" apply --sbom=none -Rf "$dir"
done
