package changeworkload

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/resend"
)

// order changes the facts of the order.
func order(f func(*v1alpha1.Order)) func(*Input) {
	return func(in *Input) {
		if in.ChangeWorkload.Status.Order == nil {
			orderOpen(in)
		}
		f(in.ChangeWorkload.Status.Order)
	}
}

// called adds a call of the order at t0, with an answer or with an error message.
func called(stage v1alpha1.Stage, why string) func(*Input) {
	return order(func(o *v1alpha1.Order) {
		at := metav1.NewMicroTime(t0)
		s := v1alpha1.Submission{Stage: stage, IntentTime: at, Attempts: 1, AnsweredTime: &at}
		if why != "" {
			s.AnsweredTime, s.Error = nil, &v1alpha1.ServerError{Message: why}
		} else {
			o.NodeID = "order-node"
		}
		o.Submissions = append(o.Submissions, s)
	})
}

// calledAgain repeats the last call so long after t0, with an answer or without.
func calledAgain(later time.Duration, answered bool) func(*Input) {
	return order(func(o *v1alpha1.Order) {
		s := &o.Submissions[len(o.Submissions)-1]
		first, at := s.IntentTime, metav1.NewMicroTime(t0.Add(later))
		s.FirstIntentTime, s.IntentTime, s.Attempts, s.EarlierNodes = &first, at, 2, []string{"earlier"}
		if s.AnsweredTime = nil; answered {
			s.AnsweredTime = &at
		}
	})
}

// orderSaid adds a verdict of the order; "unconfirmed" is a pass without rules, and
// "contradicted" one that the server contradicts.
func orderSaid(stage v1alpha1.Stage, word string) func(*Input) {
	return func(in *Input) {
		v := v1alpha1.StageVerdict{Stage: stage, Verdict: word, NodeID: "order-node", Message: "because"}
		if word == "unconfirmed" || word == "contradicted" {
			v.Verdict, v.UnconfirmedPass, v.Contradicted = "pass", true, word == "contradicted"
		}
		in.ChangeWorkload.Status.OrderVerdicts = append(in.ChangeWorkload.Status.OrderVerdicts, v)
	}
}

func personSaysOfOrder(word string) func(*Input) {
	return func(in *Input) { in.ChangeWorkload.Status.OrderResult = &v1alpha1.OrderResult{Verdict: word} }
}

func atStep(name v1alpha1.OrderStepName, state v1alpha1.OrderState) func(*Input) {
	return func(in *Input) {
		in.ChangeWorkload.Status.OrderStep = &v1alpha1.OrderStep{Name: name, State: state, Since: metav1.NewTime(t0)}
	}
}

func closedAs(state v1alpha1.OrderState, attempts int32, answered bool, reason string) func(*Input) {
	return order(func(o *v1alpha1.Order) {
		o.Closing = &v1alpha1.OrderClosing{State: state, Attempts: attempts}
		if answered {
			at := metav1.NewMicroTime(t0)
			o.Closing.AnsweredTime = &at
		}
		if reason != "" {
			o.Closing.Error = &v1alpha1.ServerError{Reason: reason}
		}
	})
}

func skipped(in *Input)    { order(func(o *v1alpha1.Order) { o.Skipped = true })(in) }
func isRollback(in *Input) { in.Workload.IsRollback = true }

// recorded puts the derived status of the decision on the input into the input, as
// the next reconciliation reads it.
func recorded(in *Input) { in.ChangeWorkload = derive(*in, Decide(*in)) }

func orderPolicy(p v1alpha1.NoVerdictPolicy) func(*Input) {
	return func(in *Input) { in.Settings.NoVerdictOrder = p }
}

func contradictedPolicy(p v1alpha1.NoVerdictPolicy) func(*Input) {
	return func(in *Input) { in.Settings.NoVerdictContradicted = p }
}

func TestTheOrderCheckDecidesARelease(t *testing.T) {
	const (
		pre, post              = v1alpha1.StagePre, v1alpha1.StagePost
		running, init          = v1alpha1.ReleaseRunning, v1alpha1.ReleaseInit
		success, suspend       = v1alpha1.ReleaseSuccess, v1alpha1.ReleaseSuspend
		failed                 = v1alpha1.ReleaseFailed
		start, finish, closeIt = v1alpha1.OrderStepStart, v1alpha1.OrderStepFinish, v1alpha1.OrderStepClose
		late                   = 120 * time.Second
		tooLate                = late + resend.RetrieveGrace
		hold, fail             = v1alpha1.NoVerdictHold, v1alpha1.NoVerdictFail
	)
	// goes returns a release whose only pod is being checked; in passed the pod has passed.
	goes := func(options ...func(*Input)) Input {
		return release(1, append([]func(*Input){withServer, finished(1, 1), judged(1, "")}, options...)...)
	}
	passed := func(options ...func(*Input)) Input {
		return release(1, append([]func(*Input){withServer, finished(1, 1), judged(1, "pass"), complete1}, options...)...)
	}
	atZero := func(options ...func(*Input)) Input {
		return release(0, append([]func(*Input){withServer, complete1, orderOpen, called(pre, ""), orderSaid(pre, "pass"),
			called(post, ""), orderSaid(post, "pass"), atStep(finish, "")}, options...)...)
	}
	started := func(in *Input) { orderOpen(in); called(pre, "")(in); orderSaid(pre, "pass")(in) }
	finishing := func(in *Input) { started(in); called(post, "")(in); atStep(finish, "")(in) }
	unanswered := order(func(o *v1alpha1.Order) { o.Submissions[len(o.Submissions)-1].AnsweredTime = nil })
	type want struct {
		Phase  v1alpha1.ReleasePhase
		Reason string
		Action Action
		Step   v1alpha1.OrderStepName
		Wake   bool
		State  v1alpha1.OrderState
		// Judged is condition OrderJudged.
		Judged string
	}
	const (
		judging, rolling = v1alpha1.ReasonJudging, v1alpha1.ReasonAllPodsPassed
		checking         = v1alpha1.ReasonJudgingOrder
		checkFailed      = v1alpha1.ReasonOrderCheckFailed
		heldUnjudged     = v1alpha1.ReasonHeldUnjudged
		failedUnjudged   = v1alpha1.ReasonFailedUnjudged
	)
	for name, tc := range map[string]struct {
		in   Input
		want want
	}{
		"the order is opened first":                                                {goes(), want{init, v1alpha1.ReasonOrderPending, "", start, true, "", "Unknown"}},
		"an open order is started":                                                 {goes(orderOpen), want{running, judging, "", start, true, "", "Unknown"}},
		"a start without an answer is repeated":                                    {goes(called(pre, "unreachable")), want{running, judging, "", start, true, "", "Unknown"}},
		"a start without an answer is repeated while the release runs":             {goes(called(pre, "unreachable"), after(time.Hour)), want{running, judging, "", start, true, "", "Unknown"}},
		"a start with an answer waits for PRE":                                     {goes(called(pre, "")), want{running, judging, "", start, false, "", "Unknown"}},
		"the server is asked for a late PRE verdict":                               {goes(called(pre, ""), after(late)), want{running, judging, "", start, true, "", "Unknown"}},
		"the server is not asked for a PRE verdict for ever":                       {goes(called(pre, ""), after(tooLate)), want{running, judging, "", start, false, "", "Unknown"}},
		"the server is asked for a PRE verdict after a second":                     {goes(called(pre, ""), after(time.Second)), want{running, judging, "", start, true, "", "Unknown"}},
		"a start that is repeated waits for its answer":                            {goes(called(pre, ""), calledAgain(100*time.Second, false), after(119*time.Second)), want{running, judging, "", start, true, "", "Unknown"}},
		"the timeout counts from the first start":                                  {passed(called(pre, ""), calledAgain(100*time.Second, true), after(tooLate)), want{running, checking, "", finish, true, "", "Unknown"}},
		"the timeout counts from the first start, which was answered":              {passed(called(pre, ""), calledAgain(100*time.Second, false), after(tooLate)), want{running, checking, "", finish, true, "", "Unknown"}},
		"a PRE fail suspends the workload":                                         {goes(called(pre, ""), orderSaid(pre, "fail")), want{suspend, checkFailed, ActionSuspend, "", false, "", "False/" + checkFailed}},
		"a PRE fail holds nothing if blocking is off":                              {goes(called(pre, ""), orderSaid(pre, "fail"), notBlocking), want{suspend, checkFailed, "", "", false, "", "False/" + checkFailed}},
		"a fail stays when the verdict is removed":                                 {goes(called(pre, ""), orderSaid(pre, "fail"), recorded, held, func(in *Input) { in.ChangeWorkload.Status.OrderVerdicts = nil }), want{suspend, checkFailed, "", "", false, "", "False/" + checkFailed}},
		"a person overrules a fail":                                                {goes(called(pre, ""), orderSaid(pre, "fail"), recorded, held, personSaysOfOrder("pass")), want{running, judging, ActionResume, "", false, "", "True"}},
		"a result that is neither pass nor fail has no effect":                     {goes(called(pre, ""), orderSaid(pre, "fail"), recorded, held, personSaysOfOrder("ok")), want{suspend, checkFailed, "", "", false, "", "False/" + checkFailed}},
		"a person fails the order":                                                 {goes(started, personSaysOfOrder("unpass")), want{suspend, checkFailed, ActionSuspend, "", false, "", "False/" + checkFailed}},
		"the finish is called when all pods passed":                                {passed(started), want{running, checking, "", finish, true, "", "Unknown"}},
		"the finish is not called before PRE ended, as the server would reject it": {passed(called(pre, "")), want{running, checking, "", start, false, "", "Unknown"}},
		"the finish is called without a PRE verdict in the end":                    {passed(called(pre, ""), after(tooLate)), want{running, checking, "", finish, true, "", "Unknown"}},
		"a finish with an answer waits for POST":                                   {passed(finishing), want{running, checking, "", finish, false, "", "Unknown"}},
		"the server is asked for a late POST verdict":                              {passed(finishing, after(late)), want{running, checking, "", finish, true, "", "Unknown"}},
		"scaling up before the POST verdict":                                       {passed(finishing, starting(2)), want{running, v1alpha1.ReasonRollingOut, "", start, false, "", "Unknown"}},
		"a POST pass ends the release and closes the order":                        {passed(finishing, orderSaid(post, "pass")), want{success, rolling, "", closeIt, true, "SUCCESS", "True"}},
		"a POST fail suspends the workload":                                        {passed(finishing, orderSaid(post, "fail")), want{suspend, checkFailed, ActionSuspend, finish, false, "", "False/" + checkFailed}},
		"a POST fail after Success suspends the workload":                          {passed(finishing, orderSaid(post, "fail"), was(success)), want{suspend, checkFailed, ActionSuspend, finish, false, "", "False/" + checkFailed}},
		"a pass by a person needs no POST verdict":                                 {passed(started, personSaysOfOrder("pass")), want{success, rolling, "", closeIt, true, "SUCCESS", "True"}},
		"unjudged, policy Pass":                                                    {passed(finishing, after(tooLate)), want{success, rolling, "", closeIt, true, "SUCCESS", "False/" + v1alpha1.ReasonPassedUnjudged}},
		"unjudged, policy Hold":                                                    {passed(finishing, after(tooLate), orderPolicy(hold)), want{running, heldUnjudged, "", finish, false, "", "False/" + heldUnjudged}},
		"unjudged, policy Hold for batches only":                                   {passed(finishing, after(tooLate), func(in *Input) { in.Settings.NoVerdictPost = hold }), want{success, rolling, "", closeIt, true, "SUCCESS", "False/" + v1alpha1.ReasonPassedUnjudged}},
		"unjudged, policy Fail":                                                    {passed(finishing, after(tooLate), orderPolicy(fail)), want{suspend, failedUnjudged, ActionSuspend, finish, false, "", "False/" + failedUnjudged}},
		"an unjudged fail stays while a pod is replaced":                           {passed(finishing, after(tooLate), orderPolicy(fail), recorded, held, starting(2)), want{suspend, failedUnjudged, "", finish, false, "", "False/" + failedUnjudged}},
		"a late pass ends an unjudged fail":                                        {passed(finishing, after(tooLate), orderPolicy(fail), recorded, held, orderSaid(post, "pass")), want{success, rolling, ActionResume, closeIt, true, "SUCCESS", "True"}},
		"a late pass ends an unjudged wait":                                        {passed(finishing, after(tooLate), orderPolicy(hold), recorded, orderSaid(post, "pass")), want{success, rolling, "", closeIt, true, "SUCCESS", "True"}},
		"an inconclusive verdict, policy Hold":                                     {passed(finishing, orderSaid(post, "inconc"), orderPolicy(hold)), want{running, heldUnjudged, "", finish, false, "", "False/" + heldUnjudged}},
		"an unconfirmed pass ends nothing":                                         {passed(finishing, orderSaid(post, "unconfirmed"), after(time.Second)), want{running, checking, "", finish, true, "", "Unknown"}},
		"a contradicted pass ends nothing":                                         {passed(finishing, orderSaid(post, "contradicted"), after(time.Second)), want{running, checking, "", finish, true, "", "Unknown"}},
		"an unconfirmed pass at the timeout, policy Pass":                          {passed(finishing, orderSaid(post, "unconfirmed"), after(tooLate)), want{success, rolling, "", closeIt, true, "SUCCESS", "False/" + v1alpha1.ReasonPassedUnjudged}},
		"an unconfirmed pass at the timeout, policy Hold":                          {passed(finishing, orderSaid(post, "unconfirmed"), after(tooLate), orderPolicy(hold)), want{running, heldUnjudged, "", finish, false, "", "False/" + heldUnjudged}},
		"a contradicted pass at the timeout":                                       {passed(finishing, orderSaid(post, "contradicted"), after(tooLate)), want{running, heldUnjudged, "", finish, false, "", "False/" + heldUnjudged}},
		"a contradicted pass at the timeout, policy Fail for the order":            {passed(finishing, orderSaid(post, "contradicted"), after(tooLate), orderPolicy(fail)), want{running, heldUnjudged, "", finish, false, "", "False/" + heldUnjudged}},
		"a contradicted pass at the timeout, policy Pass":                          {passed(finishing, orderSaid(post, "contradicted"), after(tooLate), contradictedPolicy(v1alpha1.NoVerdictPass)), want{success, rolling, "", closeIt, true, "SUCCESS", "False/" + v1alpha1.ReasonPassedUnjudged}},
		"a contradicted pass at the timeout, policy Fail":                          {passed(finishing, orderSaid(post, "contradicted"), after(tooLate), contradictedPolicy(fail)), want{suspend, failedUnjudged, ActionSuspend, finish, false, "", "False/" + failedUnjudged}},
		"a fail for a contradicted pass stays while a pod is replaced":             {passed(finishing, orderSaid(post, "contradicted"), after(tooLate), contradictedPolicy(fail), recorded, held, starting(2)), want{suspend, failedUnjudged, "", finish, false, "", "False/" + failedUnjudged}},
		"no finish follows a contradicted PRE pass":                                {passed(orderOpen, called(pre, ""), orderSaid(pre, "contradicted"), after(tooLate)), want{running, heldUnjudged, "", start, false, "", "False/" + heldUnjudged}},
		"a finish follows a contradicted PRE pass, policy Pass":                    {passed(orderOpen, called(pre, ""), orderSaid(pre, "contradicted"), after(tooLate), contradictedPolicy(v1alpha1.NoVerdictPass)), want{running, checking, "", finish, true, "", "Unknown"}},
		"an unconfirmed PRE pass is asked for":                                     {goes(called(pre, ""), orderSaid(pre, "unconfirmed"), after(time.Second)), want{running, judging, "", start, true, "", "Unknown"}},
		"a finish follows an unconfirmed PRE pass at the timeout":                  {passed(called(pre, ""), orderSaid(pre, "unconfirmed"), after(tooLate)), want{running, checking, "", finish, true, "", "Unknown"}},
		"a finish that is not accepted, policy Pass":                               {passed(started, atStep(finish, ""), called(post, "unreachable"), after(late)), want{success, rolling, "", closeIt, true, "SUCCESS", "False/" + v1alpha1.ReasonPassedUnjudged}},
		"a finish that is not accepted, policy Hold":                               {passed(started, atStep(finish, ""), called(post, "unreachable"), after(late), orderPolicy(hold)), want{running, heldUnjudged, "", finish, true, "", "False/" + heldUnjudged}},
		"a finish whose answer is not stored, at the timeout":                      {passed(started, atStep(finish, ""), called(post, ""), unanswered, after(late)), want{success, rolling, "", closeIt, true, "SUCCESS", "False/" + v1alpha1.ReasonPassedUnjudged}},
		"an unconfirmed pass of a finish whose answer was lost":                    {passed(started, atStep(finish, ""), called(post, "unreachable"), orderSaid(post, "unconfirmed"), after(late)), want{running, checking, "", finish, true, "", "Unknown"}},
		"an unconfirmed pass of such a finish at the timeout, policy Hold":         {passed(started, atStep(finish, ""), called(post, "unreachable"), orderSaid(post, "unconfirmed"), after(tooLate), orderPolicy(hold)), want{running, heldUnjudged, "", finish, false, "", "False/" + heldUnjudged}},
		"a contradicted pass of such a finish at the timeout":                      {passed(started, atStep(finish, ""), called(post, "unreachable"), orderSaid(post, "contradicted"), after(tooLate)), want{running, heldUnjudged, "", finish, false, "", "False/" + heldUnjudged}},
		"a start that is not accepted, policy Pass":                                {passed(called(pre, "unreachable"), after(late)), want{success, rolling, "", closeIt, true, "SUCCESS", "False/" + v1alpha1.ReasonPassedUnjudged}},
		"a start that is not accepted, policy Hold":                                {passed(called(pre, "unreachable"), after(late), orderPolicy(hold)), want{running, heldUnjudged, "", start, true, "", "False/" + heldUnjudged}},
		"a start that waits for its turn has no deadline":                          {passed(orderOpen, atStep(start, ""), after(24*time.Hour)), want{running, checking, "", start, true, "", "Unknown"}},
		"a start that is not made within submit-timeout":                           {passed(orderOpen, atStep(start, ""), woken(time.Hour), after(70*time.Minute)), want{success, rolling, "", closeIt, true, "SUCCESS", "False/" + v1alpha1.ReasonPassedUnjudged}},
		"a finish that waits for its turn has no deadline":                         {passed(started, atStep(finish, ""), after(24*time.Hour)), want{running, checking, "", finish, true, "", "Unknown"}},
		"a finish that is not made within submit-timeout":                          {passed(started, atStep(finish, ""), woken(time.Hour), after(70*time.Minute), orderPolicy(fail)), want{suspend, failedUnjudged, ActionSuspend, finish, true, "", "False/" + failedUnjudged}},
		"the order is held while its finish waits for another turn":                {passed(started, atStep(finish, ""), woken(time.Hour), after(70*time.Minute), orderPolicy(hold), recorded, inQueueAgain), want{running, heldUnjudged, "", finish, true, "", "False/" + heldUnjudged}},
		"a finish that waits for another turn, policy Pass meanwhile":              {passed(started, atStep(finish, ""), woken(time.Hour), after(70*time.Minute), orderPolicy(hold), recorded, inQueueAgain, orderPolicy("Pass")), want{running, checking, "", finish, true, "", "Unknown"}},
		"the time in which the order was opened does not count":                    {passed(orderOpen, atStep(start, ""), woken(-9*time.Minute), after(5*time.Minute)), want{running, checking, "", start, true, "", "Unknown"}},
		"a later start does not move the deadline":                                 {goes(called(pre, ""), calledAgain(100*time.Second, true), after(tooLate)), want{running, judging, "", start, false, "", "Unknown"}},
		"a POST verdict may be lost while no process ran":                          {passed(finishing, after(10*time.Minute), decidingSince(10*time.Minute-time.Second), orderPolicy(fail)), want{running, checking, "", finish, true, "", "Unknown"}},
		"no POST verdict within the grace of a new process":                        {passed(finishing, after(10*time.Minute), decidingSince(10*time.Minute-resend.RetrieveGrace), orderPolicy(fail)), want{suspend, failedUnjudged, ActionSuspend, finish, false, "", "False/" + failedUnjudged}},
		"a finish that was not accepted while no process ran":                      {passed(started, atStep(finish, ""), called(post, "unreachable"), after(10*time.Minute), decidingSince(10*time.Minute-time.Second), orderPolicy(fail)), want{running, checking, "", finish, true, "", "Unknown"}},
		"an order that is held stays held in a new process":                        {passed(finishing, after(tooLate), orderPolicy(hold), recorded, decidingSince(tooLate-time.Second)), want{running, heldUnjudged, "", finish, true, "", "False/" + heldUnjudged}},
		"the server skips the order check: no policy applies":                      {passed(called(pre, ""), skipped, orderPolicy(fail)), want{success, rolling, "", closeIt, true, "SUCCESS", "False/" + v1alpha1.ReasonOrderCheckSkipped}},
		"without a server the order check is not required":                         {passed(func(in *Input) { in.ServerConfigured = false }, orderPolicy(fail)), want{success, rolling, "", "", false, "", "False/" + v1alpha1.ReasonNoServerConfigured}},
		"a stricter policy does not change a release that ended":                   {passed(finishing, after(tooLate), recorded, orderPolicy(fail)), want{success, rolling, "", closeIt, true, "SUCCESS", "False/" + v1alpha1.ReasonPassedUnjudged}},
		"the fail of a pod comes before the order check":                           {goes(started, judged(2, "fail")), want{suspend, v1alpha1.ReasonCheckFailed, ActionSuspend, start, false, "", "Unknown"}},
		"a closed order of a Success stays unchanged":                              {passed(finishing, orderSaid(post, "pass"), was(success), atStep(closeIt, "SUCCESS"), closedAs("SUCCESS", 1, true, "")), want{success, "", "", closeIt, false, "SUCCESS", "True"}},
		"closing is repeated after an error":                                       {passed(finishing, was(success), atStep(closeIt, "SUCCESS"), closedAs("SUCCESS", 2, false, "ServerUnreachable")), want{success, "", "", closeIt, true, "SUCCESS", "False/" + v1alpha1.ReasonNoVerdict}},
		"closing is not repeated for ever":                                         {passed(finishing, was(success), atStep(closeIt, "SUCCESS"), closedAs("SUCCESS", 5, false, "ServerUnreachable")), want{success, "", "", closeIt, false, "SUCCESS", "False/" + v1alpha1.ReasonNoVerdict}},
		"closing is not repeated after a rejection":                                {passed(finishing, was(success), atStep(closeIt, "SUCCESS"), closedAs("SUCCESS", 1, false, "ServerRejected")), want{success, "", "", closeIt, false, "SUCCESS", "False/" + v1alpha1.ReasonNoVerdict}},
		"a newer template cancels the order":                                       {goes(started, was(running), newer), want{failed, v1alpha1.ReasonSuperseded, "", closeIt, true, "CANCEL", "False/" + v1alpha1.ReasonNoVerdict}},
		"a rollback closes the order as ROLLBACK":                                  {goes(started, was(running), newer, isRollback), want{failed, v1alpha1.ReasonSuperseded, "", closeIt, true, "ROLLBACK", "False/" + v1alpha1.ReasonNoVerdict}},
		"a rollback closes the order of a failed release as ROLLBACK":              {goes(started, was(suspend), newer, isRollback), want{suspend, "", "", closeIt, true, "ROLLBACK", "Unknown"}},
		"a replaced Success closes the order as SUCCESS":                           {goes(started, was(success), newer, isRollback), want{success, "", "", closeIt, true, "SUCCESS", "False/" + v1alpha1.ReasonNoVerdict}},
		"an order that was not opened is not closed":                               {goes(was(running), newer), want{failed, v1alpha1.ReasonSuperseded, "", "", false, "", "False/" + v1alpha1.ReasonNoVerdict}},
		"a failed release is replaced before its order is opened":                  {goes(was(suspend), newer, isRollback), want{suspend, "", "", closeIt, false, "ROLLBACK", "Unknown"}},
		"a failed release is replaced, without a server":                           {release(1, was(suspend), newer), want{suspend, "", "", closeIt, false, "CANCEL", "False/" + v1alpha1.ReasonNoServerConfigured}},
		"without pods it succeeds, and its order stays open for its next pods":     {atZero(), want{success, v1alpha1.ReasonNoVerdict, "", finish, false, "", "True"}},
		"without pods, a look later":                                               {atZero(recorded), want{success, v1alpha1.ReasonNoVerdict, "", finish, false, "", "True"}},
		"without pods, scaled up":                                                  {atZero(recorded, scaledTo(1), finished(1, 1)), want{running, judging, "", finish, false, "", "True"}},
		"without pods, scaled up, and its pod passed":                              {atZero(recorded, scaledTo(1), finished(1, 1), judged(1, "pass")), want{success, rolling, "", closeIt, true, "SUCCESS", "True"}},
		"without pods, replaced":                                                   {atZero(recorded, newer), want{success, v1alpha1.ReasonNoVerdict, "", closeIt, true, "SUCCESS", "True"}},
		"a failed release is replaced, a look later":                               {goes(was(suspend), newer, isRollback, recorded, newer), want{suspend, "", "", closeIt, false, "ROLLBACK", "Unknown"}},
		"an order that is opened later is closed, as the release is replaced":      {goes(was(suspend), newer, isRollback, recorded, orderOpen), want{suspend, "", "", closeIt, true, "ROLLBACK", "Unknown"}},
		"a release that failed after its order was closed is replaced":             {goes(started, was(suspend), newer, atStep(closeIt, "SUCCESS"), closedAs("SUCCESS", 1, true, "")), want{suspend, "", "", closeIt, false, "CANCEL", "Unknown"}},
		"a later release does not change the closing state":                        {goes(started, was(suspend), newer, atStep(closeIt, "ROLLBACK")), want{suspend, "", "", closeIt, true, "ROLLBACK", "Unknown"}},
		"a closing state that was sent is not changed":                             {goes(started, was(suspend), newer, isRollback, atStep(closeIt, "CANCEL"), closedAs("CANCEL", 1, false, "ServerUnreachable")), want{suspend, "", "", closeIt, true, "CANCEL", "Unknown"}},
		"a stale workload does not close the order":                                {goes(started, was(running), behind), want{running, "", "", "", false, "", "Unknown"}},
		"an order that was not accepted is not closed":                             {goes(was(failed)), want{failed, "", "", "", false, "", "False/" + v1alpha1.ReasonNoVerdict}},
		"an order that was accepted too late is cancelled":                         {goes(was(failed), orderOpen), want{failed, "", "", closeIt, true, "CANCEL", "False/" + v1alpha1.ReasonNoVerdict}},
		"an order that is not accepted, policy Hold for the order":                 {goes(asked, after(late), orderPolicy(hold)), want{init, v1alpha1.ReasonOrderPending, ActionHold, start, true, "", "Unknown"}},
		"an order that is not accepted, policy Fail for POST":                      {goes(asked, after(late), func(in *Input) { in.Settings.NoVerdictPost = fail }), want{suspend, v1alpha1.ReasonOrderNotAccepted, ActionSuspend, start, false, "", "Unknown"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(tc.in)
			got := want{Phase: d.Phase, Reason: d.Reason, Action: d.Action, Wake: d.Order.WakeSubmit}
			next := derive(tc.in, d)
			if s := next.Status.OrderStep; s != nil {
				got.Step, got.State = s.Name, s.State
			}
			if cond := next.Status.GetCondition(v1alpha1.ReleaseOrderJudged); cond != nil {
				got.Judged = string(cond.Status)
				if cond.IsFalse() {
					got.Judged += "/" + cond.Reason
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			everyConditionHasAReason(t, tc.in, d)
			if !d.Deadline.IsZero() && !d.Deadline.After(tc.in.Now) {
				t.Errorf("the deadline %s has passed: it would be reconciled without end", d.Deadline.Sub(t0))
			}
			if d.Order.WakeSubmit && d.Order.Step == nil {
				t.Error("submit is woken without a step")
			}
		})
	}
}

func TestNoBatchIsCreatedAfterTheOrderCheckFailed(t *testing.T) {
	in := release(3, withServer, orderOpen, called(v1alpha1.StagePre, ""), finished(1, 2), judged(1, "pass"))
	if got := len(Decide(in).Batches); got != 1 {
		t.Fatalf("%d batches before the fail, want 1", got)
	}
	for name, more := range map[string]func(*Input){"only the order failed": func(*Input) {}, "a pod failed, too": judged(3, "fail")} {
		in := in
		c := in.ChangeWorkload.DeepCopy()
		in.ChangeWorkload = c
		orderSaid(v1alpha1.StagePre, "fail")(&in)
		more(&in)
		if got := len(Decide(in).Batches); got != 0 {
			t.Errorf("%s: %d batches after it", name, got)
		}
	}
}
