package protection

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/breakwater-dev/breakwater/admission/admissiontest"
	"github.com/breakwater-dev/breakwater/admission/protection/budget"
	"github.com/breakwater-dev/breakwater/admission/protection/deletionflow"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// These tests evaluate the matchConditions of the manifests as the API server of
// Kubernetes 1.30 does.

type object = map[string]any

const (
	alice      = "alice"
	namespaces = "system:serviceaccount:kube-system:namespace-controller"
	node       = "system:node:node-1"
	cronJobs   = "system:serviceaccount:kube-system:cronjob-controller"
	manager    = "system:kube-controller-manager"
	garbage    = "system:serviceaccount:kube-system:generic-garbage-collector"
	serving    = "system:serviceaccount:knative-serving:controller"
	kubeSystem = "system:serviceaccount:kube-system:"
)

// pod returns a pod as the API server sends it.
func pod(change func(metadata, spec, status object)) object {
	metadata := object{"name": "web-1", "labels": object{"app": "web"}}
	spec := object{"containers": []any{object{"name": "web", "image": "web:1"}}}
	status := object{"phase": "Running"}
	if change != nil {
		change(metadata, spec, status)
	}
	return object{"metadata": metadata, "spec": spec, "status": status}
}

func request(operation, resource, sub, user string) object {
	group := map[string]string{"endpointslices": "discovery.k8s.io"}[resource] // no condition reads the others
	r := object{"operation": operation, "resource": object{"group": group, "resource": resource}, "userInfo": object{"username": user}, "dryRun": false}
	if sub != "" {
		r["subResource"] = sub
	}
	return r
}

func TestWhichRequestsAboutPodsReachTheWebhook(t *testing.T) {
	terminating := pod(func(m, _, _ object) { m["deletionTimestamp"] = "2026-01-01T00:00:00Z" })
	bare := pod(func(m, _, s object) { delete(m, "labels"); delete(s, "phase") })
	probe := request("UPDATE", "podunavailablebudgets", "", alice)
	probe["dryRun"] = true
	annotated := object{"metadata": object{"annotations": object{"policy.breakwater.dev/probe": "7"}}}
	conditions := func(pairs ...string) object {
		return pod(func(_, _, s object) {
			var all []any
			for i := 0; i < len(pairs); i += 2 {
				all = append(all, object{"type": pairs[i], "status": pairs[i+1]})
			}
			s["conditions"] = all
		})
	}
	const gate = "InPlaceUpdateReady"
	for name, tc := range map[string]struct {
		request  object
		old, new any
		want     bool
	}{
		"a status without conditions":            {request("UPDATE", "pods", "status", alice), pod(nil), bare, true}, // labels are removed
		"a status that nothing changes":          {request("UPDATE", "pods", "status", alice), pod(nil), pod(nil), false},
		"a status of labels":                     {request("UPDATE", "pods", "status", alice), pod(nil), pod(func(m, _, _ object) { m["labels"] = object{} }), true},
		"a pod becomes Ready":                    {request("UPDATE", "pods", "status", alice), conditions(gate, "False", "Ready", "False"), conditions(gate, "True", "Ready", "True"), false},
		"a pod is not Ready anymore":             {request("UPDATE", "pods", "status", alice), conditions(gate, "True", "Ready", "True"), conditions(gate, "True", "Ready", "False"), false},
		"an update in place begins":              {request("UPDATE", "pods", "status", alice), conditions(gate, "True", "Ready", "True"), conditions(gate, "False", "Ready", "False"), true},
		"its readiness gate is removed":          {request("UPDATE", "pods", "status", alice), conditions(gate, "True", "Ready", "True"), conditions("Ready", "True"), true},
		"an update in place continues":           {request("UPDATE", "pods", "status", alice), conditions(gate, "False"), conditions(gate, "False", "Ready", "False"), false},
		"OpenKruise makes a pod unready":         {request("UPDATE", "pods", "status", alice), conditions("KruisePodReady", "True"), conditions("KruisePodReady", "False"), true},
		"a kubelet reports the readiness gate":   {request("UPDATE", "pods", "status", node), conditions(gate, "True"), conditions(gate, "False"), false},
		"another readiness gate is not met":      {request("UPDATE", "pods", "status", alice), conditions("lb", "True"), conditions("lb", "False"), false},
		"a deletion":                             {request("DELETE", "pods", "", alice), pod(nil), nil, true},
		"a deletion of a pod without anything":   {request("DELETE", "pods", "", alice), bare, nil, true},
		"a deletion of a terminating pod":        {request("DELETE", "pods", "", alice), terminating, nil, false},
		"a deletion by a kubelet":                {request("DELETE", "pods", "", node), pod(nil), nil, false},
		"a deletion by the namespace controller": {request("DELETE", "pods", "", namespaces), pod(nil), nil, false},
		"a deletion of a pod that succeeded":     {request("DELETE", "pods", "", alice), pod(func(_, _, s object) { s["phase"] = "Succeeded" }), nil, false},
		"a deletion of a pod that failed":        {request("DELETE", "pods", "", alice), pod(func(_, _, s object) { s["phase"] = "Failed" }), nil, false},
		"an eviction":                            {request("CREATE", "pods", "eviction", alice), nil, object{"metadata": object{"name": "web-1"}}, true},
		"a resize":                               {request("UPDATE", "pods", "resize", alice), pod(nil), pod(nil), true},
		"a resize of a terminating pod":          {request("UPDATE", "pods", "resize", alice), terminating, terminating, false},
		"an update that changes nothing":         {request("UPDATE", "pods", "", alice), pod(nil), pod(nil), false},
		"an update of annotations":               {request("UPDATE", "pods", "", alice), pod(nil), pod(func(m, _, _ object) { m["annotations"] = object{"a": "b"} }), false},
		"an update of no-protect":                {request("UPDATE", "pods", "", alice), pod(nil), pod(func(m, _, _ object) { m["annotations"] = object{"pub.kruise.io/no-protect": "true"} }), true},
		"an update of labels":                    {request("UPDATE", "pods", "", alice), pod(nil), pod(func(m, _, _ object) { m["labels"] = object{"app": "db"} }), true},
		"an update that removes the owner":       {request("UPDATE", "pods", "", alice), pod(func(m, _, _ object) { m["ownerReferences"] = []any{object{"name": "web"}} }), pod(nil), true},
		"an update that removes the labels":      {request("UPDATE", "pods", "", alice), pod(nil), pod(func(m, _, _ object) { delete(m, "labels") }), true},
		"an update of an image":                  {request("UPDATE", "pods", "", alice), pod(nil), pod(func(_, s, _ object) { s["containers"] = []any{object{"name": "web", "image": "web:2"}} }), true},
		"an update of a sidecar's image":         {request("UPDATE", "pods", "", alice), pod(nil), pod(func(_, s, _ object) { s["initContainers"] = []any{object{"name": "mesh", "image": "mesh:2"}} }), true},
		"a probe":                                {probe, object{"metadata": object{}}, annotated, true},
		"an update of a budget that is no probe": {request("UPDATE", "podunavailablebudgets", "", alice), object{"metadata": object{}}, annotated, false},
		"a dry run of a budget that is no probe": {probe, object{"metadata": object{}}, object{"metadata": object{}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			match(t, budget.PodWebhook, object{"request": tc.request, "object": tc.new, "oldObject": tc.old}, tc.want)
		})
	}
}

func TestWhichDeletionsOfOwnersReachTheWebhook(t *testing.T) {
	owned := func(controller bool) object {
		return object{"metadata": object{"name": "web-1", "ownerReferences": []any{object{"name": "web", "controller": controller}}}}
	}
	terminating := owned(true)
	terminating["metadata"].(object)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	const deployments = kubeSystem + "deployment-controller"
	for name, tc := range map[string]struct {
		user string
		old  object
		want bool
	}{
		"of a Deployment":                        {alice, owned(true), true},
		"the topmost":                            {alice, object{"metadata": object{"name": "web"}}, false},
		"with an owner without controller":       {alice, owned(false), false},
		"terminating":                            {alice, terminating, false},
		"by the namespace controller":            {namespaces, owned(true), false},
		"with pods":                              {deployments, replicaSet(nil), true},
		"whose pods do not exist yet":            {alice, replicaSet(func(_, _, st object) { st["replicas"] = 0 }), true},
		"scaled to 0, with pods":                 {alice, replicaSet(func(_, s, _ object) { s["replicas"] = 0 }), true},
		"scaled to 0":                            {alice, replicaSet(func(_, s, st object) { s["replicas"], st["replicas"] = 0, 0 }), false},
		"scaled to 0, by the Deployment":         {deployments, replicaSet(func(_, s, st object) { s["replicas"], st["replicas"] = 0, 0 }), false},
		"without a number of replicas or status": {alice, replicaSet(func(_, s, st object) { delete(s, "replicas"); delete(st, "replicas") }), true},
	} {
		t.Run(name, func(t *testing.T) {
			match(t, budget.OwnerWebhook, object{"request": request("DELETE", "replicasets", "", tc.user), "object": nil, "oldObject": tc.old}, tc.want)
		})
	}
}

// Only ReplicaSets are exempt while they have no pods: other kinds have other fields.
func TestADeletionOfAnotherOwnerScaledToZeroReachesTheWebhook(t *testing.T) {
	for _, resource := range []string{"clonesets", "daemonsets", "deployments", "jobs", "replicationcontrollers", "revisions", "statefulsets"} {
		old := replicaSet(func(_, s, st object) { s["replicas"], st["replicas"] = 0, 0 })
		match(t, budget.OwnerWebhook, object{"request": request("DELETE", resource, "", alice), "object": nil, "oldObject": old}, true)
	}
}

// The controller of CronJobs deletes finished Jobs, and with concurrencyPolicy Replace a running
// one, also while the webhook is down.
func TestWhichDeletionsOfJobsReachTheWebhook(t *testing.T) {
	for name, tc := range map[string]struct {
		user, resource string
		status         object
		want           bool
	}{
		"new":                           {alice, "jobs", nil, true},
		"active":                        {alice, "jobs", object{"active": 1}, true},
		"suspended":                     {alice, "jobs", object{"conditions": []any{object{"type": "Suspended", "status": "True"}}}, true},
		"not complete":                  {alice, "jobs", object{"conditions": []any{object{"type": "Complete", "status": "False"}}}, true},
		"complete":                      {alice, "jobs", object{"conditions": []any{object{"type": "Complete", "status": "True"}}}, false},
		"failed":                        {alice, "jobs", object{"conditions": []any{object{"type": "Suspended", "status": "False"}, object{"type": "Failed", "status": "True"}}}, false},
		"a condition of another kind":   {alice, "clonesets", object{"conditions": []any{object{"type": "Failed", "status": "True"}}}, true},
		"another kind with a condition": {alice, "daemonsets", object{"conditions": "none"}, true},
		"replaced by its CronJob":       {cronJobs, "jobs", object{"active": 1}, false},
		"replaced by its CronJob, without an account per controller": {manager, "jobs", object{"active": 1}, false},
		"of another kind by the controller of CronJobs":              {cronJobs, "replicasets", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			job := object{"metadata": object{"name": "web-1", "ownerReferences": []any{object{"name": "web", "controller": true}}}}
			if tc.status != nil {
				job["status"] = tc.status
			}
			match(t, budget.OwnerWebhook, object{"request": request("DELETE", tc.resource, "", tc.user), "object": nil, "oldObject": job}, tc.want)
		})
	}
}

func TestWhichDeletionsReachFlowControl(t *testing.T) {
	terminating := pod(func(m, _, _ object) { m["deletionTimestamp"] = "2026-01-01T00:00:00Z" })
	shop := object{"metadata": object{"name": "shop"}, "status": object{"phase": "Active"}}
	going := object{"metadata": object{"name": "shop", "deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": object{"phase": "Terminating"}}
	for name, tc := range map[string]struct {
		request object
		old     any
		want    bool
	}{
		"a deletion":                             {request("DELETE", "pods", "", alice), pod(nil), true},
		"a deletion of a pod without status":     {request("DELETE", "pods", "", alice), object{"metadata": object{"name": "a"}}, true},
		"a deletion of a terminating pod":        {request("DELETE", "pods", "", alice), terminating, false},
		"a deletion of a pod that failed":        {request("DELETE", "pods", "", alice), pod(func(_, _, s object) { s["phase"] = "Failed" }), false},
		"a deletion by a kubelet":                {request("DELETE", "pods", "", node), pod(nil), false},
		"a deletion by the namespace controller": {request("DELETE", "pods", "", namespaces), pod(nil), false},
		"an eviction":                            {request("CREATE", "pods", "eviction", alice), nil, true},
		"a namespace":                            {request("DELETE", "namespaces", "", alice), shop, true},
		"a terminating namespace":                {request("DELETE", "namespaces", "", alice), going, false},
	} {
		webhook := deletionflow.Webhook
		if tc.request["resource"].(object)["resource"] == "namespaces" {
			webhook = deletionflow.NamespaceWebhook
		}
		t.Run(name, func(t *testing.T) {
			match(t, webhook, object{"request": tc.request, "object": nil, "oldObject": tc.old}, tc.want)
		})
	}
}

// An object with the label of its workload's pod template does not block the deletion of the workload
// after that was allowed. Nobody but the garbage collector deletes it, and the garbage collector deletes
// no workload of an owner that these labels do not protect.
func TestWhichDeletionsOfProtectedObjectsAreDecided(t *testing.T) {
	const replicas, always = "200-cascading-deletion-replicas.yaml", "202-delete-protection-always.yaml"
	owner := func(apiVersion, kind string, controller bool) object {
		return object{"metadata": object{"name": "web-1", "ownerReferences": []any{object{"apiVersion": apiVersion, "kind": kind, "name": "web", "controller": controller}}}}
	}
	ofDeployment := owner("apps/v1", "Deployment", true)
	for name, tc := range map[string]struct {
		policy, resource, user string
		old                    object
		want                   bool
	}{
		"a ReplicaSet with its Deployment":                                         {replicas, "replicasets", garbage, ofDeployment, false},
		"a ReplicaSet with its Deployment, without an account per controller":      {replicas, "replicasets", manager, ofDeployment, false},
		"a ReplicaSet by a user":                                                   {replicas, "replicasets", alice, ofDeployment, true},
		"a ReplicaSet by another controller":                                       {replicas, "replicasets", cronJobs, ofDeployment, true},
		"a ReplicaSet without a controller":                                        {replicas, "replicasets", garbage, object{"metadata": object{"name": "web-1"}}, true},
		"a ReplicaSet with an owner that is no controller":                         {replicas, "replicasets", garbage, owner("apps/v1", "Deployment", false), true},
		"a ReplicaSet of a custom resource":                                        {replicas, "replicasets", garbage, owner("example.com/v1", "Deployment", true), true},
		"a Deployment of a custom resource":                                        {replicas, "deployments", garbage, owner("example.com/v1", "App", true), true},
		"a Deployment of a Deployment":                                             {replicas, "deployments", garbage, ofDeployment, true},
		"always: a ReplicaSet with its Deployment":                                 {always, "replicasets", garbage, ofDeployment, false},
		"always: a pod with its StatefulSet":                                       {always, "pods", garbage, owner("apps/v1", "StatefulSet", true), false},
		"always: a pod with its Job":                                               {always, "pods", garbage, owner("batch/v1", "Job", true), false},
		"always: a ControllerRevision with its DaemonSet":                          {always, "controllerrevisions", garbage, owner("apps/v1", "DaemonSet", true), false},
		"always: a pod by a user":                                                  {always, "pods", alice, owner("apps/v1", "StatefulSet", true), true},
		"always: a pod by a controller, without an account per controller":         {always, "pods", manager, owner("apps/v1", "StatefulSet", true), true},
		"always: a pod with its ReplicationController":                             {always, "pods", garbage, owner("v1", "ReplicationController", true), false},
		"always: a pod of a ConfigMap":                                             {always, "pods", garbage, owner("v1", "ConfigMap", true), true},
		"always: a pod of a custom resource":                                       {always, "pods", garbage, owner("example.com/v1", "App", true), true},
		"always: a pod without a controller":                                       {always, "pods", garbage, object{"metadata": object{"name": "web-1"}}, true},
		"always: a PersistentVolumeClaim that is to be deleted with a StatefulSet": {always, "persistentvolumeclaims", garbage, owner("apps/v1", "StatefulSet", true), true},
		"always: an EndpointSlice by its controller":                               {always, "endpointslices", kubeSystem + "endpointslice-controller", owner("v1", "Service", true), false},
		"always: an EndpointSlice, without an account per controller":              {always, "endpointslices", manager, owner("v1", "Service", true), false},
		"always: an EndpointSlice with its Service":                                {always, "endpointslices", garbage, owner("v1", "Service", true), false},
		"always: a mirrored EndpointSlice":                                         {always, "endpointslices", kubeSystem + "endpointslicemirroring-controller", owner("v1", "Endpoints", true), false},
		"always: the Endpoints of a Service":                                       {always, "endpoints", kubeSystem + "endpoint-controller", object{"metadata": object{"name": "web"}}, false},
		"always: an EndpointSlice with its Endpoints":                              {always, "endpointslices", garbage, owner("v1", "Endpoints", true), false},
		"always: an EndpointSlice of a custom resource":                            {always, "endpointslices", garbage, owner("example.com/v1", "App", true), true},
		"always: the Configuration of a Knative Service":                           {always, "configurations", garbage, owner("serving.knative.dev/v1", "Service", true), false},
		"always: the Route of a Knative Service":                                   {always, "routes", garbage, owner("serving.knative.dev/v1", "Service", true), false},
		"always: the Ingress of a Route":                                           {always, "ingresses", garbage, owner("serving.knative.dev/v1", "Route", true), false},
		"always: the Deployment of a Revision":                                     {always, "deployments", garbage, owner("serving.knative.dev/v1", "Revision", true), false},
		"always: the Service of a ServerlessService":                               {always, "services", garbage, owner("networking.internal.knative.dev/v1alpha1", "ServerlessService", true), false},
		"always: the Route of a Knative Service by a user":                         {always, "routes", alice, owner("serving.knative.dev/v1", "Service", true), true},
		"always: an EndpointSlice by a user":                                       {always, "endpointslices", alice, owner("v1", "Service", true), true},
		"always: a Service by a controller of endpoints":                           {always, "services", kubeSystem + "endpointslice-controller", object{"metadata": object{"name": "web"}}, true},
		"always: the Service of a tag by Serving":                                  {always, "services", serving, owner("serving.knative.dev/v1", "Route", true), false},
		"always: the Service of a tag with its Route":                              {always, "services", garbage, owner("serving.knative.dev/v1", "Route", true), false},
		"always: the Service of a tag by a user":                                   {always, "services", alice, owner("serving.knative.dev/v1", "Route", true), true},
		"always: another Service by Serving":                                       {always, "services", serving, object{"metadata": object{"name": "web"}}, true},
		"always: a Route by Serving":                                               {always, "routes", serving, owner("serving.knative.dev/v1", "Service", true), true},
		"always: a Service of a custom resource":                                   {always, "services", garbage, owner("example.com/v1", "App", true), true},
	} {
		t.Run(name, func(t *testing.T) {
			policy := builder.Manifests[admissionregistrationv1.ValidatingAdmissionPolicy](t, manifests+tc.policy)[0]
			vars := object{"request": request("DELETE", tc.resource, "", tc.user), "object": nil, "oldObject": tc.old}
			if got := admissiontest.Matches(t, policy.Spec.MatchConditions, vars); got != tc.want {
				t.Errorf("decided: %v, want %v", got, tc.want)
			}
		})
	}
}

// replicaSet returns a ReplicaSet of Deployment web.
func replicaSet(change func(metadata, spec, status object)) object {
	metadata := object{"name": "web-1", "labels": object{"app": "web"}, "ownerReferences": []any{
		object{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "uid-d", "controller": true}}}
	spec, status := object{"replicas": 3, "selector": object{"matchLabels": object{"app": "web"}}}, object{"replicas": 3}
	if change != nil {
		change(metadata, spec, status)
	}
	return object{"metadata": metadata, "spec": spec, "status": status}
}

// A budget keeps pods of a ReplicaSet that is scaled to 0: the rollout of a Deployment or a person scaled
// it down. Its pods must not leave the budget until they terminate.
func TestWhichUpdatesOfReplicaSetsMayTakePodsOutOfABudget(t *testing.T) {
	orphaned := replicaSet(func(m, _, _ object) { delete(m, "ownerReferences") })
	for name, tc := range map[string]struct {
		user     string
		old, new object
		want     bool
	}{
		"with pods":                           {alice, replicaSet(nil), orphaned, true},
		"with pods, of labels":                {alice, replicaSet(nil), replicaSet(func(m, _, _ object) { m["labels"] = object{"app": "db"} }), true},
		"without a number of replicas":        {alice, replicaSet(func(_, s, _ object) { delete(s, "replicas") }), orphaned, true},
		"whose pods do not exist yet":         {alice, replicaSet(func(_, _, s object) { s["replicas"] = 0 }), orphaned, true},
		"scaled to 0, with pods":              {alice, replicaSet(func(_, s, _ object) { s["replicas"] = 0 }), orphaned, true},
		"scaled to 0":                         {alice, replicaSet(func(_, s, st object) { s["replicas"], st["replicas"] = 0, 0 }), orphaned, false},
		"scaled to 0, without a status":       {alice, replicaSet(func(_, s, st object) { s["replicas"] = 0; delete(st, "replicas") }), orphaned, false},
		"terminating":                         {alice, replicaSet(func(m, _, _ object) { m["deletionTimestamp"] = "2026-01-01T00:00:00Z" }), orphaned, false},
		"terminating, scaled to 0, with pods": {alice, replicaSet(func(m, s, _ object) { m["deletionTimestamp"], s["replicas"] = "2026-01-01T00:00:00Z", 0 }), orphaned, false},
		"without a controller":                {alice, orphaned, replicaSet(nil), false},
		"that changes only the replicas":      {alice, replicaSet(nil), replicaSet(func(_, s, _ object) { s["replicas"] = 0 }), false},
		"that changes only the status":        {alice, replicaSet(nil), replicaSet(func(_, _, st object) { st["replicas"] = 0 }), false},
		"that removes the labels":             {alice, replicaSet(nil), replicaSet(func(m, _, _ object) { delete(m, "labels") }), true},
		"by the garbage collector":            {garbage, replicaSet(nil), orphaned, false},
		"by the controller of Deployments":    {kubeSystem + "deployment-controller", replicaSet(nil), orphaned, false},
		"without an account per controller":   {manager, replicaSet(nil), orphaned, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, sub := range []string{"", "status"} {
				match(t, budget.OwnerWebhook, object{"request": request("UPDATE", "replicasets", sub, tc.user), "object": tc.new, "oldObject": tc.old}, tc.want)
			}
		})
	}
}

// match evaluates all conditions of a webhook. An error fails the test, because it
// would deny a request.
func match(t *testing.T, webhook string, vars object, want bool) {
	t.Helper()
	got := true
	for _, w := range webhooks(t) {
		if w.Name == webhook {
			got = got && admissiontest.Matches(t, w.MatchConditions, vars)
		}
	}
	if got != want {
		t.Errorf("matched: %v, want %v", got, want)
	}
}
