#!/usr/bin/env bash
# Builds the images and applies the manifests of the given folders to the
# cluster of KUBECONFIG, CRDs first, because kubectl does not know a kind before
# its CRD is established. OVERLAY=<name> applies config/overlays/<name> instead
# of config/core, and config/overlays/<name>/<part>, if it exists, instead of
# config/<part>. WRITE_MANIFESTS_TO=<folder> only builds the images and writes the manifests there;
# APPLY_MANIFESTS_FROM=<folder> applies these.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${KO_DOCKER_REPO:?set KO_DOCKER_REPO to a registry that the cluster can pull from}"
export KO_CONFIG_PATH="$PWD/ko.yaml"
ns=altershieldoperator-system
ko=(ko)
command -v ko >/dev/null || ko=(go run github.com/google/ko@v0.19.1)
# On the base image of tools/release, which is the same for everybody, unless another is named.
[[ -n ${KO_DEFAULTBASEIMAGE:-}${APPLY_MANIFESTS_FROM:-} ]] || KO_DEFAULTBASEIMAGE=$(go -C tools/release run ./pushbase)
export KO_DEFAULTBASEIMAGE=${KO_DEFAULTBASEIMAGE:-}
manifests=$(mktemp)
trap 'rm -f "$manifests"' EXIT

check_knative() {
  local found
  found=$(kubectl get crd services.serving.knative.dev brokers.eventing.knative.dev --ignore-not-found -o name)
  if [[ $(wc -w <<<"$found") -lt 2 ]]; then
    echo "part change (config/core) needs Knative Serving and Eventing: install them first." \
      "Parts protection and permission need none: make apply PARTS='config/protection config/permission'" >&2
    exit 1
  fi
}

# The class of a Broker is immutable, and the classes treat Triggers differently.
check_class() {
  local is wanted
  is=$(kubectl -n "$ns" get broker default --ignore-not-found -o "jsonpath={.metadata.annotations['eventing\.knative\.dev/broker\.class']}" 2>/dev/null || true)
  wanted=$(sed -n 's/^ *eventing.knative.dev\/broker.class: //p' "$manifests")
  if [[ -n $is && -n $wanted && $is != "$wanted" ]]; then
    echo "change the Broker from class $is to $wanted: the class is immutable; delete the Broker and its Triggers, then apply again with each of" \
      "config/judge and config/notify in PARTS that is installed, and apply Triggers of your own again" >&2
    echo "  kubectl -n $ns delete brokers,triggers --all" >&2
    exit 1
  fi
}

# An overlay contains settings, and the webhook that validates them may still be
# starting.
apply_settled() {
  local until=$((SECONDS + 120))
  until kubectl apply -f "$manifests"; do
    ((SECONDS < until)) || return 1
    kubectl -n "$ns" wait --for=condition=Available --timeout=60s deployment/webhook || true
    sleep 2
  done
}

# established waits for the CRDs of files. kubectl wait fails, instead of waiting, while status.conditions of
# a new CRD is null.
established() {
  local until=$((SECONDS + 60)) failure
  until failure=$(kubectl wait --for=condition=Established --timeout=60s "$@" 2>&1 >/dev/null); do
    if [[ $failure != *'.status.conditions accessor error'* ]] || ((SECONDS >= until)); then
      echo "$failure" >&2
      return 1
    fi
    sleep 0.2
  done
}

if [[ -n ${WRITE_MANIFESTS_TO:-} ]]; then
  for dir in "$@"; do "${ko[@]}" resolve -Rf "$dir" >"$WRITE_MANIFESTS_TO/$(basename "$dir").yaml"; done
  exit
fi

echo "==> cluster of context $(kubectl config current-context)"
for dir in "$@"; do
  if [[ $dir == config/core ]]; then check_knative; fi
done
for dir in "$@"; do
  if [[ $dir == config/protection ]]; then hack/check-crds.sh; fi
  if compgen -G "$dir/*-crd-*.yaml" >/dev/null; then
    echo "==> $dir: CRDs"
    for crd in "$dir"/*-crd-*.yaml; do kubectl apply -f "$crd"; done
    established $(printf -- '-f %s ' "$dir"/*-crd-*.yaml)
  fi
  # Until 650-openapi.yaml became a Deployment, openapi was a Knative Service, which owns the Service of its name.
  if [[ $dir == config/core ]]; then kubectl -n "$ns" delete services.serving.knative.dev openapi --ignore-not-found --cascade=foreground; fi
  overlay=config/overlays/${OVERLAY:-}
  [[ $dir == config/core ]] || overlay+=/${dir#config/}
  if [[ -n ${OVERLAY:-} && ($dir == config/core || -d $overlay) ]]; then
    echo "==> $overlay: images and other manifests"
    kubectl kustomize "$overlay" | "${ko[@]}" resolve -f - >"$manifests"
    check_class
    apply_settled
  elif [[ -n ${APPLY_MANIFESTS_FROM:-} ]]; then
    echo "==> $dir: other manifests"
    kubectl apply -f "$APPLY_MANIFESTS_FROM/$(basename "$dir").yaml"
  else
    echo "==> $dir: images and other manifests"
    "${ko[@]}" apply -Rf "$dir"
  fi
done
