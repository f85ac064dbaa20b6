#!/usr/bin/env bash
# Removes Breakwater, all parts, from the cluster of KUBECONFIG, and what it wrote to other objects:
# webhooks and policies, processes, finalizers, labels and annotations, saved templates, CRDs with
# all objects, RBAC, namespace and Leases. Needs kubectl and jq. It can be repeated.
#
#   uninstall.sh                    show what would be removed
#   uninstall.sh --yes              remove it
#   uninstall.sh --yes --resume     also resume rollouts that are held; without it, holds are an error
#
# The order matters: webhooks deny requests when their processes are missing, and controllers
# write finalizers and labels again while they run.
set -euo pipefail
ns=altershieldoperator-system
ours=app.kubernetes.io/part-of=breakwater
app=altershield.defense.antgroup.com
releases=changeworkloads.app.ops.cloud.alipay.com
workloads=deployments.apps,statefulsets.apps,daemonsets.apps
yes=false resume=false
for argument in "$@"; do
  case $argument in
    --yes) yes=true ;;
    --resume) resume=true ;;
    *) echo "invalid argument $argument: use --yes, --resume or none" >&2; exit 2 ;;
  esac
done

command -v jq >/dev/null || { echo "jq is missing: install it" >&2; exit 1; }
say() { echo "==> $*"; }
has() { kubectl get crd "$1" &>/dev/null; }
if has services.serving.knative.dev; then workloads+=,services.serving.knative.dev; fi
# Runs kubectl, and ignores the error if the cluster does not have the resource.
maybe() {
  local out
  out=$(kubectl "$@" 2>&1) && { [[ -z $out ]] || echo "$out"; return; }
  [[ $out == *"doesn't have a resource type"* || $out == *"NotFound"* || $out == *"could not find the requested resource"* ]] || { echo "$out" >&2; return 1; }
}
# Deletes objects. The wait has a limit, because a finalizer that is not ours may stop a deletion.
remove() { maybe delete "$@" --ignore-not-found --timeout=3m; }
# Lists "kind namespace name former" of the workloads of built-in kinds that Breakwater holds.
# former is the recorded value of the field that the hold changed; of a Knative Service it is
# spec.traffic, or null if that was not changed.
held() {
  kubectl get "$workloads" -A -o jsonpath="{range .items[*]}{.kind}{'\t'}{.metadata.namespace}{'\t'}{.metadata.name}{'\t'}{.metadata.annotations.${app//./\\.}/hold}{'\n'}{end}" |
    awk -F '\t' '$4 != "" { former = "null"; if (match($4, /"former":("[^"]*"|[^,}]*)/)) former = substr($4, RSTART + 9, RLENGTH - 9); if ($1 == "Service") former = match($4, /"former":\[.*\]/) ? substr($4, RSTART + 9, RLENGTH - 9) : "null"; print $1 "\t" $2 "\t" $3 "\t" former }'
}
# Lists "resource namespace name finalizers", the other finalizers as JSON, of objects with the given finalizer.
with_finalizer() {
  kubectl get "$1" -A -o 'jsonpath={.items[*].metadata}' | jq -r --arg resource "$1" --arg finalizer "$2" \
    'select(.finalizers // [] | index($finalizer)) | [$resource, .namespace, .name, (.finalizers - [$finalizer] | tojson)] | join("\t")'
}
finalized() {
  with_finalizer pods stke.io/podpermission-protection
  ! has "$releases" || with_finalizer "$releases" app.ops.cloud.alipay.com/order
}
# Lists the orders that are open at the AlterShield server: id, release and page.
open_orders() {
  ! has "$releases" || kubectl get "$releases" -A -o 'jsonpath={.items[*]}' | jq -rs 'map(select(.status.order | .openedTime and (.closing.answeredTime | not)) |
    "  order \(.status.order.id) of \(.metadata.namespace)/\(.metadata.name) \(.status.order.url // "")") |
    select(length > 0) | "\(length) orders stay open at the AlterShield server, because nothing closes them any more:", .[]'
}
suspended() { maybe get "$releases" -A --no-headers -o custom-columns=:.metadata.namespace,:.metadata.name,:.status.status | awk '$3 == "Suspend" {print "  " $1 "/" $2}'; }
guards=validatingwebhookconfigurations,mutatingwebhookconfigurations,validatingadmissionpolicies,validatingadmissionpolicybindings
cluster=$guards,clusterroles,clusterrolebindings,flowschemas,prioritylevelconfigurations
# The CRD of budgets may be that of OpenKruise, which has no field spec.shadow.
crds() {
  kubectl get crds -o jsonpath="{range .items[*]}{.metadata.name}{'\t'}{.spec.group}{'\t'}{.spec.versions[*].schema.openAPIV3Schema.properties.spec.properties.shadow.type}{'\n'}{end}" |
    awk -F '\t' '$2 == "app.ops.cloud.alipay.com" || $2 == "judge.breakwater.dev" || ($2 == "policy.kruise.io" && $3 != "") {print $1}'
}

if ! $yes; then
  echo "On $(kubectl config current-context), --yes would remove:"
  maybe get "$cluster" -l "$ours" -o name
  crds | sed 's/$/, with all its objects/'
  echo "namespace $ns, with everything in it: settings, secrets, and the database of the permission centre"
  echo "the finalizer of $(finalized | grep -c ^pods) pods, whose permissions stay granted at their providers"
  open_orders
  echo "Held rollouts (--resume resumes them):"
  held | awk -F '\t' '{print "  " $1 " " $2 "/" $3}'
  exit 0
fi

if ! $resume && [[ -n $(held)$(suspended) ]]; then
  {
    echo "Releases are held because a check failed or is missing:"
    held | awk -F '\t' '{print "  " $1 " " $2 "/" $3}'
    suspended
    echo "Repair or roll them back first, or pass --resume, which resumes their rollouts."
  } >&2
  exit 1
fi

say "webhooks and policies"
remove "$guards" -l "$ours"

say "processes"
for kind in triggers.eventing.knative.dev services.serving.knative.dev deployments.apps; do
  remove "$kind" -n "$ns" -l "$ours"
done
maybe wait -n "$ns" --for=delete pods -l "$ours" --timeout=3m

say "finalizers"
open_orders
finalized | while IFS=$'\t' read -r resource namespace name rest; do
  maybe patch "$resource" -n "$namespace" "$name" --type merge -p "{\"metadata\":{\"finalizers\":$rest}}"
done

say "held rollouts"
while IFS=$'\t' read -r kind namespace name former; do
  case $kind in
    Deployment) patch="{\"spec\":{\"paused\":$former}}" ;;
    StatefulSet) patch="{\"spec\":{\"updateStrategy\":{\"rollingUpdate\":{\"partition\":$former}}}}" ;;
    DaemonSet) patch="{\"spec\":{\"updateStrategy\":{\"type\":$former}}}" ;;
    Service)
      [[ $former != null ]] || continue
      kind=services.serving.knative.dev patch="{\"spec\":{\"traffic\":$former}}"
      ;;
  esac
  maybe patch "$kind" -n "$namespace" "$name" --type merge -p "$patch"
done < <(held)

say "labels and annotations"
# Workloads first: the Deployment controller copies their annotations to ReplicaSets. The annotations
# on the template of a Knative Service stay: without them Serving would create a Revision.
version=admission-webhook-altershield.antgroup.com/version
annotations=("$version-" admission-webhook-altershield.antgroup.com/attempt- "$app/bypass-" "$app/hold-" "$app/rollback-" "$app/rollback-request-" "$app/replay-request-")
maybe annotate "$workloads" -A --all "${annotations[@]}" >/dev/null
maybe annotate replicasets.apps,controllerrevisions.apps -A --all "${annotations[@]}" >/dev/null
for label in "$version" "$app/defense-status" "$app/suspend" "$app/ignored-suspend"; do
  maybe label "$workloads" -A -l "$label" "$label-" >/dev/null
done
maybe label pods -A -l "$app/operate-finished" "$app/operate-finished-" >/dev/null
maybe label namespaces -l policy.breakwater.dev/guarded policy.breakwater.dev/guarded- >/dev/null
remove controllerrevisions.apps -A -l app.ops.cloud.alipay.com/history-of
remove poddisruptionbudgets.policy -A -l app.kubernetes.io/managed-by=breakwater

say "objects, CRDs, RBAC and namespace"
# What these leave is listed below.
for crd in $(crds); do remove crd "$crd" || true; done
remove rolebindings,roles -A -l "$ours"
# FlowSchemas are deleted before the priority level that they name.
for kind in flowschemas prioritylevelconfigurations clusterrolebindings clusterroles; do
  remove "$kind" -l "$ours"
done
remove namespace "$ns" || true

left=$(maybe get "$cluster" -l "$ours" -o name; crds; maybe get namespace "$ns" -o name --ignore-not-found; finalized)
if [[ -n $left ]]; then
  printf 'Not removed:\n%s\n' "$left" >&2
  exit 1
fi
echo "Breakwater is removed. Left are labels and annotations that are not about releases, such as the opt-in of namespaces."
echo "Pods that Breakwater injected keep their init container: restart their workloads."
