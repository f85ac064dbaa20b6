//go:build e2e || controlplane

package protection

import (
	"fmt"
	"strings"
	"testing"
)

const (
	disableCascadingLabel = "policy.kruise.io/disable-cascading-deletion"
	deleteProtectionLabel = "policy.kruise.io/delete-protection"
)

// protectedDeployment is a protected Deployment of three simulated pods.
const protectedDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {` + disableCascadingLabel + `: "true"}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: ` + simulatedPodSpec

// simulatedPodSpec is the spec of a pod on a simulated node.
const simulatedPodSpec = `{nodeSelector: {type: kwok}, tolerations: [{key: kwok.x-k8s.io/node, operator: Exists, effect: NoSchedule}],
      terminationGracePeriodSeconds: 0, restartPolicy: Always, containers: [{name: sleep, image: busybox}]}`

// protectedWorkload returns a workload of another kind with the same template.
func protectedWorkload(kind, apiVersion, spec string) string {
	return fmt.Sprintf(`
apiVersion: %s
kind: %s
metadata:
  name: web
  labels: {%s: "true"}
spec:
  %s
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: %s`, apiVersion, kind, disableCascadingLabel, spec, simulatedPodSpec)
}

// The deletion of each kind is denied while it has or wants pods, and admitted
// without pods.
func TestAProtectedWorkloadIsNotDeletedWhileItHasPods(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ kind, manifest, pods string }{
		{"deployments.apps", protectedDeployment, "3 pods would be deleted with it"},
		{"statefulsets.apps", protectedWorkload("StatefulSet", "apps/v1", "replicas: 2\n  serviceName: web"), "2 pods would be deleted with it"},
		{"replicasets.apps", protectedWorkload("ReplicaSet", "apps/v1", "replicas: 1"), "1 pod would be deleted with it"},
		{"replicationcontrollers", strings.Replace(protectedWorkload("ReplicationController", "v1", "replicas: 2"),
			"selector: {matchLabels: {app: web}}", "selector: {app: web}", 1), "2 pods would be deleted with it"},
	} {
		t.Run(tc.kind, func(t *testing.T) {
			t.Parallel()
			n := newNamespace(t)
			n.apply(t, tc.manifest)
			n.checkEveryDeletionDenied(t, tc.pods, tc.kind)
			n.run(t, "scale", tc.kind, "web", "--replicas=0")
			n.run(t, "delete", tc.kind, "web", "--timeout=60s")
		})
	}
}

// checkEveryDeletionDenied fails unless each way to delete web that would delete its pods is denied.
func (n *namespace) checkEveryDeletionDenied(t *testing.T, message, kind string) {
	t.Helper()
	for _, flags := range [][]string{{}, {"--cascade=foreground"}, {"--cascade=background"}, {"--dry-run=server"}, {"--force", "--grace-period=0"}} {
		n.checkDenied(t, message, append([]string{"delete", kind, "web", "--wait=false"}, flags...)...)
	}
	n.checkDenied(t, message, "delete", kind, "--all", "--wait=false")
	n.checkDenied(t, message, "delete", "--raw", n.path(kind)) // deletecollection
}
