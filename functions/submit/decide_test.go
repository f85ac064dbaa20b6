package submit

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
)

const (
	pre  = v1alpha1.StagePre
	post = v1alpha1.StagePost
	// long is longer than a call can take, short is not.
	long  = time.Minute
	short = time.Second
)

func phase(p v1alpha1.PodPhase) func(*v1alpha1.ChangePod) {
	return func(c *v1alpha1.ChangePod) { c.Status.Phase = p }
}

func TestWhatAWakeUpLeadsTo(t *testing.T) {
	type workload = func(*v1alpha1.ChangeWorkload)
	type batch = []func(*v1alpha1.ChangePod)
	unopened := func(w *v1alpha1.ChangeWorkload) { w.Status.Order = nil }
	unreachable, refused := ft.Refused(v1alpha1.ReasonServerUnreachable), ft.Refused(v1alpha1.ReasonServerRejected)
	passedPre := batch{ft.Started("n", long), ft.Judged(pre, "pass")}
	with := func(more ...func(*v1alpha1.ChangePod)) batch { return append(append(batch{}, passedPre...), more...) }
	deleted := metav1.NewTime(ft.Now())
	orderSaid := func(word string) workload {
		return func(w *v1alpha1.ChangeWorkload) {
			w.Status.OrderVerdicts = []v1alpha1.StageVerdict{{Stage: pre, Verdict: word}}
		}
	}

	for name, tc := range map[string]struct {
		workload workload
		batch    batch
		stage    v1alpha1.Stage
		asked    bool
		// remembered: the answer to the finish is known and not written.
		remembered bool
		want       Outcome
	}{
		"a release whose order came too late":      {workload: func(w *v1alpha1.ChangeWorkload) { unopened(w); w.Status.Phase = v1alpha1.WorkloadFailed }, batch: batch{}, stage: pre, want: Nothing},
		"a release that is being deleted":          {workload: func(w *v1alpha1.ChangeWorkload) { unopened(w); w.DeletionTimestamp = &deleted }, batch: batch{}, stage: pre, want: Nothing},
		"an order that was refused is tried again": {workload: func(w *v1alpha1.ChangeWorkload) { w.Status.Order = &v1alpha1.Order{Error: &v1alpha1.ServerError{}} }, batch: batch{}, stage: pre, want: OpenOrder},
		"a batch before its order":                 {workload: unopened, batch: batch{}, stage: pre, want: OpenOrder},
		"a batch that is over needs no order":      {workload: unopened, batch: batch{phase(v1alpha1.PodExecuteDone)}, stage: pre, want: Nothing},

		"a baseline":                           {workload: func(w *v1alpha1.ChangeWorkload) { w.Spec.Attempt = 0 }, batch: batch{}, stage: pre, want: Nothing},
		"the order failed: nothing is started": {workload: orderSaid("fail"), batch: batch{}, stage: pre, want: Nothing},
		"what is started is finished":          {workload: orderSaid("fail"), batch: passedPre, stage: post, want: FinishBatch},
		"a person has overruled that": {workload: func(w *v1alpha1.ChangeWorkload) {
			orderSaid("fail")(w)
			w.Status.OrderResult = &v1alpha1.OrderResult{Verdict: "pass"}
		}, batch: batch{}, stage: pre, want: StartBatch},
		"an answer that is not written":                   {batch: with(ft.Intent(post, short)), stage: post, remembered: true, want: StoreAnswer},
		"an answer that nobody remembers":                 {batch: with(ft.Intent(post, short)), stage: post, want: InFlight},
		"a verdict that came before the answer":           {batch: with(ft.Intent(post, short), ft.Judged(post, "pass")), stage: post, remembered: true, want: Nothing},
		"a new batch":                                     {batch: batch{}, stage: pre, want: StartBatch},
		"a start that somebody makes right now":           {batch: batch{ft.Intent(pre, short)}, stage: pre, want: InFlight},
		"a start that was never answered":                 {batch: batch{ft.Intent(pre, long)}, stage: pre, want: StartBatch},
		"a start that was refused":                        {batch: batch{ft.Intent(pre, short), refused}, stage: pre, want: StartBatch},
		"a start that did not get through":                {batch: batch{ft.Intent(pre, short), unreachable}, stage: pre, want: StartBatch},
		"a start that was answered a moment ago":          {batch: batch{ft.Started("n", short)}, stage: pre, want: Nothing},
		"a start whose verdict does not come":             {batch: batch{ft.Started("n", long)}, stage: pre, want: AskRetrieve},
		"a start of which retrieve says nothing":          {batch: batch{ft.Started("n", long)}, stage: pre, asked: true, want: Nothing},
		"a start that has its verdict":                    {batch: passedPre, stage: pre, want: Nothing},
		"a start that has a word that is no verdict":      {batch: batch{ft.Started("n", long), ft.Judged(pre, "none")}, stage: pre, want: Nothing},
		"a late wake-up for the start":                    {batch: with(ft.Intent(post, short)), stage: pre, want: Nothing},
		"a wake-up for the start after its deadline":      {batch: batch{phase(v1alpha1.PodPreTimeout)}, stage: pre, want: Nothing},
		"a wake-up for the start of a batch that is over": {batch: batch{phase(v1alpha1.PodExecuteDone)}, stage: pre, want: Nothing},
		"a wake-up for the start of a later stage":        {batch: batch{phase(v1alpha1.PodPostWait)}, stage: pre, want: Nothing},
		"a batch that is being deleted":                   {batch: batch{func(p *v1alpha1.ChangePod) { p.DeletionTimestamp = &deleted }}, stage: pre, want: Nothing},
		"a batch of an earlier attempt":                   {batch: batch{func(p *v1alpha1.ChangePod) { p.OwnerReferences[0].UID = "earlier" }}, stage: pre, want: Nothing},

		"a batch that passed before the change":       {batch: passedPre, stage: post, want: FinishBatch},
		"a state that lags behind does not matter":    {batch: with(phase(v1alpha1.PodPreSubmitted)), stage: post, want: FinishBatch},
		"a finish without a start":                    {batch: batch{}, stage: post, want: Nothing},
		"a finish that somebody makes right now":      {batch: with(ft.Intent(post, short)), stage: post, want: InFlight},
		"a finish that was never answered":            {batch: with(ft.Intent(post, long)), stage: post, want: AskRetrieve},
		"a finish that retrieve does not know":        {batch: with(ft.Intent(post, long)), stage: post, asked: true, want: FinishBatch},
		"a finish that was refused":                   {batch: with(ft.Intent(post, short), refused), stage: post, want: FinishBatch},
		"a finish that may have got through":          {batch: with(ft.Intent(post, short), unreachable), stage: post, want: AskRetrieve},
		"a finish that was answered a moment ago":     {batch: with(ft.Intent(post, long), ft.Answered(short)), stage: post, want: Nothing},
		"a finish whose verdict does not come":        {batch: with(ft.Intent(post, long), ft.Answered(long)), stage: post, want: AskRetrieve},
		"a finish of which retrieve says nothing":     {batch: with(ft.Intent(post, long), ft.Answered(long)), stage: post, asked: true, want: Nothing},
		"a finish that has its verdict":               {batch: with(ft.Intent(post, long), ft.Judged(post, "fail")), stage: post, want: Nothing},
		"a wake-up for the finish after its deadline": {batch: with(phase(v1alpha1.PodPostTimeout)), stage: post, want: Nothing},
	} {
		t.Run(name, func(t *testing.T) {
			in := Input{Workload: ft.NewRelease(), Stage: tc.stage, Asked: tc.asked, Now: ft.Now(), CallDeadline: 15 * time.Second}
			if tc.workload != nil {
				tc.workload(in.Workload)
			}
			in.Pod, in.Remembered = ft.NewBatch(1, []string{"a"}, tc.batch...), tc.remembered
			if got := Decide(in); got.Outcome != tc.want || got.Reason == "" {
				t.Errorf("got %+v, want %s", got, tc.want)
			}
		})
	}
}
