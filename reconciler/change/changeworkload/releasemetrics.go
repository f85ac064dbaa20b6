package changeworkload

import (
	"time"

	"go.opentelemetry.io/otel/metric"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	listers "github.com/breakwater-dev/breakwater/client/listers/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/metrics"
)

// heldReasons are the reasons of condition Held while it is True.
var heldReasons = []string{v1alpha1.ReasonSuspended, v1alpha1.ReasonHeldUnjudged}

// observeReleases reports as metrics how many releases are held or drifted, how long the oldest batch has not been
// done, and how long a release has been stuck. The lists are those of the caches, so each replica reports the same. optedIn filters by namespace: in other
// namespaces nothing updates the status, so an alert about it would never end.
func observeReleases(meter metric.Meter, releases listers.ChangeWorkloadLister, batches listers.ChangePodLister, optedIn func(any) bool, clock clock.PassiveClock) {
	metrics.Observe(meter, "breakwater_releases_held", func(observe func(int64, ...string)) {
		all, _ := releases.List(labels.Everything()) // a cache returns no error
		for reason, n := range countHeld(filter(all, optedIn)) {
			observe(n, reason)
		}
	})
	metrics.Observe(meter, "breakwater_releases_drifted", func(observe func(int64, ...string)) {
		all, _ := releases.List(labels.Everything())
		observe(countDrifted(filter(all, optedIn)))
	})
	metrics.Observe(meter, "breakwater_oldest_batch_age_seconds", func(observe func(int64, ...string)) {
		all, _ := batches.List(labels.Everything())
		observe(int64(oldestBatch(filter(all, optedIn), clock.Now()).Seconds()))
	})
	metrics.Observe(meter, "breakwater_oldest_stuck_release_age_seconds", func(observe func(int64, ...string)) {
		all, _ := releases.List(labels.Everything())
		observe(int64(longestStuck(filter(all, optedIn), clock.Now()).Seconds()))
	})
}

// filter returns the objects that keep accepts.
func filter[T any](all []T, keep func(any) bool) []T {
	var kept []T
	for _, o := range all {
		if keep(o) {
			kept = append(kept, o)
		}
	}
	return kept
}

// countHeld counts the releases whose condition Held is True, by its reason. A reason without releases
// has 0, so that an alert ends.
func countHeld(releases []*v1alpha1.ChangeWorkload) map[string]int64 {
	count := map[string]int64{}
	for _, reason := range heldReasons {
		count[reason] = 0
	}
	for _, r := range releases {
		if c := r.Status.GetCondition(v1alpha1.ReleaseHeld); c != nil && c.Status == corev1.ConditionTrue {
			count[c.Reason]++
		}
	}
	return count
}

// countDrifted counts the releases whose condition Drifted is True.
func countDrifted(releases []*v1alpha1.ChangeWorkload) int64 {
	var n int64
	for _, r := range releases {
		if r.Status.GetCondition(v1alpha1.ReleaseDrifted).IsTrue() {
			n++
		}
	}
	return n
}

// longestStuck returns how long no batch has been created for a stuck release, after wait-threshold; 0 if none is stuck. A
// release without pods that wait for a batch, such as a canary, is stuck only if its workload reports it.
func longestStuck(releases []*v1alpha1.ChangeWorkload, now time.Time) time.Duration {
	var longest time.Duration
	for _, r := range releases {
		stuck := r.Status.Counts.Preparing > 0 || reasonOfSucceeded(r) == v1alpha1.ReasonRolloutStuck
		if r.Status.Phase == v1alpha1.ReleaseNoNewBatch && stuck {
			longest = max(longest, now.Sub(time.Unix(r.Status.EntryTimeUnix, 0)))
		}
	}
	return longest
}

// oldestBatch returns the age of the oldest batch that is not done; 0 if all are done.
func oldestBatch(batches []*v1alpha1.ChangePod, now time.Time) time.Duration {
	var oldest time.Duration
	for _, b := range batches {
		if b.Status.Phase != v1alpha1.BatchExecuteDone && b.DeletionTimestamp == nil {
			oldest = max(oldest, now.Sub(b.CreationTimestamp.Time))
		}
	}
	return oldest
}
