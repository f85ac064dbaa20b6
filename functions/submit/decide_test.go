package submit

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"
	duckv1 "knative.dev/pkg/apis/duck/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
)

const (
	pre  = v1alpha1.StagePre
	post = v1alpha1.StagePost
	// long exceeds the deadline of a call, short does not, and soon is too early for a
	// callback to be lost.
	long  = time.Minute
	short = time.Second
	soon  = 999 * time.Millisecond
)

func phase(p v1alpha1.BatchPhase) func(*v1alpha1.ChangePod) {
	return func(c *v1alpha1.ChangePod) { c.Status.Phase = p }
}

func TestDecideForABatch(t *testing.T) {
	type workload = func(*v1alpha1.ChangeWorkload)
	type batch = []func(*v1alpha1.ChangePod)
	unopened := func(w *v1alpha1.ChangeWorkload) { w.Status.Order = nil }
	superseded := func(w *v1alpha1.ChangeWorkload) { w.Status.Phase = v1alpha1.ReleaseFailed }
	step := func(s v1alpha1.OrderStep) workload {
		return func(w *v1alpha1.ChangeWorkload) { w.Status.Phase, w.Status.OrderStep = v1alpha1.ReleaseSuspend, &s }
	}
	rolledBack := step(v1alpha1.OrderStep{Name: v1alpha1.OrderStepClose, State: v1alpha1.OrderRollback})
	suspended := step(v1alpha1.OrderStep{Name: v1alpha1.OrderStepStart})
	orderNotAccepted := func(w *v1alpha1.ChangeWorkload) {
		superseded(w)
		unopened(w)
		w.Status.Conditions = duckv1.Conditions{{Type: v1alpha1.ReleaseOrderAccepted, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonOrderNotAccepted}}
	}
	unreachable, rejected := ft.CallFailed(v1alpha1.ReasonServerUnreachable), ft.CallFailed(v1alpha1.ReasonServerRejected)
	passedPre := batch{ft.Started("n", long), ft.Judged(pre, "pass")}
	with := func(more ...func(*v1alpha1.ChangePod)) batch { return append(append(batch{}, passedPre...), more...) }
	deleted := metav1.NewTime(ft.Now())
	orderVerdict := func(verdict string) workload {
		return func(w *v1alpha1.ChangeWorkload) {
			w.Status.OrderVerdicts = []v1alpha1.StageVerdict{{Stage: pre, Verdict: verdict}}
		}
	}
	withdrawn := func(w *v1alpha1.ChangeWorkload) {
		w.Status.Conditions = append(w.Status.Conditions, apis.Condition{
			Type: v1alpha1.ReleaseOrderJudged, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonOrderCheckFailed})
	}

	for name, tc := range map[string]struct {
		workload workload
		batch    batch
		stage    v1alpha1.Stage
		asked    bool
		notBegun string
		// cached: the answer to the finish is cached and not stored.
		cached bool
		want   Action
	}{
		"order not accepted in time":    {workload: orderNotAccepted, batch: batch{}, stage: pre, want: Nothing},
		"release is terminating":        {workload: func(w *v1alpha1.ChangeWorkload) { unopened(w); w.DeletionTimestamp = &deleted }, batch: batch{}, stage: pre, want: Nothing},
		"order was rejected":            {workload: func(w *v1alpha1.ChangeWorkload) { w.Status.Order = &v1alpha1.Order{Error: &v1alpha1.ServerError{}} }, batch: batch{}, stage: pre, want: OpenOrder},
		"order not open":                {workload: unopened, batch: batch{}, stage: pre, want: OpenOrder},
		"order not open, batch is over": {workload: unopened, batch: batch{phase(v1alpha1.BatchExecuteDone)}, stage: pre, want: Nothing},

		"baseline":                          {workload: func(w *v1alpha1.ChangeWorkload) { w.Spec.Attempt = 0 }, batch: batch{}, stage: pre, want: Nothing},
		"order check failed":                {workload: orderVerdict("fail"), batch: batch{}, stage: pre, want: Nothing},
		"order check failed, batch started": {workload: orderVerdict("fail"), batch: passedPre, stage: post, want: FinishBatch},
		"order check failed, passed by a person": {workload: func(w *v1alpha1.ChangeWorkload) {
			orderVerdict("fail")(w)
			w.Status.OrderResult = &v1alpha1.OrderResult{Verdict: "pass"}
		}, batch: batch{}, stage: pre, want: StartBatch},
		"order check failed, verdict withdrawn": {workload: withdrawn, batch: batch{}, stage: pre, want: Nothing},
		"order check failed, verdict withdrawn, passed by a person": {workload: func(w *v1alpha1.ChangeWorkload) {
			withdrawn(w)
			w.Status.OrderResult = &v1alpha1.OrderResult{Verdict: "pass"}
		}, batch: batch{}, stage: pre, want: StartBatch},
		"finish with cached answer":              {batch: with(ft.Intent(post, short)), stage: post, cached: true, want: StoreAnswer},
		"finish without cached answer":           {batch: with(ft.Intent(post, short)), stage: post, want: InFlight},
		"finish with cached answer and verdict":  {batch: with(ft.Intent(post, short), ft.Judged(post, "pass")), stage: post, cached: true, want: Nothing},
		"superseded, order not open":             {workload: func(w *v1alpha1.ChangeWorkload) { superseded(w); unopened(w) }, batch: batch{}, stage: pre, want: Nothing},
		"superseded, new batch":                  {workload: superseded, batch: batch{}, stage: pre, want: Nothing},
		"superseded, callback may be lost":       {workload: superseded, batch: batch{ft.Started("n", long)}, stage: pre, want: AskRetrieve},
		"superseded, no verdict for seconds":     {workload: superseded, batch: batch{ft.Started("n", long)}, stage: pre, asked: true, want: Nothing},
		"superseded, pass not confirmed":         {workload: superseded, batch: with(ft.Intent(post, long)), stage: post, want: AskRetrieve},
		"superseded, without a finish":           {workload: superseded, batch: passedPre, stage: post, want: Nothing},
		"suspended and replaced, order not open": {workload: func(w *v1alpha1.ChangeWorkload) { rolledBack(w); unopened(w) }, batch: batch{}, stage: pre, want: Nothing},
		"suspended and replaced, new batch":      {workload: rolledBack, batch: batch{}, stage: pre, want: Nothing},
		"suspended and replaced, PRE passed":     {workload: rolledBack, batch: passedPre, stage: post, want: Nothing},
		"suspended and replaced, started":        {workload: rolledBack, batch: batch{ft.Started("n", long)}, stage: pre, want: AskRetrieve},
		"suspended, new batch":                   {workload: suspended, batch: batch{}, stage: pre, want: StartBatch},
		"suspended, PRE passed":                  {workload: suspended, batch: passedPre, stage: post, want: FinishBatch},
		"new batch":                              {batch: batch{}, stage: pre, want: StartBatch},
		"start in flight":                        {batch: batch{ft.Intent(pre, short)}, stage: pre, want: InFlight},
		"start not answered in time":             {batch: batch{ft.Intent(pre, long)}, stage: pre, want: StartBatch},
		"start rejected":                         {batch: batch{ft.Intent(pre, short), rejected}, stage: pre, want: StartBatch},
		"server unreachable for start":           {batch: batch{ft.Intent(pre, short), unreachable}, stage: pre, want: StartBatch},
		"start answered, waiting for verdict":    {batch: batch{ft.Started("n", soon)}, stage: pre, want: Nothing},
		"start answered, callback may be lost":   {batch: batch{ft.Started("n", short)}, stage: pre, want: AskRetrieve},
		"start answered, verdict overdue":        {batch: batch{ft.Started("n", long)}, stage: pre, want: AskRetrieve},
		"start answered, retrieve without pass":  {batch: batch{ft.Started("n", 4*time.Second)}, stage: pre, asked: true, want: Nothing},
		"no verdict for seconds":                 {batch: batch{ft.Started("n", 5*time.Second)}, stage: pre, asked: true, want: Resubmit},
		"check not begun":                        {batch: batch{ft.Started("n", 5*time.Second)}, stage: pre, asked: true, notBegun: "n", want: StartBatch},
		"check not begun, started meanwhile":     {batch: batch{ft.Started("m", 5*time.Second)}, stage: pre, asked: true, notBegun: "n", want: Nothing},
		"resumed once, after 9 s":                {batch: batch{ft.Started("n", 9*time.Second), ft.Resumed(1)}, stage: pre, asked: true, want: Nothing},
		"resumed once, after 10 s":               {batch: batch{ft.Started("n", 10*time.Second), ft.Resumed(1)}, stage: pre, asked: true, want: Resubmit},
		"resumed twice, after 19 s":              {batch: batch{ft.Started("n", 19*time.Second), ft.Resumed(2)}, stage: pre, asked: true, want: Nothing},
		"resumed twice, after 20 s":              {batch: batch{ft.Started("n", 20*time.Second), ft.Resumed(2)}, stage: pre, asked: true, want: Resubmit},
		"resumed three times":                    {batch: batch{ft.Started("n", time.Hour), ft.Resumed(3)}, stage: pre, asked: true, want: Nothing},
		"check not begun, order check failed":    {workload: orderVerdict("fail"), batch: batch{ft.Started("n", long)}, stage: pre, asked: true, notBegun: "n", want: Nothing},
		"start passed":                           {batch: passedPre, stage: pre, want: Nothing},
		"start with an unconfirmed pass":         {batch: batch{ft.Started("n", short), ft.Unconfirmed(pre, false)}, stage: pre, want: AskRetrieve},
		"start with a contradicted pass":         {batch: batch{ft.Started("n", long), ft.Unconfirmed(pre, true)}, stage: pre, want: AskRetrieve},
		"start with an unconfirmed pass, asked":  {batch: batch{ft.Started("n", long), ft.Unconfirmed(pre, false)}, stage: pre, asked: true, want: Nothing},
		"finish of an unconfirmed PRE pass":      {batch: batch{ft.Started("n", long), ft.Unconfirmed(pre, true)}, stage: post, want: FinishBatch},
		"finish with an unconfirmed pass":        {batch: with(ft.Intent(post, short), ft.Unconfirmed(post, false)), stage: post, want: AskRetrieve},
		"finish with an unconfirmed pass, asked": {batch: with(ft.Intent(post, long), ft.Unconfirmed(post, false)), stage: post, asked: true, want: Nothing},
		"start with no verdict":                  {batch: batch{ft.Started("n", long), ft.Judged(pre, "none")}, stage: pre, want: Nothing},
		"late wake-up for start":                 {batch: with(ft.Intent(post, short)), stage: pre, want: Nothing},
		"wake-up for start after its deadline":   {batch: batch{phase(v1alpha1.BatchPreTimeout)}, stage: pre, want: Nothing},
		"wake-up for start, batch is over":       {batch: batch{phase(v1alpha1.BatchExecuteDone)}, stage: pre, want: Nothing},
		"wake-up for start in a later stage":     {batch: batch{phase(v1alpha1.BatchPostWait)}, stage: pre, want: Nothing},
		"batch is terminating":                   {batch: batch{func(p *v1alpha1.ChangePod) { p.DeletionTimestamp = &deleted }}, stage: pre, want: Nothing},
		"batch of an earlier attempt":            {batch: batch{func(p *v1alpha1.ChangePod) { p.OwnerReferences[0].UID = "earlier" }}, stage: pre, want: Nothing},

		"batch passed PRE":                       {batch: passedPre, stage: post, want: FinishBatch},
		"batch passed PRE, phase lags behind":    {batch: with(phase(v1alpha1.BatchPreSubmitted)), stage: post, want: FinishBatch},
		"finish without start":                   {batch: batch{}, stage: post, want: Nothing},
		"finish in flight":                       {batch: with(ft.Intent(post, short)), stage: post, want: InFlight},
		"finish not answered in time":            {batch: with(ft.Intent(post, long)), stage: post, want: AskRetrieve},
		"finish not answered, no pass":           {batch: with(ft.Intent(post, long)), stage: post, asked: true, want: FinishBatch},
		"finish rejected":                        {batch: with(ft.Intent(post, short), rejected), stage: post, want: FinishBatch},
		"server unreachable for finish":          {batch: with(ft.Intent(post, short), unreachable), stage: post, want: AskRetrieve},
		"finish answered, waiting for verdict":   {batch: with(ft.Intent(post, long), ft.Answered(soon)), stage: post, want: Nothing},
		"finish answered, callback may be lost":  {batch: with(ft.Intent(post, long), ft.Answered(short)), stage: post, want: AskRetrieve},
		"finish answered, verdict overdue":       {batch: with(ft.Intent(post, long), ft.Answered(long)), stage: post, want: AskRetrieve},
		"finish answered, retrieve without pass": {batch: with(ft.Intent(post, long), ft.Answered(long)), stage: post, asked: true, want: Nothing},
		"finish failed":                          {batch: with(ft.Intent(post, long), ft.Judged(post, "fail")), stage: post, want: Nothing},
		"wake-up for finish after its deadline":  {batch: with(phase(v1alpha1.BatchPostTimeout)), stage: post, want: Nothing},
	} {
		t.Run(name, func(t *testing.T) {
			in := Input{Release: ft.NewRelease(), Stage: tc.stage,
				callContext: callContext{Asked: tc.asked, NotBegunNode: tc.notBegun, Now: ft.Now(), CallTimeout: 15 * time.Second}}
			if tc.workload != nil {
				tc.workload(in.Release)
			}
			in.Batch, in.AnswerCached = ft.NewBatch(1, []string{"a"}, tc.batch...), tc.cached
			if got := Decide(in); got.Action != tc.want || got.Reason == "" {
				t.Errorf("got %+v, want %s", got, tc.want)
			}
		})
	}
}
