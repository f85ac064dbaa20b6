//go:build controlplane

package change

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	judgev1alpha1 "github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// createCheck creates a MetricCheck with a probation.
func (f fixture) createCheck(ctx context.Context, probation time.Duration, options metav1.CreateOptions) error {
	check := &judgev1alpha1.MetricCheck{ObjectMeta: metav1.ObjectMeta{Name: "check"}}
	check.Spec.AnalysisDuration.Duration = time.Minute
	check.Spec.Probation = &metav1.Duration{Duration: probation}
	_, err := f.Breakwater.JudgeV1alpha1().MetricChecks(f.namespace).Create(ctx, check, options)
	return err
}

func TestAProbationIsFromAMinuteToThreeDays(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for probation, valid := range map[time.Duration]bool{
		0: false, 59 * time.Second: false, time.Minute: true, 72 * time.Hour: true, 72*time.Hour + time.Second: false,
	} {
		err := f.createCheck(t.Context(), probation, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if valid && err != nil || !valid && (err == nil || !strings.Contains(err.Error(), "write a duration from 1m to 72h, for example 24h")) {
			t.Errorf("probation %s: %v", probation, err)
		}
	}
}

// writeFacts writes facts into the first batch of an attempt, as the functions do.
func (w target) writeFacts(t *testing.T, attempt int64, status map[string]any) {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Breakwater.AppV1alpha1().ChangePods(w.namespace).
		Patch(t.Context(), w.awaitBatch(t, attempt).Name, types.MergePatchType, raw, metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
}

func verdictOfMetrics(verdict string) []v1alpha1.JudgeVerdict {
	return []v1alpha1.JudgeVerdict{{Judge: v1alpha1.JudgeMetrics, Stage: v1alpha1.StagePost, Verdict: verdict, Message: "errors", Time: metav1.NowMicro()}}
}

// awaitProbation waits until the probation of a release has this number of looks, and is active or not.
func (w target) awaitProbation(t *testing.T, name string, looks int32, active bool) *v1alpha1.Probation {
	t.Helper()
	var found *v1alpha1.Probation
	await(t, fmt.Sprintf("release %s was looked at %d times, on probation: %t", name, looks, active), func(ctx context.Context) error {
		c, err := w.Breakwater.AppV1alpha1().ChangeWorkloads(w.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if found = c.Status.Probation; found == nil || found.Looks != looks || (found.NextLookTime != nil) != active {
			return fmt.Errorf("status %s, probation %+v", c.Status.Phase, found)
		}
		return nil
	})
	return found
}

func TestAReleaseOnProbationIsSuspendedByALateFailAndANewerOneEndsIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if err := f.createCheck(t.Context(), 24*time.Hour, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w := f.create(t, workload.Deployment, builder.Deployment("web", 1, builder.Simulated))
	w.writeFacts(t, 1, map[string]any{"judges": verdictOfMetrics("pass")})
	first := w.awaitPhase(t, v1alpha1.ReleaseSuccess, 1)
	p := w.awaitProbation(t, first.Name, 0, true)
	success := time.Unix(first.Status.EntryTimeUnix, 0)
	if end, next := p.EndTime.Sub(success), p.NextLookTime.Sub(success); end != 24*time.Hour || next != 10*time.Minute {
		t.Errorf("the probation ends after %s, the first look is after %s", end, next)
	}

	record := func(verdict judgev1alpha1.Verdict) judgev1alpha1.Record {
		now := metav1.Now()
		return judgev1alpha1.Record{Verdict: verdict, Reason: "R", Message: "m", Final: verdict == judgev1alpha1.VerdictFail, Looks: 1, LookTime: now, EndTime: now,
			Target: judgev1alpha1.Target{New: "a", StartTime: now}}
	}
	w.writeFacts(t, 1, map[string]any{"probation": record(judgev1alpha1.VerdictPass)})
	if p := w.awaitProbation(t, first.Name, 1, true); p.Message != "R: m" {
		t.Errorf("the message of the last look is %q", p.Message)
	}

	w.mustPatch(t, releaseOf("v2"))
	w.writeFacts(t, 2, map[string]any{"judges": verdictOfMetrics("pass")})
	second := w.awaitPhase(t, v1alpha1.ReleaseSuccess, 2)
	w.awaitProbation(t, first.Name, 1, false)
	w.awaitProbation(t, second.Name, 0, true)

	w.writeFacts(t, 2, map[string]any{"probation": record(judgev1alpha1.VerdictFail), "judges": verdictOfMetrics("fail")})
	w.awaitPhase(t, v1alpha1.ReleaseSuspend, 2)
	w.awaitWorkload(t, "is suspended", func(live *workload.Workload) bool { return live.Labels[v1alpha1.SuspendLabel] != "" })
	w.awaitProbation(t, second.Name, 1, false)
}
