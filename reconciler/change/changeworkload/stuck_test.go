package changeworkload

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/record"
	"knative.dev/pkg/apis"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

const (
	quotaExceeded    = `{"type":"ReplicaFailure","status":"True","reason":"FailedCreate","message":"pods \"web-1\" is forbidden: exceeded quota"}`
	deadlineExceeded = `{"type":"Progressing","status":"False","reason":"ProgressDeadlineExceeded","message":"ReplicaSet \"web-2\" has timed out progressing."}`
)

// stuck reads the workload from an object that its controller has observed, with these conditions.
func stuck(t *testing.T, kind workload.Kind, conditions ...string) func(*Input) {
	return func(in *Input) {
		w := readWorkload(t, kind, fmt.Sprintf(`{"metadata":{"name":"web","labels":{%q:"v"},"annotations":{%q:"2"}},"spec":{"replicas":2},
			"status":{"replicas":1,"conditions":[%s]}}`, v1alpha1.VersionKey, v1alpha1.AttemptAnnotation, strings.Join(conditions, ",")))
		in.Workload = workloadOf(w, workload.ExcludedNodes{})
	}
}

func TestAReleaseSaysWhyItsControllerMakesNoProgress(t *testing.T) {
	const quota, timedOut = `Deployment reports ReplicaFailure: pods "web-1" is forbidden: exceeded quota`,
		`Deployment reports ProgressDeadlineExceeded: ReplicaSet "web-2" has timed out progressing.`
	const waits, isStuck = "RollingOut", "RolloutStuck"
	for name, tc := range map[string]struct {
		options      []func(*Input)
		reason, says string
	}{
		"pods are refused":                    {[]func(*Input){stuck(t, workload.Deployment, quotaExceeded)}, waits, quota},
		"pods are refused for wait-threshold": {[]func(*Input){stuck(t, workload.Deployment, quotaExceeded), after(time.Minute)}, isStuck, quota},
		"the deadline passed":                 {[]func(*Input){stuck(t, workload.Deployment, deadlineExceeded), starting(1), after(time.Hour)}, isStuck, timedOut},
		"both":                                {[]func(*Input){stuck(t, workload.Deployment, deadlineExceeded, quotaExceeded), after(time.Hour)}, isStuck, quota},
		"until release-timeout":               {[]func(*Input){stuck(t, workload.Deployment, quotaExceeded), after(24 * time.Hour)}, "ReleaseTimedOut", quota},
		"a kind without the conditions":       {[]func(*Input){stuck(t, workload.StatefulSet), after(time.Hour)}, waits, "0 are not in a batch yet"},
		"the conditions of a rollout that continues": {[]func(*Input){stuck(t, workload.Deployment, `{"type":"Progressing","status":"True"}`,
			`{"type":"ReplicaFailure","status":"False"}`), after(time.Hour)}, waits, "0 are not in a batch yet"},
		"Progressing of another kind": {[]func(*Input){stuck(t, workload.Deployment, `{"type":"Progressing","status":"False","reason":"AsExpected"}`),
			after(time.Hour)}, waits, "0 are not in a batch yet"},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(release(2, tc.options...))
			if d.Reason != tc.reason || !strings.HasSuffix(d.Detail, tc.says) {
				t.Errorf("reason %s: %s", d.Reason, d.Detail)
			}
		})
	}
}

func TestAStuckReleaseHasOneEvent(t *testing.T) {
	recorder := record.NewFakeRecorder(10)
	ctx := controller.WithEventRecorder(t.Context(), recorder)
	in := release(2, stuck(t, workload.Deployment, quotaExceeded), after(time.Minute))
	w := readWorkload(t, workload.Deployment, `{"metadata":{"name":"web"}}`)
	for range 2 {
		d := Decide(in)
		next := derive(in, d)
		recordStuck(ctx, in.ChangeWorkload, next, w, d)
		in.ChangeWorkload, in.Now = next, in.Now.Add(time.Minute)
	}
	if n := len(recorder.Events); n != 2 { // one of the ChangeWorkload, one of the workload
		t.Fatalf("%d Events; Succeeded is %+v", n, in.ChangeWorkload.Status.GetCondition(apis.ConditionSucceeded))
	}
	for range 2 {
		if e := <-recorder.Events; !strings.HasPrefix(e, "Warning RolloutStuck") || !strings.Contains(e, "exceeded quota") {
			t.Errorf("the Event is %q", e)
		}
	}
}
