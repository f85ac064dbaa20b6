//go:build controlplane

package change

import (
	"context"
	"regexp"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	judgev1alpha1 "github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	"github.com/breakwater-dev/breakwater/functions/judge"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

// emptyPrometheus has no series.
type emptyPrometheus struct{}

func (emptyPrometheus) Range(context.Context, string, time.Time, time.Time, time.Duration) ([]samples.Series, error) {
	return nil, nil
}

// look lets function judge look at the metrics of the first batch of an attempt, and returns the pods
// that it compares.
func (w target) look(t *testing.T, attempt int64) judgev1alpha1.Target {
	t.Helper()
	batch := w.awaitBatch(t, attempt)
	release, err := w.release(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	handle := judge.New(judge.Options{
		Change: w.Breakwater, Kube: w.Kube, Signer: ft.JudgeKey(v1alpha1.JudgeMetrics), Verifier: ft.EventKeys(), Clock: clock.RealClock{}, Meter: noop.Meter{},
		CurrentSource: func(context.Context) (judge.Source, error) {
			return judge.Source{Reader: emptyPrometheus{}, Labels: judge.Labels{Namespace: "namespace", Pod: "pod"}}, nil
		},
	})
	e, err := events.New(events.ChangePodReady{
		Namespace: batch.Namespace, Name: batch.Name, UID: batch.UID, ChangeWorkload: release.Name,
		Version: release.Spec.Reversion, Attempt: release.Spec.Attempt, Stage: v1alpha1.StagePost, Judge: v1alpha1.JudgeMetrics,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := handle(t.Context(), ft.SignedByController(t, e)); err != nil {
		t.Fatal(err)
	}
	looked, err := w.Breakwater.AppV1alpha1().ChangePods(w.namespace).Get(t.Context(), batch.Name, metav1.GetOptions{})
	if err != nil || looked.Status.MetricRecord == nil {
		t.Fatalf("the batch has no record: %v", err)
	}
	return looked.Status.MetricRecord.Target
}

// The Revision of the first release has no pods any more when the second one is looked at.
func TestTheJudgeComparesThePodsOfTheRevisionsOfAKnativeService(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if err := f.createCheck(t.Context(), 24*time.Hour, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w := f.createKnativeService(t, 1)
	before := w.podNames(t)
	w.writeFacts(t, 1, map[string]any{"judges": verdictOfMetrics("pass")})
	w.checkKnativeRelease(t, 1)
	w.mustPatch(t, releaseOf("v2"))
	w.rollOut(t, 1)
	compared := w.look(t, 2)
	checkMatches(t, "old", compared.Old, before)
	var after []string
	for _, name := range w.podNames(t) {
		if name != before[0] {
			after = append(after, name)
		}
	}
	checkMatches(t, "new", compared.New, after)
	if compared.New == compared.Old {
		t.Errorf("both are %s", compared.New)
	}
}

func (w target) podNames(t *testing.T) (names []string) {
	t.Helper()
	pods, err := w.Kube.CoreV1().Pods(w.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		names = append(names, pods.Items[i].Name)
	}
	return names
}

// checkMatches fails if a matcher does not match all names.
func checkMatches(t *testing.T, side, matcher string, names []string) {
	t.Helper()
	value := regexp.MustCompile(`pod=~"(.+)"$`).FindStringSubmatch(matcher)
	if value == nil || len(names) == 0 {
		t.Fatalf("%s pods are %q, names are %v", side, matcher, names)
	}
	for _, name := range names {
		if !regexp.MustCompile("^(" + value[1] + ")$").MatchString(name) {
			t.Errorf("%s pods are %s, which does not match %s", side, matcher, name)
		}
	}
}
