package changeworkload

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	listers "github.com/breakwater-dev/breakwater/client/listers/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/reconciler/change/namespaceoptin"
)

func TestHeldReleasesAreCountedByReason(t *testing.T) {
	release := func(status corev1.ConditionStatus, reason string) *v1alpha1.ChangeWorkload {
		r := &v1alpha1.ChangeWorkload{}
		r.Status.Conditions = []apis.Condition{{Type: v1alpha1.ReleaseHeld, Status: status, Reason: reason}}
		return r
	}
	for name, tc := range map[string]struct {
		releases []*v1alpha1.ChangeWorkload
		want     map[string]int64
	}{
		"none":                {nil, map[string]int64{v1alpha1.ReasonSuspended: 0, v1alpha1.ReasonHeldUnjudged: 0}},
		"without a condition": {[]*v1alpha1.ChangeWorkload{{}}, map[string]int64{v1alpha1.ReasonSuspended: 0, v1alpha1.ReasonHeldUnjudged: 0}},
		"held and not held": {[]*v1alpha1.ChangeWorkload{
			release(corev1.ConditionTrue, v1alpha1.ReasonSuspended), release(corev1.ConditionTrue, v1alpha1.ReasonSuspended),
			release(corev1.ConditionTrue, v1alpha1.ReasonHeldUnjudged), release(corev1.ConditionFalse, v1alpha1.ReasonNotSuspended),
		}, map[string]int64{v1alpha1.ReasonSuspended: 2, v1alpha1.ReasonHeldUnjudged: 1}},
	} {
		if diff := cmp.Diff(tc.want, countHeld(tc.releases)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestReleasesWhoseConditionDriftedIsTrueAreCounted(t *testing.T) {
	of := func(t apis.ConditionType) *v1alpha1.ChangeWorkload {
		r := &v1alpha1.ChangeWorkload{}
		r.Status.Conditions = []apis.Condition{{Type: t, Status: corev1.ConditionTrue}}
		return r
	}
	if n := countDrifted([]*v1alpha1.ChangeWorkload{{}, of(v1alpha1.ReleaseHeld), of(v1alpha1.ReleaseDrifted)}); n != 1 {
		t.Errorf("counted %d, want 1", n)
	}
}

func TestTheAgeIsThatOfTheOldestBatchThatIsNotDone(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	batch := func(age time.Duration, phase v1alpha1.BatchPhase) *v1alpha1.ChangePod {
		b := &v1alpha1.ChangePod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-age))}}
		b.Status.Phase = phase
		return b
	}
	deleted := batch(time.Hour, v1alpha1.BatchPreWait)
	deleted.DeletionTimestamp = &metav1.Time{Time: now}
	for name, tc := range map[string]struct {
		batches []*v1alpha1.ChangePod
		want    time.Duration
	}{
		"none":                   {nil, 0},
		"all done":               {[]*v1alpha1.ChangePod{batch(time.Hour, v1alpha1.BatchExecuteDone)}, 0},
		"the oldest counts":      {[]*v1alpha1.ChangePod{batch(time.Minute, v1alpha1.BatchInit), batch(5*time.Minute, v1alpha1.BatchPostSubmitted)}, 5 * time.Minute},
		"a deleted one does not": {[]*v1alpha1.ChangePod{deleted, batch(time.Second, v1alpha1.BatchPreWait)}, time.Second},
	} {
		if got := oldestBatch(tc.batches, now); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}

func TestAReleaseIsStuckIfItsPodsAreNotReadyOrItsWorkloadReportsIt(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	release := func(age time.Duration, phase v1alpha1.ReleasePhase, preparing int32, reason string) *v1alpha1.ChangeWorkload {
		r := &v1alpha1.ChangeWorkload{}
		r.Status.Phase, r.Status.EntryTimeUnix, r.Status.Counts.Preparing = phase, now.Add(-age).Unix(), preparing
		r.Status.Conditions = []apis.Condition{{Type: apis.ConditionSucceeded, Status: corev1.ConditionUnknown, Reason: reason}}
		return r
	}
	const noNewBatch, waits = v1alpha1.ReleaseNoNewBatch, v1alpha1.ReasonRollingOut
	for name, tc := range map[string]struct {
		releases []*v1alpha1.ChangeWorkload
		want     time.Duration
	}{
		"none":                                {nil, 0},
		"a canary that waits":                 {[]*v1alpha1.ChangeWorkload{release(time.Hour, noNewBatch, 0, waits)}, 0},
		"a rollout in progress":               {[]*v1alpha1.ChangeWorkload{release(time.Hour, v1alpha1.ReleaseRunning, 3, waits)}, 0},
		"pods that are not Ready":             {[]*v1alpha1.ChangeWorkload{release(time.Hour, noNewBatch, 3, waits)}, time.Hour},
		"pods that were refused":              {[]*v1alpha1.ChangeWorkload{release(time.Hour, noNewBatch, 0, v1alpha1.ReasonRolloutStuck)}, time.Hour},
		"the one that waits longest counts":   {[]*v1alpha1.ChangeWorkload{release(time.Hour, noNewBatch, 3, waits), release(time.Minute, noNewBatch, 3, waits)}, time.Hour},
		"a timeout ended it, and is reported": {[]*v1alpha1.ChangeWorkload{release(time.Hour, v1alpha1.ReleaseFailed, 3, v1alpha1.ReasonReleaseTimedOut)}, 0},
	} {
		if got := longestStuck(tc.releases, now); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}

// Nothing writes the status of the others, so they would be held for ever.
func TestOnlyReleasesAndBatchesOfOptedInNamespacesAreReported(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	namespaces, releases, batches := newIndexer(), newIndexer(), newIndexer()
	for name, label := range map[string]string{"in": v1alpha1.NamespaceEnabled, "out": "disabled"} {
		add(t, namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.NamespaceLabel: label}}})
	}
	for namespace, age := range map[string]time.Duration{"in": time.Minute, "out": time.Hour, "deleted": time.Hour} {
		release := &v1alpha1.ChangeWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-1"}}
		release.Status.Phase, release.Status.Counts.Preparing, release.Status.EntryTimeUnix = v1alpha1.ReleaseNoNewBatch, 1, now.Add(-age).Unix()
		release.Status.Conditions = []apis.Condition{
			{Type: v1alpha1.ReleaseHeld, Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonSuspended},
			{Type: v1alpha1.ReleaseDrifted, Status: corev1.ConditionTrue},
		}
		add(t, releases, release)
		add(t, batches, &v1alpha1.ChangePod{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "web-1-0", CreationTimestamp: metav1.NewTime(now.Add(-age)),
		}})
	}
	reader := sdkmetric.NewManualReader()
	observeReleases(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test"), listers.NewChangeWorkloadLister(releases),
		listers.NewChangePodLister(batches), namespaceoptin.Filter(corelisters.NewNamespaceLister(namespaces)), clocktesting.NewFakePassiveClock(now))

	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, m := range all.ScopeMetrics[0].Metrics {
		for _, p := range m.Data.(metricdata.Gauge[int64]).DataPoints {
			got[m.Name] = max(got[m.Name], p.Value)
		}
	}
	want := map[string]int64{"breakwater_releases_held": 1, "breakwater_releases_drifted": 1, "breakwater_oldest_batch_age_seconds": 60,
		"breakwater_oldest_stuck_release_age_seconds": 60}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func newIndexer() cache.Indexer {
	return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}
