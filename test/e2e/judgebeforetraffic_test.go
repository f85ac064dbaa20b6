//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/knativetraffic"
	"github.com/breakwater-dev/breakwater/internal/workload"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
)

// knativeServiceJudgedBeforeTraffic: a new Revision answers requests to the address of its tag, and no
// others, until its first batch passed. One that fails answers no request of users, and none fails
// meanwhile. A sync of the former traffic changes nothing.
func knativeServiceJudgedBeforeTraffic(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	manifest := strings.Replace(fmt.Sprintf(knativeService, n.imageOfDouble(t)), `"metadata":{"name":"web"}`,
		`"metadata":{"name":"web","annotations":{"`+v1alpha1.JudgeBeforeTrafficAnnotation+`":"true"}}`, 1)
	n.applyManifest(t, manifest)
	kind := workload.KnativeService
	n.awaitSavedTemplate(t, kind, "web", 1)
	good := n.revisionOf(t, 1)
	requests := n.sendRequests(t, "web")
	requests.awaitOnly(t, good)

	n.setChecks(t, double.CheckRule{Match: batch(1, double.Post), Then: double.Behaviour{Never: true}})
	n.patchKnative(t, releaseOf("v2"))
	n.awaitTraffic(t, good)
	first := n.awaitKnativeBatch(t, rolloutTimeout, 2)
	next := n.revisionOf(t, 2)
	tagged := requests.target
	tagged.Host = knativetraffic.Tag + "-" + tagged.Host
	await(t, rolloutTimeout, "the tag reaches "+next, func(ctx context.Context) error {
		answer, err := tagged.Ask(ctx, shortTimeout)
		if err == nil && answer != next {
			err = fmt.Errorf("%s answers", answer)
		}
		return err
	})
	n.patchKnative(t, `{"spec":{"traffic":[{"latestRevision":true,"percent":100}]}}`)
	n.awaitTraffic(t, good)
	requests.awaitOnly(t, good)
	requests.checkNone(t, next)
	n.judgeByHand(t, first, "pass", "")
	n.awaitTraffic(t, "")
	n.awaitAttempt(t, rolloutTimeout, kind, "web", 2, v1alpha1.ReleaseSuccess)
	requests.awaitOnly(t, next)

	n.setChecks(t, double.CheckRule{Match: batch(1, double.Post), Then: failed()})
	n.patchKnative(t, releaseOf("v3"))
	n.awaitAttempt(t, rolloutTimeout, kind, "web", 3, v1alpha1.ReleaseSuspend)
	n.awaitTraffic(t, next)
	requests.awaitOnly(t, next)
	requests.checkNone(t, n.revisionOf(t, 3))
	n.setChecks(t)
	n.patchKnative(t, repairOf("v4"))
	n.awaitAttempt(t, rolloutTimeout, kind, "web", 4, v1alpha1.ReleaseSuccess)
	n.awaitTraffic(t, "")
	requests.awaitOnly(t, n.revisionOf(t, 4))
}

// awaitKnativeBatch waits until the first batch of an attempt waits for its POST verdict.
func (n *namespace) awaitKnativeBatch(t *testing.T, within time.Duration, attempt int64) *v1alpha1.ChangePod {
	t.Helper()
	c := n.awaitAttempt(t, within, workload.KnativeService, "web", attempt, v1alpha1.ReleaseRunning)
	var found *v1alpha1.ChangePod
	await(t, within, "the first batch waits for its POST verdict", func(ctx context.Context) (err error) {
		found, err = n.change.ChangePods(n.name).Get(ctx, v1alpha1.ChangePodName(c.Name, 1), metav1.GetOptions{})
		if err == nil && !awaitsPostVerdict(found) {
			err = fmt.Errorf("status %+v", found.Status)
		}
		return err
	})
	return found
}

// checkNone fails if a Revision answered a request.
func (r *knativeRequests) checkNone(t *testing.T, revision string) {
	t.Helper()
	if share := r.shareOf(revision); share != revision+" answered no request" {
		t.Error(share)
	}
}
