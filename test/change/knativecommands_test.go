//go:build controlplane

package change

import (
	"os/exec"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/breakwater-dev/breakwater/internal/workload"
)

// knUpdate changes the Service as kn service update does: kn reads it, changes fields, and replaces it.
// A test of test/e2e runs kn itself.
func (w target) knUpdate(t *testing.T, changes ...func(*testing.T, *unstructured.Unstructured)) error {
	t.Helper()
	service, err := w.live(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(t, service)
	}
	_, err = w.Dynamic.Resource(w.kind.GroupVersionResource()).Namespace(w.namespace).Update(t.Context(), service, metav1.UpdateOptions{FieldManager: "kn"})
	return err
}

// templateFlag is a flag of kn that changes an annotation of the template: each such flag, also one of
// scale, and each of the container, writes the time.
func templateFlag(annotation, value, time string) func(*testing.T, *unstructured.Unstructured) {
	return func(t *testing.T, service *unstructured.Unstructured) {
		t.Helper()
		for key, value := range map[string]string{annotation: value, "client.knative.dev/updateTimestamp": time} {
			if err := unstructured.SetNestedField(service.Object, value, "spec", "template", "metadata", "annotations", key); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// environmentFlag is --env A=VALUE.
func environmentFlag(value, time string) func(*testing.T, *unstructured.Unstructured) {
	return func(t *testing.T, service *unstructured.Unstructured) {
		t.Helper()
		containers, _, err := unstructured.NestedSlice(service.Object, "spec", "template", "spec", "containers")
		if err != nil {
			t.Fatal(err)
		}
		containers[0].(map[string]any)["env"] = []any{map[string]any{"name": "A", "value": value}}
		if err := unstructured.SetNestedSlice(service.Object, containers, "spec", "template", "spec", "containers"); err != nil {
			t.Fatal(err)
		}
		templateFlag("client.knative.dev/updateTimestamp", time, time)(t, service)
	}
}

// trafficFlags are --traffic, --tag and --untag. They write no time.
func trafficFlags(entries ...any) func(*testing.T, *unstructured.Unstructured) {
	return func(t *testing.T, service *unstructured.Unstructured) {
		t.Helper()
		if err := unstructured.SetNestedSlice(service.Object, entries, "spec", "traffic"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestKnServiceUpdateIsARelease(t *testing.T) {
	t.Parallel()
	w := newFixture(t).createKnativeService(t, 1)
	w.checkKnativeRelease(t, 1)
	if err := w.knUpdate(t, environmentFlag("b", "2026-01-01T10:00:00Z")); err != nil {
		t.Fatal(err)
	}
	w.rollOut(t, 1)
	w.checkKnativeRelease(t, 2)
	good := w.revisionOf(t, 2)
	if err := w.knUpdate(t, trafficFlags(map[string]any{"latestRevision": true, "percent": int64(100)},
		map[string]any{"revisionName": w.revisionOf(t, 1), "latestRevision": false, "tag": "former"})); err != nil {
		t.Fatal(err)
	}
	w.checkKnativeRelease(t, 2)

	if err := w.knUpdate(t, environmentFlag("c", "2026-01-01T11:00:00Z")); err != nil {
		t.Fatal(err)
	}
	w.failRollOut(t, 1, 3)
	w.checkTraffic(t, good)
	bad := w.revisionOf(t, 3)
	for what, change := range map[string]func(*testing.T, *unstructured.Unstructured){
		"--env A=d": environmentFlag("d", "2026-01-01T12:00:00Z"),
		"--scale 2": templateFlag("autoscaling.knative.dev/min-scale", "2", "2026-01-01T12:00:00Z"),
		"--traffic": trafficFlags(map[string]any{"revisionName": bad, "latestRevision": false, "percent": int64(100)}),
	} {
		if err := w.knUpdate(t, change); err == nil || !strings.Contains(err.Error(), "service web is suspended") {
			t.Errorf("kn service update web %s while it is suspended: %v", what, err)
		}
	}
	if err := w.knUpdate(t, trafficFlags(map[string]any{"revisionName": good, "latestRevision": false, "percent": int64(100)},
		map[string]any{"revisionName": bad, "latestRevision": false, "tag": "debug"})); err != nil {
		t.Errorf("kn service update web --tag %s=debug: %v", bad, err)
	}
}

func TestKubectlApplyOfAKnativeServiceIsARelease(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.useServing(t)
	apply := func(release string) (string, error) {
		command := exec.CommandContext(t.Context(), "kubectl", "apply", "-n", f.namespace, "-f", "-")
		command.Stdin = strings.NewReader("apiVersion: serving.knative.dev/v1\nkind: Service" + strings.Replace(knativeService, "release: v1", "release: "+release, 1))
		out, err := command.CombinedOutput()
		return string(out), err
	}
	mustApply := func(release string) {
		t.Helper()
		if out, err := apply(release); err != nil {
			t.Fatalf("apply %s: %s", release, out)
		}
	}
	mustApply("v1")
	w := target{f, workload.KnativeService, "web"}
	w.rollOut(t, 1)
	w.checkKnativeRelease(t, 1)
	if out, err := apply("v1"); err != nil || out != "service.serving.knative.dev/web unchanged\n" {
		t.Errorf("the same manifest: %s, %v", out, err)
	}
	mustApply("v2")
	w.rollOut(t, 1)
	w.checkKnativeRelease(t, 2)
	mustApply("v3")
	w.failRollOut(t, 1, 3)
	if out, err := apply("v4"); err == nil || !strings.Contains(out, "service web is suspended") {
		t.Errorf("apply while it is suspended: %s, %v", out, err)
	}
	w.checkTraffic(t, w.revisionOf(t, 2))
}
