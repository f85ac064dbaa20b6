//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/knativetraffic"
	"github.com/breakwater-dev/breakwater/internal/workload"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
)

// knativeService is a Service of the double's image, which listens on Serving's port. It keeps a
// pod, so that the tests do not depend on the time of scaling to zero.
const knativeService = `{"apiVersion":"serving.knative.dev/v1","kind":"Service","metadata":{"name":"web"},"spec":{"template":{
"metadata":{"annotations":{"test.breakwater.dev/release":"v1","autoscaling.knative.dev/min-scale":"1"}},
"spec":{"enableServiceLinks":false,"containers":[{"image":%q,"env":[{"name":"TOKEN","value":"x"}]}]}}}}`

// knativeServiceReleases: a good Revision passes. A bad one loses its traffic, also when Serving
// rolls it out gradually, the next is denied, and a repair succeeds. No request fails meanwhile.
func knativeServiceReleases(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	image := n.imageOfDouble(t)
	n.applyManifest(t, fmt.Sprintf(knativeService, image))
	kind := workload.KnativeService
	n.awaitSavedTemplate(t, kind, "web", 1)
	good := n.revisionOf(t, 1)
	requests := n.sendRequests(t, "web")
	requests.awaitOnly(t, good)

	n.setChecks(t, double.CheckRule{Match: batch(1, double.Post), Then: failed()})
	n.patchKnative(t, releaseOf("v2"))
	n.awaitAttempt(t, rolloutTimeout, kind, "web", 2, v1alpha1.ReleaseSuspend)
	n.awaitTraffic(t, good)
	requests.awaitOnly(t, good)
	t.Log("at once: " + requests.shareOf(n.revisionOf(t, 2)))
	denied := n.try(t, "patch", kind.Argument(), "web", "--type=merge", "-p", releaseOf("v3"))
	if denied.Code == 0 || !strings.Contains(denied.Stderr, "service web is suspended") {
		t.Errorf("the next release: %+v", denied)
	}
	n.setChecks(t)
	n.patchKnative(t, repairOf("v3"))
	n.awaitTraffic(t, good)
	n.awaitAttempt(t, rolloutTimeout, kind, "web", 3, v1alpha1.ReleaseSuccess)
	n.awaitTraffic(t, "")
	repaired := n.revisionOf(t, 3)
	requests.awaitOnly(t, repaired)

	n.setChecks(t, double.CheckRule{Match: batch(1, double.Post), Then: failed()})
	n.patchKnative(t, strings.Replace(releaseOf("v4"), `{"spec"`, `{"metadata":{"annotations":{"serving.knative.dev/rollout-duration":"10m"}},"spec"`, 1))
	n.awaitAttempt(t, rolloutTimeout, kind, "web", 4, v1alpha1.ReleaseSuspend)
	n.awaitTraffic(t, repaired)
	requests.awaitOnly(t, repaired)
	t.Log("gradually, in 10 minutes: " + requests.shareOf(n.revisionOf(t, 4)))
	n.checkKindOfReleases(t, kind)
}

// checkKindOfReleases fails if a release is of another kind, such as the Deployment of a Revision.
func (n *namespace) checkKindOfReleases(t *testing.T, kind workload.Kind) {
	t.Helper()
	all, err := n.change.ChangeWorkloads(n.name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range all.Items {
		if of := all.Items[i].Spec.WorkloadRef; of.Kind != kind.Kind {
			t.Errorf("%s is of %s %s", all.Items[i].Name, of.Kind, of.Name)
		}
	}
}

// imageOfDouble returns the image of the double.
func (n *namespace) imageOfDouble(t *testing.T) string {
	t.Helper()
	d, err := n.kube.AppsV1().Deployments("altershield").Get(t.Context(), "altershield", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d.Spec.Template.Spec.Containers[0].Image
}

func (n *namespace) patchKnative(t *testing.T, body string) {
	t.Helper()
	_, err := n.dynamic.Resource(workload.KnativeService.GroupVersionResource()).Namespace(n.name).
		Patch(t.Context(), "web", types.MergePatchType, []byte(body), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// revisionOf returns the Revision of an attempt.
func (n *namespace) revisionOf(t *testing.T, attempt int64) string {
	t.Helper()
	list, err := n.kube.AppsV1().Deployments(n.name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if release, known := v1alpha1.ReleaseOf(list.Items[i].Annotations); known && release.Attempt == attempt {
			return metav1.GetControllerOf(&list.Items[i]).Name
		}
	}
	t.Fatalf("no Revision of attempt %d", attempt)
	return ""
}

// awaitTraffic waits until all requests go to a Revision; to the latest if the name is empty.
func (n *namespace) awaitTraffic(t *testing.T, revision string) {
	t.Helper()
	of := knativetraffic.Revisions{Names: []string{revision}, Latest: revision == ""}
	await(t, 30*time.Second, fmt.Sprintf("all traffic goes to %q", revision), func(ctx context.Context) error {
		w, err := n.readWorkload(ctx, workload.KnativeService, "web")
		if err == nil && of.Share(w.Traffic) != 100 {
			err = fmt.Errorf("spec.traffic is %v", w.Traffic)
		}
		return err
	})
}
