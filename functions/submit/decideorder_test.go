package submit

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
)

func TestWhatAWakeUpForAnOrderLeadsTo(t *testing.T) {
	type edit = func(*v1alpha1.ChangeWorkload)
	step := func(name v1alpha1.OrderStepName) edit {
		return func(w *v1alpha1.ChangeWorkload) {
			w.Status.OrderStep = &v1alpha1.OrderStep{Name: name, State: v1alpha1.OrderSuccess}
		}
	}
	start, finish, end := step(v1alpha1.OrderStepStart), step(v1alpha1.OrderStepFinish), step(v1alpha1.OrderStepClose)
	unopened := func(w *v1alpha1.ChangeWorkload) { w.Status.Order = nil }
	baseline := func(w *v1alpha1.ChangeWorkload) { w.Spec.Attempt = 0 }
	failedPhase := func(w *v1alpha1.ChangeWorkload) { w.Status.Phase = v1alpha1.WorkloadFailed }
	skipped := func(w *v1alpha1.ChangeWorkload) { w.Status.Order.Skipped = true }
	node := func(w *v1alpha1.ChangeWorkload) { w.Status.Order.NodeID = "n" }
	deleted := func(w *v1alpha1.ChangeWorkload) { at := metav1.NewTime(ft.Now()); w.DeletionTimestamp = &at }
	// call is an intent, some time ago; answered, or with the error of a reason.
	call := func(stage v1alpha1.Stage, ago time.Duration, answered bool, reason string) edit {
		return func(w *v1alpha1.ChangeWorkload) {
			at := metav1.NewMicroTime(ft.Now().Add(-ago))
			s := v1alpha1.Submission{Stage: stage, IntentTime: at, Attempts: 1}
			if answered {
				s.AnsweredTime = &at
			}
			if reason != "" {
				s.Error = &v1alpha1.ServerError{Reason: reason}
			}
			w.Status.Order.Submissions = append(w.Status.Order.Submissions, s)
		}
	}
	said := func(stage v1alpha1.Stage) edit {
		return func(w *v1alpha1.ChangeWorkload) {
			w.Status.OrderVerdicts = append(w.Status.OrderVerdicts, v1alpha1.StageVerdict{Stage: stage, Verdict: "pass"})
		}
	}
	closing := func(attempts int32, ago time.Duration, answered bool, reason string) edit {
		return func(w *v1alpha1.ChangeWorkload) {
			at := metav1.NewMicroTime(ft.Now().Add(-ago))
			w.Status.Order.Closing = &v1alpha1.OrderClosing{State: v1alpha1.OrderSuccess, IntentTime: at, Attempts: attempts}
			if answered {
				w.Status.Order.Closing.AnsweredTime = &at
			}
			if reason != "" {
				w.Status.Order.Closing.Error = &v1alpha1.ServerError{Reason: reason}
			}
		}
	}
	const unreachable, refused = v1alpha1.ReasonServerUnreachable, v1alpha1.ReasonServerRejected
	for name, tc := range map[string]struct {
		release []edit
		asked   bool
		want    Outcome
	}{
		"nothing is due":                             {[]edit{}, false, Nothing},
		"a release begins":                           {[]edit{start, unopened}, false, OpenOrder},
		"a baseline":                                 {[]edit{start, unopened, baseline}, false, Nothing},
		"a release that is being deleted":            {[]edit{start, unopened, deleted}, false, Nothing},
		"a release whose order came too late":        {[]edit{start, unopened, failedPhase}, false, Nothing},
		"an order that is open is started":           {[]edit{start}, false, StartOrder},
		"somebody starts it right now":               {[]edit{start, call(pre, short, false, "")}, false, InFlight},
		"a start that was never answered":            {[]edit{start, call(pre, long, false, "")}, false, StartOrder},
		"a start that was refused":                   {[]edit{start, call(pre, short, false, refused)}, false, StartOrder},
		"a start that was answered a moment ago":     {[]edit{start, call(pre, short, true, "")}, false, Nothing},
		"a start whose verdict does not come":        {[]edit{start, call(pre, long, true, "")}, false, AskRetrieve},
		"a start of which retrieve says nothing":     {[]edit{start, call(pre, long, true, "")}, true, Nothing},
		"a start that has its verdict":               {[]edit{start, call(pre, long, true, ""), said(pre)}, false, Nothing},
		"the server skips the order":                 {[]edit{start, call(pre, long, true, ""), skipped}, false, Nothing},
		"all pods passed":                            {[]edit{finish, node, call(pre, long, true, "")}, false, FinishOrder},
		"an order that was not started":              {[]edit{finish}, false, Nothing},
		"somebody finishes it right now":             {[]edit{finish, node, call(post, short, false, "")}, false, InFlight},
		"a finish that may have arrived":             {[]edit{finish, node, call(post, long, false, unreachable)}, false, AskRetrieve},
		"and nothing says that it did":               {[]edit{finish, node, call(post, long, false, unreachable)}, true, FinishOrder},
		"a finish that was refused":                  {[]edit{finish, node, call(post, short, false, refused)}, false, FinishOrder},
		"a finish whose verdict does not come":       {[]edit{finish, node, call(post, long, true, "")}, false, AskRetrieve},
		"a finish that has its verdict":              {[]edit{finish, node, call(post, long, true, ""), said(post)}, false, Nothing},
		"a release has ended":                        {[]edit{end}, false, CloseOrder},
		"one that was superseded, too":               {[]edit{end, failedPhase}, false, CloseOrder},
		"an order that was never opened":             {[]edit{end, unopened}, false, Nothing},
		"somebody closes it right now":               {[]edit{end, closing(1, short, false, "")}, false, InFlight},
		"a closing that was never answered":          {[]edit{end, closing(1, long, false, "")}, false, CloseOrder},
		"a closing that did not get through":         {[]edit{end, closing(2, short, false, unreachable)}, false, CloseOrder},
		"a closing that did not get through 5 times": {[]edit{end, closing(5, long, false, unreachable)}, false, Nothing},
		"the last intent was never answered":         {[]edit{end, closing(5, long, false, "")}, false, Nothing},
		"a closing that was refused":                 {[]edit{end, closing(1, long, false, refused)}, false, Nothing},
		"an order that is closed":                    {[]edit{end, closing(1, long, true, "")}, false, Nothing},
	} {
		t.Run(name, func(t *testing.T) {
			in := OrderInput{Workload: ft.NewRelease(tc.release...), Asked: tc.asked, Now: ft.Now(), CallDeadline: 15 * time.Second}
			if got := DecideOrder(in); got.Outcome != tc.want || got.Reason == "" {
				t.Errorf("got %+v, want %s", got, tc.want)
			}
		})
	}
}
