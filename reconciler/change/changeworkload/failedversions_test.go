package changeworkload

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"knative.dev/pkg/apis"
	duckv1 "knative.dev/pkg/apis/duck/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	judgev1alpha1 "github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
	changelisters "github.com/breakwater-dev/breakwater/client/listers/change/v1alpha1"
	judgelisters "github.com/breakwater-dev/breakwater/client/listers/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// released returns a release of workload w in a phase. One that was replaced after its fail has the reason.
func released(version string, attempt int64, phase v1alpha1.ReleasePhase, reason string) *v1alpha1.ChangeWorkload {
	c := &v1alpha1.ChangeWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web--x--" + version, UID: types.UID(version)}}
	c.Spec = v1alpha1.ChangeWorkloadSpec{ChangeWorkloadID: c.Name, Reversion: version, Attempt: attempt, WorkloadRef: v1alpha1.WorkloadRef{UID: "w"}}
	c.Status.Phase = phase
	if reason != "" {
		c.Status.Conditions = duckv1.Conditions{{Type: apis.ConditionSucceeded, Status: "False", Reason: reason}}
	}
	return c
}

func TestTheVersionsThatFailed(t *testing.T) {
	good := released("v1", 1, v1alpha1.ReleaseSuccess, "")
	current := released("v3", 9, v1alpha1.ReleaseRunning, "")
	suspended := released("v2", 2, v1alpha1.ReleaseSuspend, "")
	of := func(all ...*v1alpha1.ChangeWorkload) []*v1alpha1.ChangeWorkload { return append(all, good, current) }
	var many []*v1alpha1.ChangeWorkload
	var latest []string
	for n := int64(60); n > 0; n-- {
		many = append(many, released(fmt.Sprint("f", n), n, v1alpha1.ReleaseSuspend, ""))
		latest = append(latest, fmt.Sprint("f", n))
	}
	for name, tc := range map[string]struct {
		releases []*v1alpha1.ChangeWorkload
		rollback *v1alpha1.Rollback
		want     []string
	}{
		"none":                     {of(), nil, nil},
		"it is suspended":          {of(suspended), nil, []string{"v2"}},
		"a repair replaced it":     {of(released("v2", 2, v1alpha1.ReleaseFailed, v1alpha1.ReasonCheckFailed)), nil, []string{"v2"}},
		"a newer one replaced it":  {of(released("v2", 2, v1alpha1.ReleaseFailed, v1alpha1.ReasonSuperseded)), nil, nil},
		"the latest first":         {of(released("v4", 4, v1alpha1.ReleaseSuspend, ""), suspended, released("v5", 5, v1alpha1.ReleaseSuspend, "")), nil, []string{"v5", "v4", "v2"}},
		"not all of many":          {many, nil, latest[:50]},
		"not the current one":      {[]*v1alpha1.ChangeWorkload{released("v3", 9, v1alpha1.ReleaseSuspend, "")}, nil, nil},
		"it was rolled back":       {of(), &v1alpha1.Rollback{FromVersion: "v2", FromAttempt: 2}, []string{"v2"}},
		"the rollback runs":        {of(suspended), &v1alpha1.Rollback{FromVersion: "v2", FromAttempt: 2}, []string{"v2"}},
		"a person rolled it back":  {of(released("v2", 2, v1alpha1.ReleaseSuccess, "")), &v1alpha1.Rollback{FromVersion: "v2", FromAttempt: 2}, []string{"v2"}},
		"it was released again":    {of(released("v2", 4, v1alpha1.ReleaseSuccess, "")), &v1alpha1.Rollback{FromVersion: "v2", FromAttempt: 2}, nil},
		"it was, and failed again": {of(released("v2", 4, v1alpha1.ReleaseSuspend, "")), &v1alpha1.Rollback{FromVersion: "v2", FromAttempt: 2}, []string{"v2"}},
		"a user wrote its version": {of(), &v1alpha1.Rollback{FromVersion: strings.Repeat("v", 64), FromAttempt: 2}, nil},
		// A Knative Service has another Revision for each attempt.
		"it is the current one again":     {of(), &v1alpha1.Rollback{FromVersion: "v3", FromAttempt: 2}, []string{"v3"}},
		"the current one was rolled back": {of(), &v1alpha1.Rollback{FromVersion: "v3", FromAttempt: 9}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := failedVersions(current.Release(), tc.releases, tc.rollback); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestABatchNamesTheVersionsThatFailed(t *testing.T) {
	other := released("v4", 4, v1alpha1.ReleaseSuspend, "")
	other.Spec.WorkloadRef.UID = "other"
	for name, tc := range map[string]struct {
		kind workload.Kind
		want []string
	}{
		"a Deployment": {workload.Deployment, []string{"v5", "v2"}},
		// Its pods may have the names of those of a version that was rolled back long ago.
		"a StatefulSet": {workload.StatefulSet, []string{"v2"}},
	} {
		t.Run(name, func(t *testing.T) {
			current := released("v3", 9, v1alpha1.ReleaseRunning, "")
			releases, checks := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}), cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
			for _, c := range []*v1alpha1.ChangeWorkload{current, other, released("v2", 2, v1alpha1.ReleaseFailed, v1alpha1.ReasonCheckFailed)} {
				if err := releases.Add(c); err != nil {
					t.Fatal(err)
				}
			}
			if err := checks.Add(&judgev1alpha1.MetricCheck{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "check"}}); err != nil {
				t.Fatal(err)
			}
			r := &Reconciler{
				client: fake.NewSimpleClientset(current), lister: changelisters.NewChangeWorkloadLister(releases), metricChecks: judgelisters.NewMetricCheckLister(checks),
			}
			w := &workload.Workload{Kind: tc.kind, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "w",
				Annotations: map[string]string{v1alpha1.RollbackAnnotation: `{"fromVersion":"v5","fromAttempt":5,"toVersion":"v1","attempt":6}`}}}
			in := Input{Now: time.Unix(1700000000, 0), Settings: settings.Default(), ChangeWorkload: current}
			if err := r.createBatches(t.Context(), in, w, [][]v1alpha1.PodSummary{{{Pod: "p1"}}}); err != nil {
				t.Fatal(err)
			}
			made, err := r.client.AppV1alpha1().ChangePods("default").Get(t.Context(), v1alpha1.ChangePodName(current.Name, 1), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if j := made.JudgeOf(v1alpha1.JudgeMetrics); j == nil || !slices.Equal(j.FailedVersions, tc.want) {
				t.Errorf("the judge is %+v, want the failed versions %q", j, tc.want)
			}
		})
	}
}
