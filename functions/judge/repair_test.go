package judge_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	judgev1alpha1 "github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	"github.com/breakwater-dev/breakwater/functions/judge"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/judge/prometheus"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

// server is a pod that serves 20 requests/s from a time to another, relative to the release. Each nth request fails.
type server struct {
	pod      string
	from, to time.Duration
	nth      int
}

// servers answers with the counters of pods.
type servers []server

func (all servers) Range(_ context.Context, expression string, from, to time.Time, _ time.Duration) ([]samples.Series, error) {
	selector, _ := prometheus.ParseSelector(expression)
	var out []samples.Series
	for _, one := range all {
		s := samples.Series{Labels: map[string]string{"namespace": ft.Namespace, "pod": one.pod}}
		if !selector.Matchers.Match(s.Labels) {
			continue
		}
		for d := one.from; d <= one.to; d += 15 * time.Second {
			requests := int((d - one.from).Seconds()) * 20
			if selector.Name == "errors_total" {
				requests /= one.nth
			}
			if at := ft.Now().Add(d); at.After(from) && !at.After(to) {
				s.Points = append(s.Points, samples.Point{T: float64(at.Unix()), V: float64(requests)})
			}
		}
		if len(s.Points) > 0 {
			out = append(out, s)
		}
	}
	return out, nil
}

// pods returns n servers whose names begin with a prefix.
func pods(prefix string, n int, from, to time.Duration, nth int) servers {
	var out servers
	for i := range n {
		out = append(out, server{pod: prefix + "-" + string(rune('a'+i)), from: from, to: to, nth: nth})
	}
	return out
}

// newRepairFixture returns a release of a Deployment with ReplicaSets of versions v1 and v2, of which v2 failed.
func newRepairFixture(t *testing.T, reader servers) *fixture {
	t.Helper()
	f := newFixture(t, func(context.Context) (judge.Source, error) {
		return judge.Source{Reader: reader, Labels: judge.Labels{Namespace: "namespace", Pod: "pod"}}, nil
	}, newBatch(1, func(p *v1alpha1.ChangePod) { p.Spec.Judges[0].FailedVersions = []string{"v2"} }))
	for version, attempt := range map[string]string{"v1": "3", "v2": "4"} {
		rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: ft.Namespace, Name: version, UID: types.UID(version),
			Annotations:     map[string]string{v1alpha1.VersionKey: version, v1alpha1.AttemptAnnotation: attempt, savedtemplate.RevisionAnnotation: attempt},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "sleep", UID: "deployment", Controller: new(true)}},
		}}
		if err := f.Kube.Tracker().Add(rs); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// Good and bad old pods together differ so much that no fault of the new pods would be evidence, and bad ones alone
// are no worse than the same fault.
func TestARepairIsNotComparedWithAVersionThatFailed(t *testing.T) {
	const hour, end = -time.Hour, duration
	const few, many = 300, 20 // of the requests of a good and of a bad pod, each nth fails
	good := pods("v1", 7, hour, end, few)
	for name, tc := range map[string]struct {
		old    servers
		nth    int
		want   judgev1alpha1.Verdict
		reason string
	}{
		"the same fault, while v2 is held":        {append(pods("v2", 3, hour, end, many), good...), many, judgev1alpha1.VerdictFail, judgev1alpha1.ReasonMetricWorse},
		"the same fault, soon after a rollback":   {append(pods("v2", 3, hour, -5*time.Minute, many), good...), many, judgev1alpha1.VerdictFail, judgev1alpha1.ReasonMetricWorse},
		"without the fault, while v2 is held":     {append(pods("v2", 3, hour, end, many), good...), few, judgev1alpha1.VerdictPass, judgev1alpha1.ReasonNoChange},
		"the same fault, and all old pods failed": {pods("v2", 3, hour, end, many), many, judgev1alpha1.VerdictNone, judgev1alpha1.ReasonInsufficientData},
	} {
		t.Run(name, func(t *testing.T) {
			f := newRepairFixture(t, append(pods("sleep-new", 3, 0, end, tc.nth), tc.old...))
			if r := f.lookUntilFinal(t); r.Verdict != tc.want || r.Reason != tc.reason {
				t.Errorf("verdict %s, reason %s (%s), want %s, %s", r.Verdict, r.Reason, r.Message, tc.want, tc.reason)
			}
		})
	}
}

// A version may fail late, between two batches of the next release.
func TestBatchesOfOneReleaseHaveTheirOwnFailedVersions(t *testing.T) {
	const earlier, v2 = "v2-.+", "v2"
	for name, deleted := range map[string]bool{"at the same time": false, "the failed ReplicaSet was deleted": true} {
		t.Run(name, func(t *testing.T) {
			f := newRepairFixture(t, nil)
			first := f.ChangePod(ft.BatchName(1))
			first.Spec.Judges[0].FailedVersions = nil
			f.Write(first)
			if err := f.Change.Tracker().Add(newBatch(2, func(p *v1alpha1.ChangePod) { p.Spec.Judges[0].FailedVersions = []string{v2} })); err != nil {
				t.Fatal(err)
			}
			if old := f.comparedOf(t, 1).Old; !strings.Contains(old, earlier) {
				t.Errorf("the first batch is compared with %s, want also v2, which had not failed", old)
			}
			if deleted {
				if err := f.Kube.AppsV1().ReplicaSets(ft.Namespace).Delete(t.Context(), v2, metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				f.clock.SetTime(f.clock.Now().Add(20 * time.Second))
			}
			if old := f.comparedOf(t, 2).Old; strings.Contains(old, earlier) || !strings.Contains(old, "v1-.+") {
				t.Errorf("the second batch is compared with %s, want v1 without v2", old)
			}
		})
	}
}

// The minutes before the release are the reference of its probation, too.
func TestDuringProbationARepairIsNotComparedWithAVersionThatFailed(t *testing.T) {
	const hour, end = -time.Hour, 2 * time.Hour
	for name, tc := range map[string]struct {
		old  servers
		want judgev1alpha1.Verdict
	}{
		"v2 was held":         {append(pods("v2", 3, hour, 0, 20), pods("v1", 7, hour, 0, 300)...), judgev1alpha1.VerdictFail},
		"all old pods failed": {pods("v2", 3, hour, 0, 20), judgev1alpha1.VerdictPass}, // the new pods do not change
	} {
		t.Run(name, func(t *testing.T) {
			f := newRepairFixture(t, append(pods("sleep-new", 3, -time.Minute, end, 20), tc.old...))
			passed := passedBatch(func(p *v1alpha1.ChangePod) { p.Spec.Judges[0].FailedVersions = []string{"v2"} })
			f.Write(passed)
			f.onProbation(t, 0, 10*time.Minute)
			if err := f.wake(t, 1); err != nil {
				t.Fatal(err)
			}
			if r := f.ChangePod(ft.BatchName(1)).Status.Probation; r == nil || r.Verdict != tc.want {
				t.Errorf("the record is %+v, want %s", r, tc.want)
			}
		})
	}
}

// A pod of a StatefulSet may have the name of a pod of the failed version.
// versionOfImage is the version of a StatefulSet whose only container has an image.
func versionOfImage(image string) string {
	version, err := workload.Version(workload.StatefulSet, &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: image}}}})
	if err != nil {
		panic(err)
	}
	return version
}

func TestOldPodsOfAFailedVersionOfAWorkloadThatOwnsItsPods(t *testing.T) {
	const of = `namespace="default",pod=~"`
	for name, tc := range map[string]struct {
		kind   string
		failed []string
		// annotated is the version in the annotations of the failed pods' ControllerRevision.
		annotated string
		old       string
		nothing   bool
	}{
		"a DaemonSet":                  {"DaemonSet", []string{"v2"}, "v2", of + `ds-c"`, true},
		"a StatefulSet":                {"StatefulSet", []string{"v2"}, "v2", of + `ds-c"`, true},
		"a StatefulSet without a fail": {"StatefulSet", nil, "v2", of + `ds-b|ds-c"`, false},
		"another version failed":       {"StatefulSet", []string{"v0"}, "v2", of + `ds-b|ds-c"`, true},
		// The annotations of a ControllerRevision never change.
		"its revision is older than the opt-in":           {"StatefulSet", []string{versionOfImage("failed")}, "", of + `ds-c"`, true},
		"the webhook missed it":                           {"StatefulSet", []string{versionOfImage("failed")}, "v1", of + `ds-c"`, true},
		"a version failed that has a revision of its own": {"StatefulSet", []string{versionOfImage("old")}, versionOfImage("old"), of + `ds-b"`, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newOwnedFixture(t, tc.kind, map[string]string{"ds-a": "new", "ds-b": "failed", "ds-c": "old"}, "ds-a")
			batch := f.ChangePod(ft.BatchName(1))
			batch.Spec.Judges[0].FailedVersions = tc.failed
			f.Write(batch)
			for hash, version := range map[string]string{"new": ft.Version, "failed": "v2", "old": "v1"} {
				r := controllerRevision("ds-"+hash, 1, "ds", true)
				r.Data.Raw = fmt.Appendf(nil, `{"spec": {"template": {"$patch": "replace", "spec": {"containers": [{"name": "app", "image": %q}]}}}}`, hash)
				if hash == "failed" {
					version = tc.annotated
				}
				if version != "" {
					r.Annotations = map[string]string{v1alpha1.VersionKey: version, v1alpha1.AttemptAnnotation: "1"}
				}
				if err := f.Kube.Tracker().Add(r); err != nil {
					t.Fatal(err)
				}
			}
			if got := f.comparedOf(t, 1); got.Old != tc.old || got.NoReferenceBefore != tc.nothing {
				t.Errorf("compared with %s, no reference before %t, want %s, %t", got.Old, got.NoReferenceBefore, tc.old, tc.nothing)
			}
		})
	}
}
