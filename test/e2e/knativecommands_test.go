//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	double "github.com/breakwater-dev/breakwater/test/altershield"
)

// knativeServiceCommands: kubectl apply, and kn service update, are releases that are judged. Both are
// denied while the Service is suspended, and --tag of kn is not.
func knativeServiceCommands(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	manifest := fmt.Sprintf(knativeService, n.imageOfDouble(t))
	kind := workload.KnativeService
	n.applyManifest(t, manifest)
	n.awaitSavedTemplate(t, kind, "web", 1)
	if err := n.knUpdate(t, environmentFlag("b")); err != nil {
		t.Fatal(err)
	}
	n.awaitSavedTemplate(t, kind, "web", 2)
	n.applyManifest(t, strings.ReplaceAll(manifest, `"v1"`, `"v2"`))
	n.awaitSavedTemplate(t, kind, "web", 3)
	good := n.revisionOf(t, 3)

	n.setChecks(t, double.CheckRule{Match: batch(1, double.Post), Then: failed()})
	if err := n.knUpdate(t, environmentFlag("c")); err != nil {
		t.Fatal(err)
	}
	n.awaitAttempt(t, rolloutTimeout, kind, "web", 4, v1alpha1.ReleaseSuspend)
	n.awaitTraffic(t, good)
	const denial = "service web is suspended"
	if err := n.knUpdate(t, environmentFlag("d")); err == nil || !strings.Contains(err.Error(), denial) {
		t.Errorf("kn service update web --env A=d: %v", err)
	}
	r, err := n.kubectl.RunWithInput(t.Context(), strings.ReplaceAll(manifest, `"v1"`, `"v3"`), "apply", "-f", "-")
	if err != nil || r.Code == 0 || !strings.Contains(r.Stderr, denial) {
		t.Errorf("kubectl apply: %v\n%s", err, r)
	}
	bad := n.revisionOf(t, 4)
	if err := n.knUpdate(t, func(t *testing.T, service *unstructured.Unstructured) {
		t.Helper()
		setNested(t, service, []any{
			map[string]any{"revisionName": good, "latestRevision": false, "percent": int64(100)},
			map[string]any{"revisionName": bad, "latestRevision": false, "tag": "debug"},
		}, "spec", "traffic")
	}); err != nil {
		t.Errorf("kn service update web --tag %s=debug: %v", bad, err)
	}
}

// knUpdate changes the Service web as kn service update does: kn reads it, changes fields, and replaces
// it. kn itself cannot be built here, because its Go module requires an unpublished one.
func (n *namespace) knUpdate(t *testing.T, change func(*testing.T, *unstructured.Unstructured)) error {
	t.Helper()
	services := n.dynamic.Resource(workload.KnativeService.GroupVersionResource()).Namespace(n.name)
	var last error
	await(t, shortTimeout, "kn updates the Service", func(ctx context.Context) error { // kn repeats after a conflict
		service, err := services.Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(t, service)
		if _, last = services.Update(ctx, service, metav1.UpdateOptions{FieldManager: "kn"}); apierrs.IsConflict(last) {
			return last
		}
		return nil
	})
	return last
}

// environmentFlag is --env A=VALUE of kn.
func environmentFlag(value string) func(*testing.T, *unstructured.Unstructured) {
	return func(t *testing.T, service *unstructured.Unstructured) {
		t.Helper()
		containers, _, err := unstructured.NestedSlice(service.Object, "spec", "template", "spec", "containers")
		if err != nil {
			t.Fatal(err)
		}
		containers[0].(map[string]any)["env"] = []any{map[string]any{"name": "A", "value": value}, map[string]any{"name": "TOKEN", "value": "x"}}
		setNested(t, service, containers, "spec", "template", "spec", "containers")
		setNested(t, service, time.Now().UTC().Format(time.RFC3339), "spec", "template", "metadata", "annotations", "client.knative.dev/updateTimestamp")
	}
}

func setNested(t *testing.T, u *unstructured.Unstructured, value any, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
		t.Fatal(err)
	}
}
