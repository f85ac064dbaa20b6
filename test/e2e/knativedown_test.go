//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/knativetraffic"
	"github.com/breakwater-dev/breakwater/internal/workload"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
	"github.com/breakwater-dev/breakwater/test/e2e/faultinjection"
	"github.com/breakwater-dev/breakwater/test/e2e/serverdouble"
)

// badRevision is a release of the Knative Service web whose first batch waits for its POST verdict.
// The double does not send it.
type badRevision struct {
	*namespace
	// batch is the batch that waits.
	batch *v1alpha1.ChangePod
	order string
	// good is the Revision of the first version.
	good, bad string
	// generation is that of the Service when only its release is written.
	generation int64
	requests   *knativeRequests
}

// firstKnativeVersion creates the Service web and does not wait for it.
func (e *environment) firstKnativeVersion(t *testing.T) *namespace {
	t.Helper()
	n := e.optedInNamespace(t)
	n.applyManifest(t, fmt.Sprintf(knativeService, n.imageOfDouble(t)))
	return n
}

// personalSplit is a split of a person: the good Revision has a share and a tag of its own.
func personalSplit(good string) knativetraffic.Split {
	return knativetraffic.Split{{"latestRevision": true, "percent": int64(90)}, {"revisionName": good, "percent": int64(10), "tag": "stable"}}
}

// releaseBadRevision waits for the first version, and begins the release of the second one. Specs
// beside it kill the controller, so each wait includes a restart.
func (n *namespace) releaseBadRevision(t *testing.T) *badRevision {
	t.Helper()
	n.awaitAttempt(t, recoveryTimeout, workload.KnativeService, "web", 1, v1alpha1.ReleaseSuccess)
	good := n.revisionOf(t, 1)
	n.patchKnative(t, fmt.Sprintf(`{"spec":{"traffic":[{"latestRevision":true,"percent":90},{"revisionName":%q,"percent":10,"tag":"stable"}]}}`, good))
	requests := n.sendRequests(t, "web")
	requests.awaitOnly(t, good)
	n.setChecks(t, double.CheckRule{Match: batch(1, double.Post), Then: double.Behaviour{Never: true}})
	n.patchKnative(t, releaseOf("v2"))
	return &badRevision{namespace: n, good: good, requests: requests}
}

// awaitBatch waits until the batch of the second version waits for its POST verdict.
func (r *badRevision) awaitBatch(t *testing.T) {
	t.Helper()
	r.batch = r.awaitKnativeBatch(t, recoveryTimeout, 2)
	r.order = r.awaitAttempt(t, shortTimeout, workload.KnativeService, "web", 2, v1alpha1.ReleaseRunning).Spec.OrderID
	r.bad, r.generation = r.revisionOf(t, 2), r.knativeGeneration(t)
}

func (n *namespace) knativeGeneration(t *testing.T) int64 {
	t.Helper()
	u, err := n.dynamic.Resource(knativeServices()).Namespace(n.name).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return u.GetGeneration()
}

// fail sends the fail of the server once.
func (r *badRevision) fail(t *testing.T) {
	t.Helper()
	if status := post(t, callback(t, r.order, r.batch.Status.ChangePodID, "fail"), serverdouble.Token); status != http.StatusOK {
		t.Errorf("callback status %d, want 200: the verdict is stored", status)
	}
}

// checkHeld waits until the Service is suspended. One write gave the share of the bad Revision to the
// good one, and the next release is denied.
func (r *badRevision) checkHeld(t *testing.T) {
	t.Helper()
	kind := workload.KnativeService
	r.awaitAttempt(t, recoveryTimeout, kind, "web", 2, v1alpha1.ReleaseSuspend)
	r.awaitSplit(t, knativetraffic.Split{{"revisionName": r.good, "percent": int64(100), "tag": "stable"}})
	r.requests.awaitOnly(t, r.good)
	denied := r.try(t, "patch", kind.Argument(), "web", "--type=merge", "-p", releaseOf("v3"))
	if denied.Code == 0 || !strings.Contains(denied.Stderr, "service web is suspended") {
		t.Errorf("the next release: %+v", denied)
	}
	if got := r.knativeGeneration(t); got != r.generation+1 {
		t.Errorf("the spec of the Service changed %d times since its release, want once", got-r.generation)
	}
}

// startRepair applies a repair, which passes.
func (r *badRevision) startRepair(t *testing.T) {
	t.Helper()
	r.setChecks(t)
	r.patchKnative(t, repairOf("v3"))
}

// checkRepaired waits until the repair has succeeded, and the Service has a split.
func (r *badRevision) checkRepaired(t *testing.T, want knativetraffic.Split) {
	t.Helper()
	r.awaitAttempt(t, recoveryTimeout, workload.KnativeService, "web", 3, v1alpha1.ReleaseSuccess)
	await(t, shortTimeout, "the Service is not held", func(ctx context.Context) error {
		w, err := r.readWorkload(ctx, workload.KnativeService, "web")
		if err == nil && (w.Labels[v1alpha1.SuspendLabel] != "" || w.Annotations[v1alpha1.HoldAnnotation] != "") {
			err = fmt.Errorf("labels %v, annotations %v", w.Labels, w.Annotations)
		}
		return err
	})
	r.awaitSplit(t, want)
}

// awaitSplit waits until the Service has a split.
func (n *namespace) awaitSplit(t *testing.T, want knativetraffic.Split) {
	t.Helper()
	await(t, shortTimeout, fmt.Sprintf("spec.traffic is %v", want), func(ctx context.Context) error {
		w, err := n.readWorkload(ctx, workload.KnativeService, "web")
		if err == nil && !knativetraffic.Same(w.Traffic, want) {
			err = fmt.Errorf("spec.traffic is %v", w.Traffic)
		}
		return err
	})
}

// knativeServiceWithoutController: the controller is killed while a batch waits for its verdict, and
// again when the fail is stored.
func knativeServiceWithoutController(t *testing.T, e *environment) {
	r := e.firstKnativeVersion(t).releaseBadRevision(t)
	r.awaitBatch(t)
	e.deletePods(t, component("controller"))
	r.fail(t)
	await(t, recoveryTimeout, "the fail is stored in the batch", func(ctx context.Context) error {
		p, err := r.change.ChangePods(r.name).Get(ctx, r.batch.Name, metav1.GetOptions{})
		if err == nil && p.Status.VerdictOf(v1alpha1.StagePost) == nil {
			err = fmt.Errorf("status %+v", p.Status)
		}
		return err
	})
	e.deletePods(t, component("controller"))
	r.checkHeld(t)
	r.startRepair(t)
	r.checkRepaired(t, personalSplit(r.good))
	r.requests.awaitAnswer(t, r.revisionOf(t, 3))
}

// failWithoutBroker: the fail of a person moves the traffic while the Broker is down. The person
// then gives the bad Revision a tag, so the split stays as it is returned.
func (r *badRevision) failWithoutBroker(t *testing.T) (stays knativetraffic.Split) {
	t.Helper()
	r.judgeByHand(t, r.batch, "unpass", "find error")
	r.checkHeld(t)
	r.patchKnative(t, fmt.Sprintf(`{"spec":{"traffic":[{"revisionName":%q,"percent":100,"tag":"stable"},{"revisionName":%q,"percent":0,"tag":"debug"}]}}`, r.good, r.bad))
	return knativetraffic.Split{{"revisionName": r.good, "percent": int64(100), "tag": "stable"}, {"revisionName": r.bad, "tag": "debug"}}
}

// deletePods deletes each pod of a target without a grace period. It waits until there is one,
// because those of an earlier call may not be replaced yet.
func (e *environment) deletePods(t *testing.T, p target) {
	t.Helper()
	await(t, rolloutTimeout, "the pods of "+p.String()+" are deleted", func(ctx context.Context) error {
		pods, err := e.pods(ctx, p)
		if err == nil && len(pods) == 0 {
			err = errors.New("no pods")
		}
		for i := range pods {
			err = errors.Join(err, faultinjection.Delete(ctx, e.kube, &pods[i]))
		}
		return err
	})
}
