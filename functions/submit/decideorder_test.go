package submit

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
)

func TestDecideForAnOrder(t *testing.T) {
	type edit = func(*v1alpha1.ChangeWorkload)
	step := func(name v1alpha1.OrderStepName) edit {
		return func(w *v1alpha1.ChangeWorkload) {
			w.Status.OrderStep = &v1alpha1.OrderStep{Name: name, State: v1alpha1.OrderSuccess}
		}
	}
	start, finish, end := step(v1alpha1.OrderStepStart), step(v1alpha1.OrderStepFinish), step(v1alpha1.OrderStepClose)
	unopened := func(w *v1alpha1.ChangeWorkload) { w.Status.Order = nil }
	baseline := func(w *v1alpha1.ChangeWorkload) { w.Spec.Attempt = 0 }
	failedPhase := func(w *v1alpha1.ChangeWorkload) { w.Status.Phase = v1alpha1.ReleaseFailed }
	skipped := func(w *v1alpha1.ChangeWorkload) { w.Status.Order.Skipped = true }
	node := func(w *v1alpha1.ChangeWorkload) { w.Status.Order.NodeID = "n" }
	deleted := func(w *v1alpha1.ChangeWorkload) { at := metav1.NewTime(ft.Now()); w.DeletionTimestamp = &at }
	// call adds an intent of some time ago, optionally with an answer or an error.
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
	passed := func(stage v1alpha1.Stage) edit {
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
	const unreachable, rejected = v1alpha1.ReasonServerUnreachable, v1alpha1.ReasonServerRejected
	for name, tc := range map[string]struct {
		release []edit
		asked   bool
		want    Action
	}{
		"no step":                                {[]edit{}, false, Nothing},
		"order not open":                         {[]edit{start, unopened}, false, OpenOrder},
		"baseline":                               {[]edit{start, unopened, baseline}, false, Nothing},
		"release is terminating":                 {[]edit{start, unopened, deleted}, false, Nothing},
		"order not accepted in time":             {[]edit{start, unopened, failedPhase}, false, Nothing},
		"order open":                             {[]edit{start}, false, StartOrder},
		"start in flight":                        {[]edit{start, call(pre, short, false, "")}, false, InFlight},
		"start not answered in time":             {[]edit{start, call(pre, long, false, "")}, false, StartOrder},
		"start rejected":                         {[]edit{start, call(pre, short, false, rejected)}, false, StartOrder},
		"start answered, waiting for verdict":    {[]edit{start, call(pre, soon, true, "")}, false, Nothing},
		"start answered, callback may be lost":   {[]edit{start, call(pre, short, true, "")}, false, AskRetrieve},
		"start answered, verdict overdue":        {[]edit{start, call(pre, long, true, "")}, false, AskRetrieve},
		"start answered, retrieve without pass":  {[]edit{start, call(pre, 4*short, true, "")}, true, Nothing},
		"start answered, no verdict for seconds": {[]edit{start, call(pre, 5*short, true, "")}, true, Resubmit},
		"start passed":                           {[]edit{start, call(pre, long, true, ""), passed(pre)}, false, Nothing},
		"server skips the order check":           {[]edit{start, call(pre, long, true, ""), skipped}, false, Nothing},
		"all pods passed":                        {[]edit{finish, node, call(pre, long, true, "")}, false, FinishOrder},
		"finish without start":                   {[]edit{finish}, false, Nothing},
		"finish in flight":                       {[]edit{finish, node, call(post, short, false, "")}, false, InFlight},
		"server unreachable for finish":          {[]edit{finish, node, call(post, long, false, unreachable)}, false, AskRetrieve},
		"server unreachable for finish, no pass": {[]edit{finish, node, call(post, long, false, unreachable)}, true, FinishOrder},
		"finish rejected":                        {[]edit{finish, node, call(post, short, false, rejected)}, false, FinishOrder},
		"finish answered, verdict overdue":       {[]edit{finish, node, call(post, long, true, "")}, false, AskRetrieve},
		"finish passed":                          {[]edit{finish, node, call(post, long, true, ""), passed(post)}, false, Nothing},
		"release ended":                          {[]edit{end}, false, CloseOrder},
		"release is deleted":                     {[]edit{end, deleted}, false, CloseOrder},
		"release ended as failed":                {[]edit{end, failedPhase}, false, CloseOrder},
		"release ended, order not open":          {[]edit{end, unopened}, false, Nothing},
		"close in flight":                        {[]edit{end, closing(1, short, false, "")}, false, InFlight},
		"close not answered in time":             {[]edit{end, closing(1, long, false, "")}, false, CloseOrder},
		"server unreachable for close":           {[]edit{end, closing(2, short, false, unreachable)}, false, CloseOrder},
		"server unreachable for the fifth close": {[]edit{end, closing(5, long, false, unreachable)}, false, Nothing},
		"the result of the fifth close was lost": {[]edit{end, closing(5, long, false, "")}, false, CloseOrder},
		"close rejected":                         {[]edit{end, closing(1, long, false, rejected)}, false, Nothing},
		"order closed":                           {[]edit{end, closing(1, long, true, "")}, false, Nothing},
	} {
		t.Run(name, func(t *testing.T) {
			in := OrderInput{Release: ft.NewRelease(tc.release...), callContext: callContext{Asked: tc.asked, Now: ft.Now(), CallTimeout: 15 * time.Second}}
			if got := DecideOrder(in); got.Action != tc.want || got.Reason == "" {
				t.Errorf("got %+v, want %s", got, tc.want)
			}
		})
	}
}
