//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/builder"
	"github.com/breakwater-dev/breakwater/test/e2e/kubectl"
	"github.com/breakwater-dev/breakwater/test/e2e/replicas"
)

// unusualDeployment is released, suspended and repaired like any other
// Deployment.
func unusualDeployment(d *appsv1.Deployment) func(*testing.T, *environment) {
	return func(t *testing.T, e *environment) {
		n := e.optedInNamespace(t)
		n.create(t, d.DeepCopy())
		n.awaitPhase(t, rolloutTimeout, d.Name, v1alpha1.ReleaseSuccess)
		n.awaitClaims(t, shortTimeout, d.Name)
		n.judgeByHand(t, n.awaitBatch(t, shortTimeout, d.Name, 1, "exists", exists), "unpass", "find error")
		n.awaitDeployment(t, shortTimeout, d.Name, "is suspended", isSuspended)
		n.checkDenied(t, d.Name, "patch", "deployment", d.Name, "-p", templatePatch, "--type", "merge")
		n.repair(t, d.Name, "v2")
		n.awaitPhase(t, rolloutTimeout, d.Name, v1alpha1.ReleaseSuccess)
		n.awaitDeployment(t, shortTimeout, d.Name, "is not suspended", isNotSuspended)
	}
}

// longName is a name with the maximum of 253 characters.
func longName() string { return strings.Repeat("long-name.", 25) + "end" }

// hugeDeployment is near the largest object that the API server stores: 1.5 MiB
// with the fields that it adds.
func hugeDeployment() *appsv1.Deployment {
	d := builder.Deployment("huge", 1, builder.Simulated)
	container := &d.Spec.Template.Spec.Containers[0]
	for i := range 9 {
		container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("PART_%d", i), Value: strings.Repeat("x", 100_000)})
	}
	return d
}

func unlabeledDeployment() *appsv1.Deployment {
	return builder.Deployment("unlabeled", 1, builder.Simulated, builder.WithoutLabels)
}

// apply runs `kubectl apply` with a Deployment.
func (n *namespace) apply(t *testing.T, d *appsv1.Deployment, args ...string) kubectl.Result {
	t.Helper()
	raw, err := yaml.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	r := n.kubectl.Try(t, string(raw), append([]string{"apply", "-f", "-"}, args...)...)
	if r.Code != 0 {
		t.Fatalf("the command failed:\n%s", r)
	}
	return r
}

// dryRun shows the result of the request and stores nothing.
func dryRun(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	shown := n.apply(t, builder.Deployment("web", 1, builder.Simulated), "--dry-run=server", "-o", "yaml")
	var d appsv1.Deployment
	if err := yaml.Unmarshal([]byte(shown.Stdout), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Labels[v1alpha1.VersionKey]) != 32 {
		t.Errorf("a dry run shows the labels %v, want a version", d.Labels)
	}
	n.suspendWeb(t)
	alice := []string{"--dry-run=server", "--as=alice", "--as-group=system:masters"}
	n.checkDenied(t, "web", append([]string{"patch", "deployment", "web", "-p", templatePatch, "--type", "merge"}, alice...)...)
	before := n.deployment(t, "web")
	n.run(t, append([]string{"patch", "deployment", "web", "--type=merge", "-p", repairOf("v2")}, alice...)...)
	// The Event of this denial is recorded after any Events of the dry runs, so
	// they would exist, too. Events name the user.
	n.checkDenied(t, "web", "patch", "deployment", "web", "-p", templatePatch, "--type", "merge")
	n.awaitEvent(t, "web", v1alpha1.ReasonReleaseDenied, "is suspended")
	events, err := n.kube.CoreV1().Events(n.name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range events.Items {
		if strings.Contains(events.Items[i].Message, "alice") {
			t.Errorf("a dry run recorded the Event %+v", events.Items[i])
		}
	}
	if after := n.deployment(t, "web"); after.Generation != before.Generation {
		t.Error("a dry run changed the Deployment")
	}
	list, err := n.change.ChangeWorkloads(n.name).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Errorf("%d ChangeWorkloads (%v), want 1", len(list.Items), err)
	}
}

// serverSideApply owns its fields only: a repeated apply changes nothing, and
// another apply needs no force.
func serverSideApply(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	first, second := builder.Deployment("web", 1, builder.Simulated), builder.Deployment("web", 1, builder.Simulated, builder.Release("v2"))
	n.apply(t, first, "--server-side")
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	n.awaitDeployment(t, shortTimeout, "web", "is labeled as processed", isProcessed)
	before := n.deployment(t, "web")
	n.apply(t, first, "--server-side")
	if after := n.deployment(t, "web"); after.Generation != before.Generation {
		t.Errorf("a repeated apply changed the Deployment:\n%v\n%v", before.ObjectMeta, after.ObjectMeta)
	}
	checkRelease(t, n.deployment(t, "web"), before.Labels[v1alpha1.VersionKey], "1")
	n.apply(t, second, "--server-side")
	c := n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	checkRelease(t, n.deployment(t, "web"), c.Spec.Reversion, "2")
}

// clientSideApply finds no difference when it is repeated.
func clientSideApply(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	d := builder.Deployment("web", 1, builder.Simulated)
	n.apply(t, d)
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	n.awaitDeployment(t, shortTimeout, "web", "is labeled as processed", isProcessed)
	version := n.deployment(t, "web").Labels[v1alpha1.VersionKey]
	if r := n.apply(t, d); r.Stdout != "deployment.apps/web unchanged\n" {
		t.Errorf("a repeated apply changed the Deployment:\n%s", r)
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

// tampering with fields reserved for the webhook is undone.
func tampering(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.create(t, builder.Deployment("web", 1, builder.Simulated))
	c := n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
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
			t.Errorf("the annotation of a bypass was changed by hand: %s", got)
		}
	}
}

// invalidConfiguration is denied with the name of the field.
func invalidConfiguration(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	for name, tc := range map[string]struct{ spec, want string }{
		"unknown type":                   {`{"type":"isBlockingDown","enable":true}`, "spec.type"},
		"percentage is not a number":     {`{"type":"isBranch","enable":true,"content":"ten"}`, "spec.content"},
		"percentage of zero":             {`{"type":"isBranch","enable":true,"content":"0"}`, "spec.content"},
		"unknown policy":                 {`{"type":"no-verdict","enable":true,"content":"Maybe"}`, "spec.content"},
		"invalid duration":               {`{"type":"wait-threshold","enable":true,"content":"soon"}`, "spec.content"},
		"content of a type without one":  {`{"type":"isBlockingUp","enable":true,"content":"yes"}`, "spec.content"},
		"invalid content while disabled": {`{"type":"isBranch","enable":false,"content":"ten"}`, "spec.content"},
	} {
		object := `{"apiVersion":"app.ops.cloud.alipay.com/v1alpha1","kind":"OpsConfigInfo",` +
			`"metadata":{"name":"e2e-wrong","namespace":"` + system + `"},"spec":` + tc.spec + `}`
		r := n.kubectl.Try(t, object, "apply", "--dry-run=server", "-f", "-")
		if r.Code == 0 || !strings.Contains(r.Stderr, tc.want) {
			t.Errorf("%s: the error does not name %s:\n%s", name, tc.want, r)
		}
	}
}

// blockingSwitch: a change of isBlockingUp takes effect within 2 s, for new
// requests only.
func blockingSwitch(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.suspendWeb(t)
	enabled := func(enable bool) []string {
		return []string{"patch", "opsconfiginfo", "blocking", "-n", system, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"enable":%t}}`, enable)}
	}
	set := func(enable bool) { n.run(t, enabled(enable)...) }
	n.cleanup(t, enabled(true)...)
	dry := []string{"patch", "deployment", "web", "-p", templatePatch, "--type", "merge", "--dry-run=server"}
	n.checkDenied(t, "web", dry...)
	set(false)
	n.awaitAnswers(t, settingsTimeout, 0, dry...)
	if !isSuspended(n.deployment(t, "web")) {
		t.Error("disabling isBlockingUp ended a suspension")
	}
	set(true)
	n.awaitAnswers(t, settingsTimeout, 1, dry...)
	set(false)
	n.awaitAnswers(t, settingsTimeout, 0, dry...)
	n.release(t, "web", "v2")
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
}

// awaitAnswers waits until a command ends with an exit code at each replica of
// the webhook.
func (n *namespace) awaitAnswers(t *testing.T, within time.Duration, code int, args ...string) {
	t.Helper()
	await(t, within, "kubectl exits with code "+fmt.Sprint(code), func(context.Context) error {
		return replicas.Reach(8, func() error {
			if r := n.try(t, args...); r.Code != code {
				return errors.New(r.String())
			}
			return nil
		})
	})
}
