//go:build controlplane

package change

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// garbageCollector is the user that deletes the ChangePods of a deleted ChangeWorkload.
// With the default settings of the controller manager it needs minutes for a thousand.
const garbageCollector = "system:serviceaccount:kube-system:generic-garbage-collector"

func TestARollbackDoesNotWaitForTheGarbageCollector(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create(t, workload.Deployment, builder.Deployment("web", 3, builder.Simulated, builder.Paced(1), builder.Release("v1")))
	w.awaitPhase(t, v1alpha1.ReleaseSuccess, 1)
	f.deny(t, changePods, "DELETE", "request.userInfo.username != '"+garbageCollector+"'",
		"delete", "changepod", w.awaitBatch(t, 1).Name, "--as", garbageCollector)

	w.mustPatch(t, releaseOf("v2"))
	w.awaitBatch(t, 2)
	w.mustPatch(t, releaseOf("v1"))
	c := w.awaitPhase(t, v1alpha1.ReleaseSuccess, 3)
	if got := c.Status.Counts; got.Passed != 3 {
		t.Errorf("counts %+v, want 3 judged pods", got)
	}
	// The ChangeWorkload of v2 stays for 10 minutes: no Broker accepts its announcements.
	await(t, "the ChangePods of deleted releases are deleted", func(ctx context.Context) error {
		api := w.Breakwater.AppV1alpha1()
		pods, err := api.ChangePods(w.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		releases, err := api.ChangeWorkloads(w.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range pods.Items {
			p := &pods.Items[i]
			if !slices.ContainsFunc(releases.Items, func(c v1alpha1.ChangeWorkload) bool { return metav1.IsControlledBy(p, &c) }) {
				err = errors.Join(err, fmt.Errorf("%s has the owners %v", p.Name, p.OwnerReferences))
			}
		}
		return err
	})
}

// A batch that cannot be created, for whatever reason, does not delay the verdicts of others.
func TestTheStatusIsWrittenWhileABatchCannotBeCreated(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.deny(t, changePods, "CREATE", "object.metadata.name.endsWith('--1')", "create", "-f", "-")
	w := f.create(t, workload.Deployment, builder.Deployment("web", 3, builder.Simulated))
	await(t, "the first batch is counted", func(ctx context.Context) error {
		c, err := w.release(ctx)
		if err == nil && (c.Status.Counts.Passed != 1 || c.Status.Phase == v1alpha1.ReleaseSuccess) {
			err = fmt.Errorf("%s with %+v", c.Status.Phase, c.Status.Counts)
		}
		return err
	})
}

// Those who write workloads may be restricted, for example to the deployer. The policy denies with reason Invalid.
func TestTheVerdictIsRecordedWhileTheHoldIsDenied(t *testing.T) {
	t.Parallel()
	const controller = "system:serviceaccount:altershieldoperator-system:controller"
	f := newFixture(t)
	w := f.create(t, workload.Deployment, builder.Deployment("web", replicas, builder.Simulated, builder.Paced(1)))
	w.awaitPhase(t, v1alpha1.ReleaseSuccess, 1)
	allow := f.deny(t, schema.GroupResource{Group: "apps", Resource: "deployments"}, "UPDATE", "request.userInfo.username != '"+controller+"'",
		"label", "deployment", w.name, v1alpha1.SuspendLabel+"=1", "--as", controller)
	w.mustPatch(t, standingReleaseOf("v2"))
	w.judge(t, w.awaitBatch(t, 2), "unpass")
	c := w.awaitPhase(t, v1alpha1.ReleaseSuspend, 2)
	if held := c.Status.GetCondition(v1alpha1.ReleaseHeld); held.GetReason() != v1alpha1.ReasonWorkloadUnchanged || !strings.Contains(held.GetMessage(), "denied by the test") {
		t.Errorf("condition Held is %+v", held)
	}
	allow()
	w.awaitHeld(t)
}

// changePods is the resource of ChangePods.
var changePods = v1alpha1.SchemeGroupVersion.WithResource("changepods").GroupResource()

// policy allows requests for a resource of a namespace only if an expression is true.
const policy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: ["%[4]s"], apiVersions: ["*"], operations: [%[2]s], resources: [%[5]s]}
  validations:
  - {expression: "%[3]s", message: denied by the test}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec:
  policyName: %[1]s
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}}
`

// probe is a ChangePod that a test asks the API server to create.
const probe = `
apiVersion: app.ops.cloud.alipay.com/v1alpha1
kind: ChangePod
metadata: {name: probe}
spec: {podInfos: [{pod: probe}], changeWorkloadId: probe, batchNo: 0, createTime: "2026-01-01 00:00:00", createTimeUnix: 0}
`

// deny denies an operation on a resource in the namespace unless the expression is true, until the test
// ends or calls the returned function. It returns when a request by kubectl is denied.
func (f fixture) deny(t *testing.T, resource schema.GroupResource, operation, expression string, request ...string) (allow func()) {
	t.Helper()
	kubectl(t, fmt.Sprintf(policy, f.namespace, operation, expression, resource.Group, resource.Resource), "apply", "--server-side", "-f", "-")
	allow = sync.OnceFunc(func() {
		for _, kind := range []string{"validatingadmissionpolicybinding", "validatingadmissionpolicy"} {
			if out, err := exec.CommandContext(context.Background(), "kubectl", "delete", kind, f.namespace).CombinedOutput(); err != nil {
				t.Errorf("delete %s: %v\n%s", kind, err, out)
			}
		}
	})
	t.Cleanup(allow)
	await(t, "the policy is in effect", func(ctx context.Context) error {
		command := exec.CommandContext(ctx, "kubectl", append(request, "--namespace", f.namespace, "--dry-run=server")...)
		command.Stdin = strings.NewReader(probe)
		out, err := command.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "denied by the test") {
			return fmt.Errorf("%s: %w", out, err)
		}
		return nil
	})
	return allow
}
