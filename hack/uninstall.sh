#!/usr/bin/env bash
# Removes Breakwater, all parts, from the cluster of KUBECONFIG, and what it wrote to other objects:
# webhooks and policies, processes, finalizers, labels and annotations, saved templates, CRDs with
# all objects, RBAC, namespace and Leases. Needs only kubectl. It can be repeated.
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
finalizer=stke.io/podpermission-protection
workloads=deployments.apps,statefulsets.apps,daemonsets.apps
yes=false resume=false
for argument in "$@"; do
  case $argument in
    --yes) yes=true ;;
    --resume) resume=true ;;
    *) echo "invalid argument $argument: use --yes, --resume or none" >&2; exit 2 ;;
  esac
done

say() { echo "==> $*"; }
if kubectl get crd services.serving.knative.dev &>/dev/null; then workloads+=,services.serving.knative.dev; fi
# Runs kubectl, and ignores the error if the cluster does not have the resource.
maybe() {
  local out
  out=$(kubectl "$@" 2>&1) && { [[ -z $out ]] || echo "$out"; return; }
  [[ $out == *"doesn't have a resource type"* || $out == *"NotFound"* || $out == *"could not find the requested resource"* ]] || { echo "$out" >&2; return 1; }
}
# Lists "kind namespace name former" of the workloads of built-in kinds that Breakwater holds.
# former is the recorded value of the field that the hold changed; of a Knative Service it is
# spec.traffic, or null if that was not changed.
held() {
  kubectl get "$workloads" -A -o jsonpath="{range .items[*]}{.kind}{'\t'}{.metadata.namespace}{'\t'}{.metadata.name}{'\t'}{.metadata.annotations.${app//./\\.}/hold}{'\n'}{end}" |
    awk -F '\t' '$4 != "" { former = "null"; if (match($4, /"former":("[^"]*"|[^,}]*)/)) former = substr($4, RSTART + 9, RLENGTH - 9); if ($1 == "Service") former = match($4, /"former":\[.*\]/) ? substr($4, RSTART + 9, RLENGTH - 9) : "null"; print $1 "\t" $2 "\t" $3 "\t" former }'
}
# Lists "namespace name finalizers", the other finalizers as JSON, of pods with our finalizer.
finalized() {
  kubectl get pods -A -o jsonpath="{range .items[*]}{.metadata.namespace}{'\t'}{.metadata.name}{'\t'}{.metadata.finalizers}{'\n'}{end}" |
    awk -F '\t' -v f="\"$finalizer\"" 'index($3, f) { rest = $3; sub(f ",", "", rest); sub("," f, "", rest); sub(f, "", rest); print $1 "\t" $2 "\t" rest }'
}
suspended() { maybe get changeworkloads.app.ops.cloud.alipay.com -A --no-headers -o custom-columns=:.metadata.namespace,:.metadata.name,:.status.status | awk '$3 == "Suspend" {print "  " $1 "/" $2}'; }
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
  echo "the finalizer of $(finalized | wc -l) pods, whose permissions stay granted at their providers"
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
maybe delete "$guards" -l "$ours" --ignore-not-found

say "processes"
for kind in triggers.eventing.knative.dev services.serving.knative.dev deployments.apps; do
  maybe delete "$kind" -n "$ns" -l "$ours" --ignore-not-found
done
maybe wait -n "$ns" --for=delete pods -l "$ours" --timeout=3m

say "finalizers of pods"
while IFS=$'\t' read -r namespace name rest; do
  maybe patch pod -n "$namespace" "$name" --type merge -p "{\"metadata\":{\"finalizers\":$rest}}"
done < <(finalized)

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
maybe delete controllerrevisions.apps -A -l app.ops.cloud.alipay.com/history-of --ignore-not-found
maybe delete poddisruptionbudgets.policy -A -l app.kubernetes.io/managed-by=breakwater --ignore-not-found

say "objects, CRDs, RBAC and namespace"
while read -r crd; do maybe delete crd "$crd" --ignore-not-found; done < <(crds)
maybe delete rolebindings,roles -A -l "$ours" --ignore-not-found
# FlowSchemas are deleted before the priority level that they name.
for kind in flowschemas prioritylevelconfigurations clusterrolebindings clusterroles; do
  maybe delete "$kind" -l "$ours" --ignore-not-found
done
maybe delete namespace "$ns" --ignore-not-found --timeout=3m

left=$(maybe get "$cluster" -l "$ours" -o name; crds; maybe get namespace "$ns" -o name --ignore-not-found; finalized)
if [[ -n $left ]]; then
  printf 'Not removed:\n%s\n' "$left" >&2
  exit 1
fi
echo "Breakwater is removed. Left are labels and annotations that are not about releases, such as the opt-in of namespaces."
echo "Pods that Breakwater injected keep their init container: restart their workloads."
