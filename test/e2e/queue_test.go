//go:build e2e

package e2e

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// setServer sets keys of the ConfigMap of the server until the test ends.
func (e *environment) setServer(t *testing.T, keys map[string]string) {
	t.Helper()
	e.setConfigMap(t, system, altershield.ConfigMapName, keys)
	observe(t, 2*time.Second) // it takes effect within 2 s
}

// manyReleases: 4 releases of 6 pods need 64 calls, for which the rate limit
// leaves 21 s if all replicas of function submit run, and more if one does. That is
// longer than every timeout of a stage. test/load has larger releases.
func manyReleases(t *testing.T, e *environment) {
	const (
		releases  = 4
		replicas  = 6
		perSecond = 3
		timeout   = 6 * time.Second
	)
	for _, kind := range []v1alpha1.ConfigType{v1alpha1.ConfigPreTimeout, v1alpha1.ConfigPostTimeout, v1alpha1.ConfigOrderTimeout} {
		e.setConfig(t, kind, timeout.String())
	}
	e.setServer(t, map[string]string{"qps": strconv.Itoa(perSecond), "burst": strconv.Itoa(perSecond)})
	n := e.optedInNamespace(t)
	for i := range releases {
		n.create(t, builder.Deployment(fmt.Sprintf("web%d", i), replicas, builder.Simulated))
	}
	for i := range releases {
		name := fmt.Sprintf("web%d", i)
		c := n.awaitPhase(t, 2*recoveryTimeout, name, v1alpha1.ReleaseSuccess)
		if got := c.Status.Counts; got != (v1alpha1.PodCounts{Pods: replicas, Passed: replicas}) {
			t.Errorf("%s: counts are %+v, want %d judged and passed pods", name, got, replicas)
		}
		if cond := c.Status.GetCondition(v1alpha1.ReleaseOrderJudged); !cond.IsTrue() {
			t.Errorf("%s: condition OrderJudged is %+v, want True", name, cond)
		}
	}
	n.checkQueued(t, timeout)
}

// checkQueued checks that some first calls were made later than the timeout after
// their batch was created, so that the test had a queue.
func (n *namespace) checkQueued(t *testing.T, timeout time.Duration) {
	t.Helper()
	list, err := n.change.ChangePods(n.name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	longest := time.Duration(0)
	for i := range list.Items {
		p := &list.Items[i]
		if cond := p.Status.GetCondition(v1alpha1.BatchJudged); !cond.IsTrue() {
			t.Errorf("%s: condition Judged is %+v, want True", p.Name, cond)
		}
		if first := p.Status.SubmissionOf(v1alpha1.StagePre).FirstIntent(); !first.IsZero() {
			longest = max(longest, first.Sub(p.CreationTimestamp.Time))
		}
	}
	if longest < timeout {
		t.Errorf("the first call of a batch waited at most %s: the queue was not longer than the timeout of a stage, %s", longest, timeout)
	}
}
