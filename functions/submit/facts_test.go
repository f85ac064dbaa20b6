package submit

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
)

func TestAnAnswerCountsOnlyForTheLastIntent(t *testing.T) {
	var s v1alpha1.ChangePodStatus
	setIntent(&s.Submissions, pre, "", ft.Now())
	setIntent(&s.Submissions, pre, "", ft.Now().Add(time.Minute))
	if setStarted(&s, 1, "node-1", ft.Now()) || s.ChangePodID != "" {
		t.Error("the answer to an earlier call was stored")
	}
	if setError(&s, pre, 1, &v1alpha1.ServerError{}) {
		t.Error("the error of an earlier call was stored")
	}
	if !setStarted(&s, 2, "node-2", ft.Now()) || s.ChangePodID != "node-2" || s.PreSubmitTimeUnix != ft.Now().Unix() {
		t.Errorf("the answer was not stored: %+v", s)
	}
	if setStarted(&s, 2, "node-3", ft.Now()) {
		t.Error("an answer was stored twice")
	}
}

func TestLaterIntentsKeepTheTimeOfTheFirst(t *testing.T) {
	var s v1alpha1.ChangePodStatus
	for i := range 3 {
		setIntent(&s.Submissions, pre, "", ft.Now().Add(time.Duration(i)*time.Minute))
		sub := s.SubmissionOf(pre)
		if first := sub.FirstIntent(); !first.Equal(ft.Now()) || !sub.IntentTime.Time.Equal(ft.Now().Add(time.Duration(i)*time.Minute)) {
			t.Errorf("intent %d is of %s, the first of %s", i+1, sub.IntentTime, first)
		}
	}
}

func TestOrderTimeoutCountsFromTheFirstResult(t *testing.T) {
	lost := &altershield.CallError{Kind: altershield.KindIO, Err: errors.New("x")}
	o := updatedOrder(nil, altershield.OrderAnswer{}, lost, ft.Now())
	o = updatedOrder(o, altershield.OrderAnswer{}, lost, ft.Now().Add(time.Minute))
	if requested, ok := o.FirstResult(); !ok || !requested.Equal(ft.Now()) {
		t.Errorf("requested %s, %v", requested, ok)
	}
}

func TestAStartAfterAnAnsweredOneKeepsTheEarlierNodes(t *testing.T) {
	var s v1alpha1.ChangePodStatus
	call := func(after time.Duration, node string) {
		setBatchIntent(&s, pre, ft.Now().Add(after))
		if node != "" && !setStarted(&s, s.SubmissionOf(pre).Attempts, node, ft.Now().Add(after)) {
			t.Fatal("the answer was not stored")
		}
	}
	call(0, "n1")
	call(5*time.Second, "") // its answer is lost
	call(20*time.Second, "n2")
	setResumed(s.Submissions, s.SubmissionOf(pre).DeepCopy(), ft.Now().Add(40*time.Second))
	setResumed(s.Submissions, &v1alpha1.Submission{Attempts: 2}, ft.Now()) // an outdated one
	got := s.SubmissionOf(pre)
	if diff := cmp.Diff([]string{"n2", "n1"}, s.Nodes()); diff != "" {
		t.Error(diff)
	}
	if !got.FirstIntent().Equal(ft.Now()) || got.Attempts != 3 || got.Resumptions != 2 || !got.AnsweredTime.Time.Equal(ft.Now().Add(40*time.Second)) {
		t.Errorf("submission is %+v", got)
	}
	s.Verdicts = []v1alpha1.StageVerdict{{Stage: pre, Verdict: "pass", NodeID: "n1"}}
	setBatchIntent(&s, post, ft.Now())
	if diff := cmp.Diff([]string{"n1", "n2"}, s.Nodes()); diff != "" || s.ChangePodID != "n1" {
		t.Errorf("the finish is not of the node that passed: %s", diff)
	}
}

// A slow server: the first check passes, and its finish is called while the second start
// is in flight.
func TestALateAnswerToARepeatedStartKeepsTheNodeOfTheFinish(t *testing.T) {
	at := metav1.NewMicroTime(ft.Now())
	submissions := func() []v1alpha1.Submission {
		return []v1alpha1.Submission{{Stage: pre, IntentTime: at, Attempts: 1, AnsweredTime: &at}}
	}
	verdicts := []v1alpha1.StageVerdict{{Stage: pre, Verdict: "pass", NodeID: "n1"}}
	t.Run("of a batch", func(t *testing.T) {
		s := v1alpha1.ChangePodStatus{ChangePodID: "n1", Submissions: submissions()}
		setBatchIntent(&s, pre, ft.Now())
		s.Verdicts = verdicts
		setBatchIntent(&s, post, ft.Now())
		if !setStarted(&s, 2, "n2", ft.Now()) {
			t.Fatal("the answer was not stored")
		}
		if diff := cmp.Diff([]string{"n1", "n2"}, s.Nodes()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("of the order", func(t *testing.T) {
		s := v1alpha1.ChangeWorkloadStatus{Order: &v1alpha1.Order{NodeID: "n1", Submissions: submissions()}}
		setOrderIntent(&s, pre, ft.Now())
		s.OrderVerdicts = verdicts
		setOrderIntent(&s, post, ft.Now())
		setOrderStarted(s.Order, s.Order.SubmissionOf(pre), altershield.StartAnswer{NodeID: "n2"}, ft.Now())
		if diff := cmp.Diff([]string{"n1", "n2"}, s.Order.Nodes()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestANewIntentClearsTheLastError(t *testing.T) {
	var s v1alpha1.ChangePodStatus
	setIntent(&s.Submissions, post, "", ft.Now())
	setError(&s, post, 1, &v1alpha1.ServerError{Reason: "x"})
	if s.SubmissionOf(post).Error == nil {
		t.Fatal("the error was not stored")
	}
	setIntent(&s.Submissions, post, "", ft.Now())
	if last := s.SubmissionOf(post); last.Attempts != 2 || last.Error != nil {
		t.Errorf("the submission is %+v", last)
	}
}

func TestReasonsOfServerErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"argument":       {&altershield.ResultError{Code: altershield.CodeArgument}, v1alpha1.ReasonServerRejected},
		"signature":      {&altershield.ResultError{Code: altershield.CodeSignature}, v1alpha1.ReasonServerRejected},
		"state":          {&altershield.ResultError{Code: altershield.CodeState}, v1alpha1.ReasonServerRejected},
		"internal error": {&altershield.ResultError{Code: altershield.CodeInternal}, v1alpha1.ReasonServerUnreachable},
		"no connection":  {&altershield.CallError{Kind: altershield.KindDial, Err: errors.New("x")}, v1alpha1.ReasonServerUnreachable},
		"partial answer": {&altershield.CallError{Kind: altershield.KindIO, MaybeReceived: true, Err: errors.New("x")}, v1alpha1.ReasonServerUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			if got := serverError(tc.err, ft.Now()); got.Reason != tc.want || got.Message == "" {
				t.Errorf("got %+v", got)
			}
		})
	}
	long := serverError(&altershield.ResultError{Msg: strings.Repeat("变", 2000)}, ft.Now())
	if len(long.Message) > maxMessage || !utf8.ValidString(long.Message) {
		t.Errorf("%d bytes", len(long.Message))
	}
}

func TestUpdatedOrder(t *testing.T) {
	opened := metav1.NewTime(ft.Now())
	open := &v1alpha1.Order{ID: "1", URL: "u", OpenedTime: &opened}
	no := errors.New("no")
	for name, tc := range map[string]struct {
		before *v1alpha1.Order
		answer altershield.OrderAnswer
		err    error
		open   bool
		id     string
		failed bool
	}{
		"opened":                {nil, altershield.OrderAnswer{OrderID: "1"}, nil, true, "1", false},
		"existed":               {nil, altershield.OrderAnswer{Existed: true}, nil, true, "", false},
		"rejected":              {nil, altershield.OrderAnswer{}, no, false, "", true},
		"rejected, then opened": {&v1alpha1.Order{Error: &v1alpha1.ServerError{}}, altershield.OrderAnswer{OrderID: "1"}, nil, true, "1", false},
		"opened, then existed":  {open, altershield.OrderAnswer{Existed: true}, nil, true, "1", false},
		"existed, then opened":  {&v1alpha1.Order{OpenedTime: &opened}, altershield.OrderAnswer{OrderID: "1"}, nil, true, "1", false},
		"opened, then rejected": {open, altershield.OrderAnswer{}, no, true, "1", false},
	} {
		t.Run(name, func(t *testing.T) {
			got := updatedOrder(tc.before, tc.answer, tc.err, ft.Now())
			if (got.OpenedTime != nil) != tc.open || got.ID != tc.id || (got.Error != nil) != tc.failed {
				t.Errorf("got %+v", got)
			}
		})
	}
}
