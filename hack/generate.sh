#!/usr/bin/env bash
# Writes deep copies, clients, informers, listers, reconcilers (client/), CRD and
# EventType manifests, dashboards and Kustomizations (config/), the OpenAPI document and
# docs/metrics.md.
# `make verify` runs it and fails on a diff. docs/judge/power.md and docs/performance.md have
# commands of their own.
set -euo pipefail
cd "$(dirname "$0")/.."

module=github.com/breakwater-dev/breakwater
apis=(change/v1alpha1 judge/v1alpha1 policy/v1alpha1)
packages=("${apis[@]/#/$module/apis/}")
header=hack/boilerplate.go.txt
export GOFLAGS='-mod=mod -trimpath'
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT

# The tools have their own go.mod, separate from Breakwater's. Each is built
# once, because `go tool` loads the module graph at every call.
for tool in k8s.io/code-generator/cmd/{deepcopy,client,lister,informer}-gen \
    knative.dev/pkg/codegen/cmd/injection-gen sigs.k8s.io/controller-tools/cmd/controller-gen; do
  go build -modfile=tools/generate/go.mod -o "$bin/" "$tool"
done

"$bin/deepcopy-gen" --go-header-file "$header" --output-file zz_generated.deepcopy.go "${packages[@]}"

# The new client is written to a temporary folder and replaces the old one at the
# end, so that a failed generator does not leave the tree without a client.
out=$(mktemp -d "$PWD/.client.XXXXXX")
trap 'rm -rf "$bin" "$out"' EXIT
client=$module/client
plural=OpsConfigInfo:OpsConfigInfoes
input=()
for api in "${apis[@]}"; do input+=(--input "$api"); done

"$bin/client-gen" --go-header-file "$header" --clientset-name versioned --input-base "$module/apis" "${input[@]}" \
  --plural-exceptions "$plural" --output-pkg "$client/clientset" --output-dir "$out/clientset"
"$bin/lister-gen" --go-header-file "$header" --plural-exceptions "$plural" \
  --output-pkg "$client/listers" --output-dir "$out/listers" "${packages[@]}"
"$bin/informer-gen" --go-header-file "$header" --plural-exceptions "$plural" \
  --versioned-clientset-package "$client/clientset/versioned" --listers-package "$client/listers" \
  --output-pkg "$client/informers" --output-dir "$out/informers" "${packages[@]}"
rm -rf client
mv "$out" client
chmod 755 client

"$bin/injection-gen" --go-header-file "$header" --plural-exceptions "$plural" \
  --versioned-clientset-package "$client/clientset/versioned" \
  --external-versions-informers-package "$client/informers/externalversions" --listers-package "$client/listers" \
  --output-package "$client/injection" --output-dir client/injection "${packages[@]/#/--input-dirs=}"
# Nothing uses the filtered informers.
find client/injection -type d -name filtered -prune -exec rm -rf {} +

# injection-gen applies its plural exceptions to all names except this one.
grep -rlF '().OpsConfigInfos()' client/injection | xargs sed -i 's/()\.OpsConfigInfos()/().OpsConfigInfoes()/'

"$bin/controller-gen" crd:headerFile=hack/boilerplate.yaml.txt paths=./apis/... output:crd:dir=client/.crd
n=100
for kind in opsconfiginfoes changeworkloads changepods releasechecks; do
  mv "client/.crd/app.ops.cloud.alipay.com_$kind.yaml" "config/core/$n-crd-$kind.yaml"
  n=$((n + 1))
done
n=100
for kind in podunavailablebudgets poddeletionflowcontrols; do
  mv "client/.crd/policy.kruise.io_$kind.yaml" "config/protection/$n-crd-$kind.yaml"
  n=$((n + 1))
done
mv client/.crd/judge.breakwater.dev_metricchecks.yaml config/core/104-crd-metricchecks.yaml
rmdir client/.crd

go run ./events/eventtypegen
go run ./permission/centre/rest/openapigen
go run ./internal/metrics/metricsdocgen
go run ./internal/metrics/dashboardgen
hack/kustomization.sh
