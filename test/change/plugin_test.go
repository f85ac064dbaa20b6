//go:build controlplane

package change

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/cli"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// plugin runs `kubectl breakwater` in the namespace, and returns its output and exit code.
func (f fixture) plugin(ctx context.Context, args ...string) (stdout, stderr string, code int) {
	var out, errOut bytes.Buffer
	code = cli.Run(ctx, "test", append(args, "-n", f.namespace), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
	return out.String(), errOut.String(), code
}

// mustPlugin runs a command that must end with the exit code, and must print the words.
func (f fixture) mustPlugin(t *testing.T, code int, words []string, args ...string) string {
	t.Helper()
	stdout, stderr, got := f.plugin(t.Context(), args...)
	if got != code {
		t.Fatalf("%v ended with %d, want %d\n%s%s", args, got, code, stdout, stderr)
	}
	for _, w := range words {
		if !strings.Contains(stdout+stderr, w) {
			t.Errorf("%v does not print %q:\n%s%s", args, w, stdout, stderr)
		}
	}
	return stdout
}

// manifestOf returns the manifest of a Deployment.
func manifestOf(t *testing.T, d *appsv1.Deployment) string {
	t.Helper()
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// awaitSuspended waits until the workload is suspended, but not until it is held: a complete
// rollout is not held.
func (w target) awaitSuspended(t *testing.T) {
	t.Helper()
	w.awaitWorkload(t, "is suspended", func(live *workload.Workload) bool { return live.Labels[v1alpha1.SuspendLabel] != "" })
}

func TestThePluginFollowsAReleaseFromItsFailToItsRepair(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	variable := func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "VARIABLE", Value: "1"}}
	}
	applied := builder.Deployment("web", 2, builder.Simulated, builder.Release("one"), variable)
	applied.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: manifestOf(t, applied)}
	w := f.create(t, workload.Deployment, applied)
	f.mustPlugin(t, 0, []string{"deployment/web", "is Passed (AllPodsPassed)"}, "status", "deployment/web", "--timeout", "2m")
	good := w.awaitPhase(t, v1alpha1.ReleaseSuccess, 1)

	w.mustPatch(t, releaseOf("two"))
	f.mustPlugin(t, 0, nil, "status", "deploy/web", "--timeout", "2m")
	f.mustPlugin(t, 0, []string{": fail"}, "reject", "deployment/web", "-m", "find error")
	bad := w.awaitPhase(t, v1alpha1.ReleaseSuspend, 2)
	w.awaitSuspended(t)

	t.Run("status, get, tree and explain show the fail", func(t *testing.T) {
		var answer struct{ State, Reason, Workload string }
		out := f.mustPlugin(t, 1, nil, "status", "deployment/web", "-o", "json", "--timeout", "0")
		if err := json.Unmarshal([]byte(out), &answer); err != nil || answer.State != "Held" || answer.Reason != v1alpha1.ReasonCheckFailed {
			t.Errorf("status is %+v, %v", answer, err)
		}
		f.mustPlugin(t, 0, []string{"deployment/web", "Held", "CheckFailed"}, "get")
		f.mustPlugin(t, 0, []string{"changeworkload.app.ops.cloud.alipay.com/" + bad.Name}, "get", "deployment/web", "-o", "name")
		f.mustPlugin(t, 0, []string{"kind: ChangeWorkloadList", bad.Name}, "get", "-o", "yaml")
		f.mustPlugin(t, 0, []string{"suspended", "attempt 2 (current)", "Fail by a person: find error"}, "tree")
		for _, subject := range []string{"deployment/web", "changeworkload/" + bad.Name, "cp/" + v1alpha1.ChangePodName(bad.Name, 1)} {
			f.mustPlugin(t, 0, []string{"deployment/web is Held (CheckFailed)", "failed its check: find error",
				"kubectl breakwater rollback deployment/web -n " + f.namespace + " --to " + good.Spec.Reversion}, "explain", subject)
		}
	})
	t.Run("simulate apply prints the denial with its reason and ways out", func(t *testing.T) {
		for name, d := range map[string]*appsv1.Deployment{
			"a new version":      builder.Deployment("web", 2, builder.Simulated, builder.Release("three"), variable),
			"a removed variable": builder.Deployment("web", 2, builder.Simulated, builder.Release("two")),
		} {
			t.Run(name, func(t *testing.T) {
				manifest := filepath.Join(t.TempDir(), "web.json")
				if err := os.WriteFile(manifest, []byte(manifestOf(t, d)), 0o600); err != nil {
					t.Fatal(err)
				}
				f.mustPlugin(t, 1, []string{"deployment/web would be denied", "deployment web is suspended", "suspended since", v1alpha1.IgnoredSuspendLabel,
					"1 of 1 requests would be denied"}, "simulate", "apply", "-f", manifest)
			})
		}
	})
	t.Run("a second repair needs --again, and a repair that passes ends the suspension", func(t *testing.T) {
		// No pod of the first repair becomes Ready, so the repair does not end the suspension.
		nowhere := `{"spec":{"template":{"spec":{"nodeSelector":{"breakwater.dev/test":%s}}}}}`
		container := builder.Deployment("web", 1).Spec.Template.Spec.Containers[0]
		image := container.Name + "=" + container.Image + "-repaired"
		f.mustPlugin(t, 0, []string{"attempt 3"}, "repair", "deployment/web", "--patch", fmt.Sprintf(nowhere, `"none"`))
		f.mustPlugin(t, 1, []string{"already"}, "repair", "deployment/web", "--image", image)
		f.mustPlugin(t, 0, []string{"attempt 4"}, "retry", "deployment/web", "--again")
		f.mustPlugin(t, 0, []string{"attempt 5"}, "repair", "deployment/web", "--again", "--patch", fmt.Sprintf(nowhere, "null"))
		f.mustPlugin(t, 0, []string{"is Passed"}, "status", "deployment/web", "--timeout", "2m")
		w.awaitResumed(t)
		f.mustPlugin(t, 1, []string{"is not suspended"}, "repair", "deployment/web", "--image", image)
	})
}

func TestThePluginApprovesAndRollsBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create(t, workload.Deployment, builder.Deployment("web", 1, builder.Simulated, builder.Release("one")))
	first := w.awaitSaved(t, 1)
	w.mustPatch(t, releaseOf("two"))
	second := w.awaitPhase(t, v1alpha1.ReleaseSuccess, 2)
	f.mustPlugin(t, 0, nil, "reject", "cp/"+v1alpha1.ChangePodName(second.Name, 1), "-m", "find error")
	w.awaitSuspended(t)
	f.mustPlugin(t, 0, []string{": pass"}, "approve", "deployment/web", "-m", "a false alarm")
	w.awaitPhase(t, v1alpha1.ReleaseSuccess, 2)
	w.awaitResumed(t)

	f.mustPlugin(t, 0, nil, "reject", "deployment/web", "-m", "find error")
	w.awaitSuspended(t)
	f.mustPlugin(t, 1, []string{"is not a saved version"}, "rollback", "deployment/web", "--to", "nonsense")
	f.mustPlugin(t, 0, nil, "rollback", "deployment/web", "--to", first.Spec.Reversion[:10])
	c := w.awaitPhase(t, v1alpha1.ReleaseSuccess, 3)
	if c.Spec.Reversion != first.Spec.Reversion {
		t.Errorf("rolled back to %s, want %s", c.Spec.Reversion, first.Spec.Reversion)
	}
	w.awaitResumed(t)

	kubectl(t, "", "label", "namespace", f.namespace, v1alpha1.NamespaceLabel+"-")
	w.mustPatch(t, releaseOf("three"))
	f.mustPlugin(t, 1, []string{"deployment/web is NotJudged (NamespaceNotOptedIn)"}, "status", "deployment/web")
}

func TestThePluginNamesTheFixOfBadInput(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create(t, workload.Deployment, builder.Deployment("web", 1, builder.Simulated))
	w.awaitPhase(t, v1alpha1.ReleaseSuccess, 1)
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"a name without kind":            {[]string{"explain", "web"}, "write KIND/NAME, for example deployment/web"},
		"a kind that does not exist":     {[]string{"explain", "nonsense/web"}, "the cluster has no kind"},
		"an object that does not exist":  {[]string{"explain", "deployment/other"}, "is not in namespace " + f.namespace},
		"an object that is no workload":  {[]string{"status", "serviceaccount/default"}, "is not a workload"},
		"a format that does not exist":   {[]string{"get", "-o", "xml"}, "use json, yaml, name"},
		"a negative timeout":             {[]string{"status", "deployment/web", "--timeout", "-1s"}, "--timeout -1s is negative"},
		"a verdict without a reason":     {[]string{"approve", "deployment/web"}, "write -m REASON"},
		"a pod that is in no batch":      {[]string{"reject", "deployment/web", "-m", "x", "--pod", "other"}, "the verdict was not written: pod other is in no batch that is judged"},
		"a repair without a change":      {[]string{"repair", "deployment/web"}, "--image CONTAINER=IMAGE or --patch"},
		"an image without a container":   {[]string{"repair", "deployment/web", "--image", "busybox"}, "write CONTAINER=IMAGE"},
		"a container that is not there":  {[]string{"repair", "deployment/web", "--image", "other=busybox"}, "has no container other"},
		"a rollback without a version":   {[]string{"rollback", "deployment/web"}, "no other version has succeeded"},
		"a simulation without a command": {[]string{"simulate", "apply"}, "write -f FILE"},
	} {
		t.Run(name, func(t *testing.T) {
			f.mustPlugin(t, 1, []string{tc.want}, tc.args...)
		})
	}
}

func TestStatusEndsWithTwoWhileTheReleaseRuns(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create(t, workload.Deployment, builder.Deployment("web", 1, builder.Simulated, unschedulable))
	await(t, "the release runs", func(ctx context.Context) error { _, err := w.release(ctx); return err })
	f.mustPlugin(t, 2, []string{"had not ended after 10s"}, "status", "deployment/web", "--timeout", "10s")
	f.mustPlugin(t, 0, []string{"deployment/web is Running", "no pod is in a batch yet"}, "explain", "deployment/web")
}

func TestWatchPrintsATreeAgainWhenItChanges(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create(t, workload.Deployment, builder.Deployment("web", 1, builder.Simulated, builder.Release("one")))
	w.awaitPhase(t, v1alpha1.ReleaseSuccess, 1)
	ctx, cancel := context.WithCancel(t.Context())
	out := &lockedBuffer{}
	done := make(chan int, 1)
	go func() {
		done <- cli.Run(ctx, "test", []string{"tree", "-w", "-n", f.namespace}, genericiooptions.IOStreams{Out: out, ErrOut: out})
	}()
	shows := func(word string) func(context.Context) error {
		return func(context.Context) error {
			if !strings.Contains(out.String(), word) {
				return fmt.Errorf("%q is not in\n%s", word, out.String())
			}
			return nil
		}
	}
	await(t, "the first release is shown", shows("attempt 1 (current)  Passed"))
	w.mustPatch(t, releaseOf("two"))
	await(t, "the second release is shown", shows("attempt 2 (current)  Passed"))
	cancel()
	if code := <-done; code != 0 {
		t.Errorf("the exit code is %d", code)
	}
}
