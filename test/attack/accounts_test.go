//go:build controlplane

package attack

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/breakwater-dev/breakwater/test/e2e/impersonation"
	runner "github.com/breakwater-dev/breakwater/test/e2e/kubectl"
)

// An attacker who takes over openapi can request rollbacks, and cannot change or suspend a workload.
func TestTheServiceAccountOfOpenapiWritesNeitherSpecNorFinalizersNorOwners(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	kubectl(t, controllerWorkloads, "apply", "-n", f.namespace, "-f", "-")
	for patch, want := range map[string]string{
		`{"metadata":{"annotations":{"altershield.defense.antgroup.com/rollback-request":"{}"}}}`: "",
		`{"spec":{"paused":true}}`: "the spec",
		`{"metadata":{"labels":{"altershield.defense.antgroup.com/suspend":"1"}}}`:                             "only the annotation",
		`{"metadata":{"finalizers":["a.example/b"]}}`:                                                          "finalizers",
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"unknown"}]}}`: "owners",
	} {
		impersonation.Expect(t, "openapi", want, "patch", "-n", f.namespace, "deployment", "web", "--type", "merge", "-p", patch)
	}
}

// An attacker who takes over a function can write the facts of this function, but neither the state
// of a release nor the facts of another function. Exception: for a batch, functions submit and
// verdict may write some of each other's facts.
func TestTheServiceAccountsOfFunctionsWriteOnlyTheirFacts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	kubectl(t, facts, "apply", "-n", f.namespace, "-f", "-")
	const verdicts = `{"status":{"verdicts":[{"stage":"PRE","verdict":"pass","nodeId":"n","time":"2026-01-01T00:00:00.000000Z"}]}}`
	const inbox = `{"status":{"inbox":[{"id":"i","nodeId":"n","stage":"PRE","verdict":"pass","time":"2026-01-01T00:00:00.000000Z"}]}}`
	const order, orderVerdicts = `{"status":{"order":{"id":"o"}}}`, `{"status":{"orderVerdicts":[{"stage":"PRE","verdict":"pass","nodeId":"n","time":"2026-01-01T00:00:00.000000Z"}]}}`
	const metricRecord = `{"status":{"metricRecord":{"verdict":"none","reason":"a","final":false,"looks":1,"lookTime":"2026-01-01T00:00:00Z",
 "endTime":"2026-01-01T00:00:00Z","target":{"new":"a","startTime":"2026-01-01T00:00:00Z"}}}}`
	const pod, release = "changepods", "changeworkloads"
	const only = "may write only these fields of status"
	for _, tc := range []struct{ account, resource, patch, want string }{
		{"submit", pod, `{"status":{"changePodId":"n"}}`, ""},
		{"submit", pod, verdicts, ""},
		{"submit", pod, `{"status":{"status":"ExecuteDone"}}`, only},
		{"submit", release, order, ""},
		{"submit", release, orderVerdicts, ""},
		{"submit", release, inbox, only},
		{"submit", release, `{"status":{"status":"Success"}}`, only},
		{"submit", release, `{"status":{"orderResult":{"verdict":"pass"}}}`, only},
		{"verdict", pod, verdicts, ""},
		// Together with a verdict, function verdict writes the intent of the finish of the batch, or its end.
		{"verdict", pod, `{"status":{"submissions":[{"stage":"POST","intentTime":"2026-01-01T00:00:00.000000Z","attempts":1}]}}`, ""},
		{"verdict", pod, `{"status":{"status":"ExecuteDone"}}`, ""},
		{"verdict", pod, `{"status":{"preSubmitTime":"now"}}`, only},
		{"verdict", release, orderVerdicts, ""},
		{"verdict", release, order, only},
		{"verdict", release, `{"status":{"status":"Success"}}`, only},
		{"callback", release, inbox, ""},
		{"callback", release, orderVerdicts, only},
		{"callback", release, `{"status":{"status":"Success"}}`, only},
		{"judge", pod, metricRecord, ""},
		{"judge", pod, strings.Replace(metricRecord, "metricRecord", "probation", 1), ""},
		{"judge", pod, verdicts, "only status.metricRecord"},
		{"judge", pod, `{"status":{"status":"ExecuteDone"}}`, "only status.metricRecord"},
		{"judge", pod, `{"status":{"podResults":[{"pod":"a","verdict":"pass"}]}}`, "only status.metricRecord"},
		{"deadletter", release, inbox, ""},
		{"deadletter", release, order, only},
		{"deadletter", release, `{"status":{"status":"Success"}}`, only},
	} {
		t.Run(tc.account+" "+tc.resource+" "+tc.patch, func(t *testing.T) {
			impersonation.ExpectStatusPatch(t, tc.account, tc.want, tc.resource, f.namespace, "web", tc.patch)
		})
	}
}

// facts are a release and a batch.
const facts = `
{apiVersion: app.ops.cloud.alipay.com/v1alpha1, kind: ChangeWorkload, metadata: {name: web}, spec: {changeWorkloadId: a, serviceName: web, reversion: a,
 countThreshold: 1, waitTimeThreshold: 1, createTime: a, createTimeUnix: 1, appName: web, attempt: 1, orderId: o,
 workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web, uid: u}}}
---
{apiVersion: app.ops.cloud.alipay.com/v1alpha1, kind: ChangePod, metadata: {name: web}, spec: {changeWorkloadId: a, createTime: a, createTimeUnix: 1, batchNo: 1,
 podInfos: [{pod: a}]}}`

// rollouts is a kind of ConfigMap config-workloads, with the rights of the controller.
const rollouts = `
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: rollouts.argoproj.io}, spec: {group: argoproj.io, scope: Namespaced,
 names: {kind: Rollout, plural: rollouts, singular: rollout, listKind: RolloutList}, versions: [{name: v1alpha1, served: true, storage: true,
  schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: attack-rollouts, labels: {breakwater.dev/controller: "true"}},
 rules: [{apiGroups: [argoproj.io], resources: [rollouts], verbs: [get, list, watch, patch, delete]}]}`

// installRollouts installs this kind.
var installRollouts = sync.OnceValue(func() error {
	for _, command := range []struct {
		manifest string
		args     []string
	}{
		{rollouts, []string{"apply", "-f", "-"}},
		{"", []string{"wait", "--for=condition=Established", "--timeout=60s", "crd/rollouts.argoproj.io"}},
	} {
		if _, err := (runner.Kubectl{}).Output(context.Background(), command.manifest, command.args...); err != nil {
			return err
		}
	}
	return nil
})

func useRollouts(t *testing.T) {
	t.Helper()
	if err := installRollouts(); err != nil {
		t.Fatal(err)
	}
}

// An attacker who takes over the controller is restricted for other kinds of workloads, too.
func TestTheServiceAccountOfTheControllerWritesOnlyHoldAndTemplateOfOtherKinds(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	elsewhere := f.newNamespace(t, nil)
	useRollouts(t)
	for _, namespace := range []string{f.namespace, elsewhere} {
		kubectl(t, `{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: web}, spec: {replicas: 1,
 template: {spec: {containers: [{name: app, image: busybox}]}}}}`, "apply", "-n", namespace, "-f", "-")
	}
	image := `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"evil"}]}}}}`
	for _, tc := range []struct{ namespace, patch, want string }{
		{f.namespace, `{"spec":{"paused":true}}`, ""},
		{f.namespace, image, ""},
		{elsewhere, image, "opted in"},
		{elsewhere, `{"spec":{"paused":true}}`, "opted in"},
		{f.namespace, `{"spec":{"replicas":0}}`, "only the template"},
		{f.namespace, `{"spec":{"replicas":null}}`, "only the template"},
		{f.namespace, `{"metadata":{"finalizers":["a.example/b"]}}`, "finalizers"},
	} {
		t.Run(tc.patch, func(t *testing.T) {
			impersonation.Expect(t, "controller", tc.want, "patch", "-n", tc.namespace, "rollouts.argoproj.io", "web", "--type", "merge", "-p", tc.patch)
		})
	}
	impersonation.Expect(t, "controller", "neither create nor delete", "delete", "-n", f.namespace, "rollouts.argoproj.io", "web")
}
