//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/e2e/kubectl"
	"github.com/breakwater-dev/breakwater/test/gen"
)

// unusualDeployment goes to Success, is suspended and is repaired like any other.
func unusualDeployment(d *appsv1.Deployment) func(*testing.T, *environment) {
	return func(t *testing.T, e *environment) {
		n := e.optedInNamespace(t)
		n.create(t, d.DeepCopy())
		n.awaitPhase(t, rolloutTimeout, d.Name, v1alpha1.WorkloadSuccess)
		n.awaitClaims(t, d.Name)
		n.judgeByHand(t, n.awaitBatch(t, shortTimeout, d.Name, 1, "is there", exists), "unpass", "find error")
		n.awaitDeployment(t, shortTimeout, d.Name, "is suspended", isSuspended)
		n.checkDenied(t, d.Name, "patch", "deployment", d.Name, "-p", templatePatch, "--type", "merge")
		n.repair(t, d.Name, "v2")
		n.awaitPhase(t, rolloutTimeout, d.Name, v1alpha1.WorkloadSuccess)
		n.awaitDeployment(t, shortTimeout, d.Name, "is free again", isNotSuspended)
	}
}

// longName has the most characters that a name may have.
func longName() string { return strings.Repeat("long-name.", 25) + "end" }

// hugeDeployment is near the largest object that the API server stores: 1.5 MiB with
// what it adds itself.
func hugeDeployment() *appsv1.Deployment {
	d := gen.Deployment("huge", 1, gen.Simulated)
	container := &d.Spec.Template.Spec.Containers[0]
	for i := range 9 {
		container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("PART_%d", i), Value: strings.Repeat("x", 100_000)})
	}
	return d
}

func unlabeledDeployment() *appsv1.Deployment {
	return gen.Deployment("unlabelled", 1, gen.Simulated, gen.WithoutLabels)
}

// apply feeds a Deployment to `kubectl apply`.
func (n *namespace) apply(t *testing.T, d *appsv1.Deployment, args ...string) kubectl.Result {
	t.Helper()
	raw, err := yaml.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	r, err := n.kubectl.RunWithInput(t.Context(), string(raw), append([]string{"apply", "-f", "-"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	if r.Code != 0 {
		t.Fatalf("the command did not succeed:\n%s", r)
	}
	return r
}

// dryRun shows what would be, and leaves nothing behind.
func dryRun(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	shown := n.apply(t, gen.Deployment("web", 1, gen.Simulated), "--dry-run=server", "-o", "yaml")
	var d appsv1.Deployment
	if err := yaml.Unmarshal([]byte(shown.Stdout), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Labels[v1alpha1.VersionKey]) != 32 {
		t.Errorf("a dry run shows the labels %v, want a version", d.Labels)
	}
	n.suspendWeb(t)
	n.checkDenied(t, "web", "patch", "deployment", "web", "-p", templatePatch, "--type", "merge", "--dry-run=server")
	before := n.deployment(t, "web")
	n.run(t, "patch", "deployment", "web", "--type=merge", "-p", repairOf("v2"), "--dry-run=server")
	// A refusal that counts is told after those that do not, so their Events
	// would be there when its own is.
	n.checkDenied(t, "web", "patch", "deployment", "web", "-p", templatePatch, "--type", "merge")
	n.awaitEvent(t, "web", v1alpha1.ReasonReleaseDenied, "is suspended")
	events, err := n.kube.CoreV1().Events(n.name).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=" + v1alpha1.ReasonReleaseDenied})
	if err != nil {
		t.Fatal(err)
	}
	if len(events.Items) != 1 || events.Items[0].Count > 1 {
		t.Errorf("one refusal that counts and two dry runs made the Events %+v", events.Items)
	}
	if after := n.deployment(t, "web"); after.Generation != before.Generation {
		t.Error("a dry run changed the Deployment")
	}
	list, err := n.change.ChangeWorkloads(n.name).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Errorf("%d ChangeWorkloads (%v), want that of the one release", len(list.Items), err)
	}
}

// serverSideApply owns its fields and not ours: to apply again changes
// nothing, and to apply something else needs no force.
func serverSideApply(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	first, second := gen.Deployment("web", 1, gen.Simulated), gen.Deployment("web", 1, gen.Simulated, gen.Release("v2"))
	n.apply(t, first, "--server-side")
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.WorkloadSuccess)
	n.awaitDeployment(t, shortTimeout, "web", "is marked", isProcessed)
	before := n.deployment(t, "web")
	n.apply(t, first, "--server-side")
	if after := n.deployment(t, "web"); after.Generation != before.Generation {
		t.Errorf("to apply the same again was a change:\n%v\n%v", before.ObjectMeta, after.ObjectMeta)
	}
	checkRelease(t, n.deployment(t, "web"), before.Labels[v1alpha1.VersionKey], "1")
	n.apply(t, second, "--server-side")
	c := n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.WorkloadSuccess)
	checkRelease(t, n.deployment(t, "web"), c.Spec.Reversion, "2")
}

// clientSideApply sees no drift.
func clientSideApply(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	d := gen.Deployment("web", 1, gen.Simulated)
	n.apply(t, d)
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.WorkloadSuccess)
	n.awaitDeployment(t, shortTimeout, "web", "is marked", isProcessed)
	version := n.deployment(t, "web").Labels[v1alpha1.VersionKey]
	if r := n.apply(t, d); r.Stdout != "deployment.apps/web unchanged\n" {
		t.Errorf("to apply the same again is a change:\n%s", r)
	}
	checkRelease(t, n.deployment(t, "web"), version, "1")
}

func isProcessed(d *appsv1.Deployment) bool {
	return d.Labels[v1alpha1.DefenseStatusLabel] == v1alpha1.DefenseStatusProcessed
}

func checkRelease(t *testing.T, d *appsv1.Deployment, version, attempt string) {
	t.Helper()
	if d.Labels[v1alpha1.VersionKey] != version || d.Annotations[v1alpha1.VersionKey] != version || d.Annotations[v1alpha1.AttemptAnnotation] != attempt {
		t.Errorf("the Deployment is at %v, %v, want version %s and attempt %s", d.Labels, d.Annotations, version, attempt)
	}
}

// tampering with what only we write is undone.
func tampering(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.create(t, gen.Deployment("web", 1, gen.Simulated))
	c := n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.WorkloadSuccess)
	for _, args := range [][]string{
		{"label", "deployment", "web", v1alpha1.VersionKey + "=mine", "--overwrite"},
		{"label", "deployment", "web", v1alpha1.VersionKey + "-"},
		{"annotate", "deployment", "web", v1alpha1.VersionKey + "-"},
		{"annotate", "deployment", "web", v1alpha1.AttemptAnnotation + "=77", "--overwrite"},
		{"annotate", "deployment", "web", v1alpha1.AttemptAnnotation + "-"},
		{"annotate", "deployment", "web", v1alpha1.BypassAnnotation + "={}"},
	} {
		n.run(t, args...)
		d := n.deployment(t, "web")
		checkRelease(t, d, c.Spec.Reversion, "1")
		if got, ok := d.Annotations[v1alpha1.BypassAnnotation]; ok {
			t.Errorf("a record of a bypass could be written by hand: %s", got)
		}
	}
}

// invalidConfiguration is refused with the name of the field.
func invalidConfiguration(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	for name, tc := range map[string]struct{ spec, want string }{
		"an unknown type":                {`{"type":"isBlockingDown","enable":true}`, "spec.type"},
		"a per cent that is no number":   {`{"type":"isBranch","enable":true,"content":"ten"}`, "spec.content"},
		"a per cent of nothing":          {`{"type":"isBranch","enable":true,"content":"0"}`, "spec.content"},
		"a policy that there is not":     {`{"type":"no-verdict","enable":true,"content":"Maybe"}`, "spec.content"},
		"a duration that is none":        {`{"type":"wait-threshold","enable":true,"content":"soon"}`, "spec.content"},
		"a content where there is none":  {`{"type":"isBlockingUp","enable":true,"content":"yes"}`, "spec.content"},
		"a wrong content that is not on": {`{"type":"isBranch","enable":false,"content":"ten"}`, "spec.content"},
	} {
		object := `{"apiVersion":"app.ops.cloud.alipay.com/v1alpha1","kind":"OpsConfigInfo",` +
			`"metadata":{"name":"e2e-wrong","namespace":"` + system + `"},"spec":` + tc.spec + `}`
		r, err := n.kubectl.RunWithInput(t.Context(), object, "apply", "--dry-run=server", "-f", "-")
		if err != nil {
			t.Fatal(err)
		}
		if r.Code == 0 || !strings.Contains(r.Stderr, tc.want) {
			t.Errorf("%s: the answer does not name %s:\n%s", name, tc.want, r)
		}
	}
}

// blockingSwitch isBlockingUp takes effect within 2 s, for new refusals only.
func blockingSwitch(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.suspendWeb(t)
	set := func(enable bool) {
		n.run(t, "patch", "opsconfiginfo", "blocking", "-n", system, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"enable":%t}}`, enable))
	}
	t.Cleanup(func() {
		_, err := kubectl.Kubectl{}.Run(context.Background(), "patch", "opsconfiginfo", "blocking", "-n", system, "--type=merge", "-p", `{"spec":{"enable":true}}`)
		if err != nil {
			t.Error(err)
		}
	})
	dry := []string{"patch", "deployment", "web", "-p", templatePatch, "--type", "merge", "--dry-run=server"}
	n.checkDenied(t, "web", dry...)
	set(false)
	n.awaitAnswers(t, settingsTimeout, 0, dry...)
	if !isSuspended(n.deployment(t, "web")) {
		t.Error("switching blocking off ended a suspension")
	}
	set(true)
	n.awaitAnswers(t, settingsTimeout, 1, dry...)
	set(false)
	n.awaitAnswers(t, settingsTimeout, 0, dry...)
	n.release(t, "web", "v2")
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.WorkloadSuccess)
}

// awaitAnswers waits until a command ends with a code. Each of the replicas of the webhook has to
// give the same answer.
func (n *namespace) awaitAnswers(t *testing.T, within time.Duration, code int, args ...string) {
	t.Helper()
	await(t, within, "kubectl ends with code "+fmt.Sprint(code), func(context.Context) error {
		for range 4 {
			if r := n.try(t, args...); r.Code != code {
				return fmt.Errorf("%s", r)
			}
		}
		return nil
	})
}
