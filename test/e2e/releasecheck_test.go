//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
	"github.com/breakwater-dev/breakwater/test/builder"
	"github.com/breakwater-dev/breakwater/test/e2e/kubectl"
	"github.com/breakwater-dev/breakwater/test/e2e/replicas"
)

// The server checks a release before the webhook admits it.
func TestTheReleaseCheck(t *testing.T) {
	e := newEnvironment(t)
	configure(t, e)
	runSequentially(t, e, []spec{
		{"without a release check the server is not called", releaseCheckDisabled},
	})
	e.enableConfig(t, v1alpha1.ConfigReleaseCheck, "4s") // the maximum
	e.awaitReleaseCheck(t)
	runInParallel(t, e, []spec{
		{"a release that the server passes is admitted, and its version is not checked again", releaseCheckPasses},
		{"a release that the server fails is denied with the reason, and another one is admitted", releaseCheckFails},
		{"a release whose check times out is admitted with a warning", releaseCheckTimesOut},
		{"a dry run is not checked and returns a warning", releaseCheckOfADryRun},
		{"releases of a StatefulSet and a DaemonSet are checked", releaseCheckOfOtherKinds},
		{"a rollback and a repair are not checked", rollbackAndRepairUnchecked},
	})
	e.enableConfig(t, v1alpha1.ConfigReleaseCheckNoVerdict, "Fail")
	e.awaitUncheckedDenied(t)
	runSequentially(t, e, []spec{
		{"a release whose check times out is denied when the policy is Fail", unjudgedReleaseDenied},
		{"a restarted webhook does not check a passed version again", releaseCheckSurvivesARestart},
	})
}

// enableConfig enables an OpsConfigInfo until the test ends.
func (e *environment) enableConfig(t *testing.T, of v1alpha1.ConfigType, content string) {
	t.Helper()
	configs := e.change.OpsConfigInfoes(system)
	name := string(of)
	if err := configs.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil && !apierrs.IsNotFound(err) {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := configs.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	_, err := configs.Create(t.Context(), &v1alpha1.OpsConfigInfo{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{testLabel: "true"}},
		Spec:       v1alpha1.OpsConfigInfoSpec{Type: of, Content: content, Enable: true},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// dryRunWarning is the warning of a dry run.
const dryRunWarning = "the server was not asked, because this is a dry run"

// awaitReleaseCheck waits until each replica of the webhook checks releases.
func (e *environment) awaitReleaseCheck(t *testing.T) {
	t.Helper()
	n := e.optedInNamespace(t)
	await(t, shortTimeout, "the release check is in force", func(context.Context) error {
		return replicas.Reach(8, func() error {
			if r := n.tryApply(t, builder.Deployment("web", 1, builder.Simulated), "--dry-run=server"); !strings.Contains(r.Stderr, dryRunWarning) {
				return errors.New(r.String())
			}
			return nil
		})
	})
}

// awaitUncheckedDenied waits until each replica of the webhook denies an
// unjudged release. Each request has a new Deployment, because answers are
// stored.
func (e *environment) awaitUncheckedDenied(t *testing.T) {
	t.Helper()
	n := e.optedInNamespace(t)
	n.setReleaseChecks(t, timedOut)
	var count atomic.Int32
	await(t, rolloutTimeout, "the policy is in force", func(context.Context) error {
		return replicas.Reach(8, func() error {
			if r := n.tryApply(t, builder.Deployment(fmt.Sprint("web-", count.Add(1)), 0, builder.Simulated)); r.Code == 0 {
				return errors.New(r.String())
			}
			return nil
		})
	})
}

// setReleaseChecks sets the double's answer to release checks of this
// namespace.
func (n *namespace) setReleaseChecks(t *testing.T, then double.Behaviour) {
	t.Helper()
	n.setChecks(t, double.CheckRule{Match: double.Match{Step: "RELEASE"}, Then: then})
}

// timedOut is answered like a check that times out, but at once: a pass without rules, which retrieve
// does not confirm. A check that takes its time times out in the webhook first if the machine is busy.
var timedOut = double.Behaviour{Ending: double.Threw}

// releaseChecks counts the release checks of this namespace at the double.
func (n *namespace) releaseChecks(t *testing.T) int {
	t.Helper()
	log, err := n.double.Log(t.Context(), n.name)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, c := range log.Calls {
		if c.Action == "submitAndStartChangeExecOrder" {
			count++
		}
	}
	return count
}

// checkReleaseChecks compares the number of release checks at the double.
func (n *namespace) checkReleaseChecks(t *testing.T, want int) {
	t.Helper()
	if got := n.releaseChecks(t); got != want {
		t.Errorf("%d release checks at the server, want %d", got, want)
	}
}

// tryApply runs kubectl apply, which may fail.
func (n *namespace) tryApply(t *testing.T, d *appsv1.Deployment, args ...string) kubectl.Result {
	t.Helper()
	raw, err := yaml.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return n.kubectl.Try(t, string(raw), append([]string{"apply", "-f", "-"}, args...)...)
}

// checkResult compares the exit code and the error output of kubectl.
func checkResult(t *testing.T, r kubectl.Result, code int, text ...string) {
	t.Helper()
	for _, w := range text {
		if !strings.Contains(r.Stderr, w) {
			t.Errorf("the error output does not contain %q", w)
		}
	}
	if r.Code != code || t.Failed() {
		t.Errorf("want code %d, got:\n%s", code, r)
	}
}

// releaseCheckStatus returns the status of the only ReleaseCheck.
func (n *namespace) releaseCheckStatus(t *testing.T) v1alpha1.ReleaseCheckStatus {
	t.Helper()
	kept, err := n.change.ReleaseChecks(n.name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(kept.Items) != 1 {
		t.Fatalf("%d ReleaseChecks, want 1", len(kept.Items))
	}
	return kept.Items[0].Status
}

func releaseCheckDisabled(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.setReleaseChecks(t, failed())
	checkResult(t, n.tryApply(t, builder.Deployment("web", 1, builder.Simulated)), 0)
	n.checkReleaseChecks(t, 0)
	if kept, err := n.change.ReleaseChecks(n.name).List(t.Context(), metav1.ListOptions{}); err != nil || len(kept.Items) > 0 {
		t.Errorf("%d ReleaseChecks (%v), want none", len(kept.Items), err)
	}
}

func releaseCheckPasses(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.setReleaseChecks(t, double.Behaviour{Verdict: "pass"})
	r := n.tryApply(t, builder.Deployment("web", 1, builder.Simulated))
	checkResult(t, r, 0)
	if strings.Contains(r.Stderr, "Warning") {
		t.Errorf("a pass returns a warning:\n%s", r)
	}
	n.checkReleaseChecks(t, 1)
	if a := n.releaseCheckStatus(t); a.Outcome != v1alpha1.OutcomePass || a.Attempt != 1 || a.NodeID == "" {
		t.Errorf("ReleaseCheck status is %+v", a)
	}
	// Scaling and labeling are not releases.
	n.run(t, "scale", "deployment", "web", "--replicas=2")
	n.run(t, "label", "deployment", "web", "team=a")
	n.run(t, "delete", "deployment", "web", "--cascade=foreground")
	n.setReleaseChecks(t, failed())
	checkResult(t, n.tryApply(t, builder.Deployment("web", 1, builder.Simulated)), 0)
	n.checkReleaseChecks(t, 1)
}

func releaseCheckFails(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.setReleaseChecks(t, double.Behaviour{Verdict: "pass"})
	checkResult(t, n.tryApply(t, builder.Deployment("web", 1, builder.Simulated)), 0)
	before := n.deployment(t, "web")
	n.setReleaseChecks(t, failed())
	second := builder.Deployment("web", 1, builder.Simulated, builder.Release("v2"))
	denial := []string{
		"Error from server (ReleaseCheckFailed)", `admission webhook "vrelease.kb.io" denied the request: release check of deployment web`,
		"error rate: " + errorRate, "change the pod template, or apply it again after",
	}
	checkResult(t, n.tryApply(t, second), 1, denial...)
	// The stored answer applies to the same release, for 30 s.
	n.setReleaseChecks(t, double.Behaviour{Verdict: "pass"})
	checkResult(t, n.tryApply(t, second), 1, denial...)
	n.checkReleaseChecks(t, 2)
	if after := n.deployment(t, "web"); after.Generation != before.Generation {
		t.Error("a denied release changed the Deployment")
	}
	n.awaitEvent(t, "web", v1alpha1.ReasonReleaseCheckFailed, errorRate)
	checkResult(t, n.tryApply(t, builder.Deployment("web", 1, builder.Simulated, builder.Release("v3"))), 0)
	n.checkReleaseChecks(t, 3)
	// A person overrules the server.
	kept, err := n.change.ReleaseChecks(n.name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range kept.Items {
		if kept.Items[i].Status.Outcome == v1alpha1.OutcomeFail {
			n.run(t, "patch", "releasecheck", kept.Items[i].Name, "--type=merge", "-p", `{"status":{"outcome":"Pass"}}`)
		}
	}
	checkResult(t, n.tryApply(t, second), 0)
	n.checkReleaseChecks(t, 3)
}

// checkTimedOut checks the ReleaseCheck and the Event of an unjudged release.
func (n *namespace) checkTimedOut(t *testing.T) {
	t.Helper()
	if a := n.releaseCheckStatus(t); a.Outcome != v1alpha1.OutcomeNoVerdict || a.Reason != v1alpha1.ReasonVerdictTimedOut {
		t.Errorf("ReleaseCheck status is %+v", a)
	}
	n.awaitEvent(t, "web", v1alpha1.ReasonReleaseCheckNoVerdict, "retrieve did not confirm it")
	n.checkReleaseChecks(t, 1)
}

func releaseCheckTimesOut(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.setReleaseChecks(t, timedOut)
	checkResult(t, n.tryApply(t, builder.Deployment("web", 1, builder.Simulated)), 0,
		"Warning: admitted unchecked: release check of deployment web")
	n.checkTimedOut(t)
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
}

func unjudgedReleaseDenied(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.setReleaseChecks(t, timedOut)
	checkResult(t, n.tryApply(t, builder.Deployment("web", 1, builder.Simulated)), 1,
		"Error from server (ReleaseCheckNoVerdict)", "release check of deployment web", "retrieve did not confirm it")
	n.checkTimedOut(t)
}

func releaseCheckOfADryRun(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.setReleaseChecks(t, failed())
	checkResult(t, n.tryApply(t, builder.Deployment("web", 1, builder.Simulated), "--dry-run=server"), 0, dryRunWarning)
	n.checkReleaseChecks(t, 0)
	if kept, err := n.change.ReleaseChecks(n.name).List(t.Context(), metav1.ListOptions{}); err != nil || len(kept.Items) > 0 {
		t.Errorf("%d ReleaseChecks (%v), want none", len(kept.Items), err)
	}
}

func releaseCheckOfOtherKinds(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.setReleaseChecks(t, failed())
	d := builder.Deployment("web", 1, builder.Simulated)
	for _, kind := range []string{"StatefulSet", "DaemonSet"} {
		object := map[string]any{
			"apiVersion": "apps/v1", "kind": kind, "metadata": map[string]any{"name": "web"},
			"spec": map[string]any{"selector": d.Spec.Selector, "template": d.Spec.Template},
		}
		if kind == "StatefulSet" {
			object["spec"].(map[string]any)["serviceName"] = "web"
		}
		raw, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		r := n.kubectl.Try(t, string(raw), "apply", "-f", "-")
		checkResult(t, r, 1, "release check of "+strings.ToLower(kind)+" web", errorRate)
	}
	n.checkReleaseChecks(t, 2)
}

func rollbackAndRepairUnchecked(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.setReleaseChecks(t, double.Behaviour{Verdict: "pass"})
	n.create(t, builder.Deployment("web", 1, builder.Simulated))
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	n.release(t, "web", "v2")
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	p := n.awaitBatch(t, shortTimeout, "web", 1, "is done", isDone)
	n.judgeByHand(t, p, "fail", "find error")
	n.awaitDeployment(t, shortTimeout, "web", "is suspended", isSuspended)
	n.setReleaseChecks(t, failed())
	n.repair(t, "web", "v3")
	n.checkReleaseChecks(t, 2)
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	n.awaitDeployment(t, shortTimeout, "web", "is not suspended", isNotSuspended)
	// The next release is still running when it is rolled back.
	open := double.CheckRule{Then: double.Behaviour{Never: true}}
	n.setChecks(t, double.CheckRule{Match: double.Match{Step: "RELEASE"}, Then: double.Behaviour{Verdict: "pass"}}, open)
	n.release(t, "web", "v4")
	n.checkReleaseChecks(t, 3)
	n.setChecks(t, double.CheckRule{Match: double.Match{Step: "RELEASE"}, Then: failed()}, open)
	if err := n.patch(t.Context(), "web", releaseOf("v3")); err != nil {
		t.Errorf("rollback to a version that succeeded: %v", err)
	}
	n.checkReleaseChecks(t, 3)
}

func releaseCheckSurvivesARestart(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.setReleaseChecks(t, double.Behaviour{Verdict: "pass"})
	n.create(t, builder.Deployment("web", 0, builder.Simulated))
	n.run(t, "delete", "deployment", "web")
	before, err := e.kube.CoreV1().Pods(system).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=webhook"})
	if err != nil {
		t.Fatal(err)
	}
	old := map[types.UID]bool{}
	for i := range before.Items {
		old[before.Items[i].UID] = true
	}
	n.run(t, "rollout", "restart", "deployment", "webhook", "-n", system)
	n.run(t, "rollout", "status", "deployment", "webhook", "-n", system, "--timeout", recoveryTimeout.String())
	await(t, recoveryTimeout, "no earlier pod of the webhook exists", func(ctx context.Context) error {
		now, err := e.kube.CoreV1().Pods(system).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=webhook"})
		if err != nil {
			return err
		}
		for i := range now.Items {
			if old[now.Items[i].UID] {
				return errors.New(now.Items[i].Name)
			}
		}
		return nil
	})
	n.setReleaseChecks(t, failed())
	checkResult(t, n.tryApply(t, builder.Deployment("web", 0, builder.Simulated)), 0)
	n.checkReleaseChecks(t, 1)
}
