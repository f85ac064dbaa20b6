#!/usr/bin/env bash
# Removes Breakwater, all parts or one, from the cluster of KUBECONFIG, and what it wrote to other objects:
# webhooks and policies, processes, finalizers, labels and annotations, saved templates, CRDs with
# all objects, RBAC, namespace and Leases. Needs kubectl and jq. It can be repeated.
#
#   uninstall.sh                    show what would be removed
#   uninstall.sh --yes              remove it
#   uninstall.sh --yes --resume     also resume rollouts that are held; without it, holds and suspensions are an error.
#                                   Held workloads of kinds of config-workloads are an error in any case
#   uninstall.sh --part NAME ...    only part change (with judge and notify), protection or permission. The namespace stays, so
#                                   this is for a part beside others
#
# The order matters: webhooks deny requests when their processes are missing, and controllers
# write finalizers and labels again while they run.
set -euo pipefail
ns=altershieldoperator-system
ours=app.kubernetes.io/part-of=breakwater
# Saved templates and generated PodDisruptionBudgets.
saved=app.ops.cloud.alipay.com/history-of generated=app.kubernetes.io/managed-by=breakwater
app=altershield.defense.antgroup.com
releases=changeworkloads.app.ops.cloud.alipay.com
workloads=deployments.apps,statefulsets.apps,daemonsets.apps
yes=false resume=false part=
while (($#)); do
  case $1 in
    --yes) yes=true ;;
    --resume) resume=true ;;
    --part) part=${2:-none}; (($# == 1)) || shift ;;
    *) echo "invalid argument $1: use --yes, --resume, --part or none" >&2; exit 2 ;;
  esac
  shift
done
component=app.kubernetes.io/component
of_protection=protection,protection-controller,protection-webhook,cascading-deletion
of_permission=permission,permission-controller,permission-webhook,permission-centre,init-action-server
case $part in
  '') ;;
  protection) ours+=",$component in ($of_protection)" ;;
  permission) ours+=",$component in ($of_permission)" ;;
  # Also what has no component, and what needs part change.
  change) ours+=",$component notin ($of_protection,$of_permission,monitoring)" ;;
  *) echo "invalid part $part: use change, protection or permission" >&2; exit 2 ;;
esac
# Reports whether a part is removed.
of() { [[ -z $part || $part == "$1" ]]; }

command -v jq >/dev/null || { echo "jq is missing: install it" >&2; exit 1; }
say() { echo "==> $*"; }
has() { kubectl get crd "$1" &>/dev/null; }
# Without the labels of this version, other parts would lose objects.
if [[ -n $part ]] && kubectl get clusterroles -l "app.kubernetes.io/part-of=breakwater,!$component" -o name | grep -E 'breakwater-(permission|protection)-view$' >&2; then
  echo "these objects do not have the label $component: apply the manifests of this version first. Nothing was removed" >&2
  exit 1
fi
if has services.serving.knative.dev; then workloads+=,services.serving.knative.dev; fi
# Runs kubectl, and ignores the error if the cluster does not have the resource.
maybe() {
  local errors
  { errors=$(kubectl "$@" 2>&1 >&3) && { [[ -z $errors ]] || echo "$errors" >&2; return; }; } 3>&1
  [[ $errors == *"doesn't have a resource type"* || $errors == *"NotFound"* || $errors == *"could not find the requested resource"* ]] || { echo "$errors" >&2; return 1; }
}
# Deletes objects. The wait has a limit, because a finalizer that is not ours may stop a deletion.
remove() { maybe delete --ignore-not-found --timeout=3m "$@"; }
# Decides what ends a hold of a built-in kind, as internal/workload and internal/knativetraffic do. A field
# or a split of traffic that a person changed during the hold stays, and a failed Revision gets no traffic by name.
end_of_hold='
  def annotation($name): .metadata.annotations["\($app)/\($name)"] // "" | (fromjson? | objects) // null;
  def same: map([.revisionName // "", .percent // 0, .tag // ""]);
  # The share of the failed Revisions moves to another one. The name of the latest one is "".
  def move($failed; $to):
    def is_failed: .revisionName // "" | IN($failed[]);
    (map(select(is_failed) | .percent // 0) | add // 0) as $share
    | select($share > 0 and $to != "")
    | map(if (is_failed | not) or (.percent // 0) == 0 then . elif (.tag // "") != "" then .percent = 0 else empty end)
    | (map(.revisionName == $to) | index(true)) as $i
    | if $i then .[$i].percent += $share else . + [{revisionName: $to, percent: $share}] end;
  # The share of the latest Revision moves, and the Revision gets a tag.
  def pin($service; $to):
    def latest: (.revisionName // "") == "";
    (map(latest and (.percent // 0) > 0) | index(true)) as $i
    | select($i)
    | if any(.[]; .tag == "unjudged" or latest and (.tag // "") != "") or ("unjudged-\($service)" | length) > 63 then . else .[$i].tag = "unjudged" end
    | move([""]; $to);
  # A repair has the record of the traffic in the annotation bypass.
  def traffic:
    annotation("bypass") as $bypass
    | if annotation("hold") then annotation("hold").traffic
      elif $bypass and ($bypass.ended | not) and $bypass.suspend == .metadata.labels["\($app)/suspend"] then $bypass.traffic
      else null end;
  def is_held: .metadata.annotations // {} | has("\($app)/hold");
  def patch:
    {Deployment: true, StatefulSet: 2147483647, DaemonSet: "OnDelete"}[.kind] as $held
    | {Deployment: ["paused"], StatefulSet: ["updateStrategy", "rollingUpdate", "partition"], DaemonSet: ["updateStrategy", "type"]}[.kind] as $path
    | if .kind == "Service" then
        . as $service | traffic | select(.former) | (.failed // []) as $failed | (.to // "") as $to
        | ($failed + [""]) as $moved
        | select(any(.former | move($moved; $to), (pin($service.metadata.name; $to) | move($moved; $to) // .); same == ($service.spec.traffic // [] | same)))
        | (.former | move($failed; $to) // .) as $restored
        | select(($restored | same) != ($service.spec.traffic // [] | same)) | {spec: {traffic: $restored}}
      else
        (annotation("hold") | .former) as $former
        | select(is_held and (.spec | getpath($path)) == $held and $former != $held) | {spec: ({} | setpath($path; $former))}
      end;
  [patch][0] as $patch
  | select(is_held or $patch) | [.kind, .metadata.namespace, .metadata.name, ($patch // empty | tojson)] | join("\t")'
# Lists "kind namespace name patch" of the workloads of built-in kinds that Breakwater holds. A hold that
# stopped nothing, or that a person ended, has no patch.
held() { ! of change || kubectl get "$workloads" -A -o 'jsonpath={.items[*]}' | jq -r --arg app "$app" "$end_of_hold"; }
# Lists "kind namespace name" of the held workloads of other kinds, which ConfigMap config-workloads names or named. The
# script cannot resume them: the record of a hold does not name the field that stops the rollout.
held_of_other_kinds() {
  ! of change || ! has "$releases" || kubectl get "$releases" -A -o 'jsonpath={.items[*].spec.workloadRef}' | jq -r '
    select("\(.apiVersion) \(.kind)" | IN("apps/v1 Deployment", "apps/v1 StatefulSet", "apps/v1 DaemonSet", "serving.knative.dev/v1 Service") | not) |
    "\(.kind).\(.apiVersion | split("/")[0])"' | sort -u | while read -r kind; do
    maybe get "$kind" -A -o 'jsonpath={.items[*]}' | jq -r --arg hold "$app/hold" \
      'select(.metadata.annotations // {} | has($hold)) | [.kind, .metadata.namespace, .metadata.name] | join("\t")' || exit 1
  done
}
# Lists "resource namespace name finalizers", the other finalizers as JSON, of objects with the given finalizer.
with_finalizer() {
  kubectl get "$1" -A -o 'jsonpath={.items[*].metadata}' | jq -r --arg resource "$1" --arg finalizer "$2" \
    'select(.finalizers // [] | index($finalizer)) | [$resource, .namespace, .name, (.finalizers - [$finalizer] | tojson)] | join("\t")'
}
finalized() {
  ! of permission || with_finalizer pods stke.io/podpermission-protection
  ! of change || ! has "$releases" || with_finalizer "$releases" app.ops.cloud.alipay.com/order
}
# Lists, by namespace, "names namespace" of the objects of a resource that have one of the labels, or annotations, that a
# patch removes. Those of the list $4, in JSON, are left out.
marked() {
  kubectl get "$1" -A -o 'jsonpath={.items[*].metadata}' | jq -rs --arg resource "$1" --arg part "$2" --argjson patch "$3" --argjson without "$4" '
    ($patch.metadata[$part] | keys) as $marks | map(select(.[$part] // {} | keys | any(IN($marks[]))))
    | map(select("\($resource)/\(.namespace)/\(.name)" | IN($without[]) | not))
    | group_by(.namespace)[] | "\(map(.name) | join(" "))\t\(.[0].namespace // "")"'
}
# Removes labels, or annotations, from the objects of a resource that have them, and adds those that still have one to
# $kept: a webhook or policy of others may deny each change of an object. An object that was deleted meanwhile is no error.
# Those of $still_held keep them.
still_held='[]'
unmark() {
  local resource=$1 part=$2 patch names namespace name
  patch=$(printf '%s\n' "${@:3}" | jq -cRn --arg part "$part" '{metadata: {($part): [inputs | {(.): null}] | add}}')
  marked "$resource" "$part" "$patch" "$still_held" | while IFS=$'\t' read -r names namespace; do
    { xargs kubectl patch "$resource" -n "$namespace" --type merge -p "$patch" <<<"$names" 2>&1 >/dev/null || true; } | sed '/(NotFound)/d' >&2
  done
  kept+=$(marked "$resource" "$part" "$patch" '[]' | while IFS=$'\t' read -r names namespace; do
    for name in $names; do echo "$part of $resource ${namespace:+$namespace/}$name"; done
  done)$'\n'
}
# Lists the orders that are open at the AlterShield server: id, release and page.
open_orders() {
  ! of change || ! has "$releases" || kubectl get "$releases" -A -o 'jsonpath={.items[*]}' | jq -rs 'map(select(.status.order | .openedTime and (.closing.answeredTime | not)) |
    "  order \(.status.order.id) of \(.metadata.namespace)/\(.metadata.name) \(.status.order.url // "")") |
    select(length > 0) | "\(length) orders stay open at the AlterShield server, because nothing closes them any more:", .[]'
}
suspended() { ! of change || maybe get "$releases" -A --no-headers -o custom-columns=:.metadata.namespace,:.metadata.name,:.status.status | awk '$3 == "Suspend" {print "  " $1 "/" $2}'; }
guards=validatingwebhookconfigurations,mutatingwebhookconfigurations,validatingadmissionpolicies,validatingadmissionpolicybindings
cluster=$guards,clusterroles,clusterrolebindings,flowschemas,prioritylevelconfigurations,priorityclasses
# The CRD of budgets may be that of OpenKruise, which has no field spec.shadow.
crds() {
  kubectl get crds -o jsonpath="{range .items[*]}{.metadata.name}{'\t'}{.spec.group}{'\t'}{.spec.versions[*].schema.openAPIV3Schema.properties.spec.properties.shadow.type}{'\n'}{end}" |
    awk -F '\t' -v part="$part" '
      part ~ /^(change)?$/ && ($2 == "app.ops.cloud.alipay.com" || $2 == "judge.breakwater.dev") {print $1}
      part ~ /^(protection)?$/ && $2 == "policy.kruise.io" && $3 != "" {print $1}'
}
# The kinds of the objects in the namespace. Not every cluster has those of Knative.
in_namespace="configmaps,secrets,services,serviceaccounts,persistentvolumeclaims,poddisruptionbudgets.policy,networkpolicies.networking.k8s.io
  brokers.eventing.knative.dev eventtypes.eventing.knative.dev eventpolicies.eventing.knative.dev rabbitmqbrokerconfigs.eventing.knative.dev"
# Lists the objects of the part in the namespace; without a part, the namespace.
local_objects() {
  local kinds
  [[ -n $part ]] || { maybe get namespace "$ns" -o name --ignore-not-found; return; }
  for kinds in $in_namespace; do maybe get "$kinds" -n "$ns" -l "$ours" -o name; done
}

if ! $yes; then
  echo "On $(kubectl config current-context), --yes would remove:"
  maybe get "$cluster" -l "$ours" -o name
  crds | sed 's/$/, with all its objects/'
  if [[ -z $part ]]; then
    echo "namespace $ns, with everything in it: settings, secrets, and the database of the permission centre"
  else
    echo "in namespace $ns, which stays, processes and:"
    local_objects
  fi
  ! of permission || echo "the finalizer of $(finalized | grep -c ^pods) pods, whose permissions stay granted at their providers"
  of change || exit 0
  open_orders
  echo "Held rollouts (--resume resumes them):"
  held | awk -F '\t' '{print "  " $1 " " $2 "/" $3}'
  others=$(held_of_other_kinds)
  if [[ -n $others ]]; then
    echo "Held workloads of other kinds, which are an error also with --resume:"
    awk -F '\t' '{print "  " $1 " " $2 "/" $3}' <<<"$others"
  fi
  exit 0
fi

say "cluster of context $(kubectl config current-context)"
holds=$(held)
others=$(held_of_other_kinds)
suspensions=$(suspended)
if [[ -n $others ]] || { ! $resume && [[ -n $holds$suspensions ]]; }; then
  {
    echo "Releases are held or suspended, because a check failed or is missing:"
    awk -F '\t' 'NF {print "  " $1 " " $2 "/" $3}' <<<"$holds"$'\n'"$others"
    [[ -z $suspensions ]] || echo "$suspensions"
    echo "Repair or roll them back first, or pass --resume, which resumes their rollouts."
    [[ -z $others ]] || echo "--resume does not resume kinds of config-workloads ($(cut -f 1 <<<"$others" | sort -u | paste -sd ' ' -)): repair or roll them back, or resume them by hand."
  } >&2
  exit 1
fi

# kept is what could not be changed.
kept=
# Lists what is left.
list_left() {
  local names='jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{"\n"}{end}'
  maybe get "$cluster" -l "$ours" -o name
  maybe get rolebindings,roles -A -l "$ours" -o "$names"
  ! of change || maybe get controllerrevisions.apps -A -l "$saved" -o "$names"
  ! of protection || maybe get poddisruptionbudgets.policy -A -l "$generated" -o "$names"
  crds
  local_objects
  finalized
  sed '/^$/d' <<<"$kept"
}
not_removed() { printf 'Not removed:\n%s\n' "$1" >&2; }
# Ends the script if the next step would do harm, and says why.
stop() {
  not_removed "$(list_left)"
  echo "$1: see to it that the deletion is allowed, and run this again." >&2
  exit 1
}

say "webhooks and policies"
remove "$guards" -l "$ours" || stop "Webhooks deny requests when their processes are missing"

say "processes"
reason="Processes write finalizers and labels again while they run"
for kind in triggers.eventing.knative.dev services.serving.knative.dev deployments.apps; do
  remove "$kind" -n "$ns" -l "$ours" || stop "$reason"
done
maybe wait -n "$ns" --for=delete pods -l "$ours" --timeout=3m || stop "$reason"

say "finalizers"
open_orders
# What is denied is listed below.
finalized | while IFS=$'\t' read -r resource namespace name rest; do
  maybe patch "$resource" -n "$namespace" "$name" --type merge -p "{\"metadata\":{\"finalizers\":$rest}}" || true
done

say "held rollouts"
kept=$(held | while IFS=$'\t' read -r kind namespace name patch; do
  [[ -n $patch ]] || continue
  [[ $kind != Service ]] || kind=services.serving.knative.dev
  maybe patch "$kind" -n "$namespace" "$name" --type merge -p "$patch" >&2 || echo "hold of $kind $namespace/$name"
done)$'\n'
# Without its annotations, a rollout could not be resumed when this is repeated.
still_held=$(held | jq -cRn '[inputs | split("\t") | select((.[3] // "") != "")
  | "\(if .[0] == "Service" then "services.serving.knative.dev" else (.[0] | ascii_downcase) + "s.apps" end)/\(.[1])/\(.[2])"]')

say "labels and annotations"
# Workloads first: the Deployment controller copies their annotations to ReplicaSets. The annotations
# on the template of a Knative Service stay: without them Serving would create a Revision.
version=admission-webhook-altershield.antgroup.com/version
annotations=("$version" admission-webhook-altershield.antgroup.com/attempt "$app/bypass" "$app/hold" "$app/rollback" "$app/rollback-request" "$app/replay-request")
! of change || for resource in ${workloads//,/ }; do
  unmark "$resource" annotations "${annotations[@]}"
  unmark "$resource" labels "$version" "$app/defense-status" "$app/suspend" "$app/ignored-suspend"
done
still_held='[]'
if of change; then
  for resource in replicasets.apps controllerrevisions.apps; do unmark "$resource" annotations "${annotations[@]}"; done
  unmark pods labels "$app/operate-finished"
  remove controllerrevisions.apps -A -l "$saved" || true
fi
if of protection; then
  unmark namespaces labels policy.breakwater.dev/guarded
  remove poddisruptionbudgets.policy -A -l "$generated" || true
fi

say "objects, CRDs, RBAC and ${part:+objects of the }namespace"
# What these leave is listed below.
for crd in $(crds); do
  # If another write of its status comes between, the API server goes on with the deletion only when the CRD changes.
  remove crd "$crd" --timeout=30s 2>/dev/null && continue
  [[ -z $(maybe get crd "$crd" -o 'jsonpath={.metadata.deletionTimestamp}') ]] ||
    maybe annotate crd "$crd" "$app/deletion-continued=$(date +%s)" --overwrite || true
  remove crd "$crd" || true
done
remove rolebindings,roles -A -l "$ours" || true
# FlowSchemas are deleted before the priority level that they name.
for kind in flowschemas prioritylevelconfigurations priorityclasses clusterrolebindings clusterroles; do
  remove "$kind" -l "$ours" || true
done
if [[ -z $part ]]; then
  remove namespace "$ns" || true
else
  for kinds in $in_namespace; do remove "$kinds" -n "$ns" -l "$ours" || true; done
fi

# Bash switches -e off in $(…), and a failed list would count as an empty one.
left=$(set -e; list_left)
if [[ -n $left ]]; then
  not_removed "$left"
  # For example an APIService that does not answer.
  [[ $left != *"namespace/$ns"* ]] || kubectl get namespace "$ns" -o 'jsonpath={range .status.conditions[?(@.status=="True")]}{.message}{"\n"}{end}' >&2
  exit 1
fi
echo "${part:+Part $part of }Breakwater is removed. Labels and annotations that are not about releases were kept, for example the opt-in label of namespaces."
! of permission || echo "Pods that Breakwater injected keep their init container: restart their workloads."
