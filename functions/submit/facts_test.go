package submit

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
)

func TestAnAnswerCountsOnlyForItsOwnIntent(t *testing.T) {
	var s v1alpha1.ChangePodStatus
	first := claim(&s.Submissions, pre, ft.Now())
	second := claim(&s.Submissions, pre, ft.Now().Add(time.Minute))
	if started(&s, first, "node-1", ft.Now()) || s.ChangePodID != "" {
		t.Error("the answer to a call that was given up was stored")
	}
	if failed(&s, pre, first, &v1alpha1.ServerError{}) {
		t.Error("the error of a call that was given up was stored")
	}
	if !started(&s, second, "node-2", ft.Now()) || s.ChangePodID != "node-2" || s.PreSubmitTimeUnix != ft.Now().Unix() {
		t.Errorf("the answer was not stored: %+v", s)
	}
	if started(&s, second, "node-3", ft.Now()) {
		t.Error("an answer was stored twice")
	}
}

func TestANewIntentForgetsTheLastError(t *testing.T) {
	var s v1alpha1.ChangePodStatus
	failed(&s, post, claim(&s.Submissions, post, ft.Now()), &v1alpha1.ServerError{Reason: "x"})
	if s.SubmissionOf(post).Error == nil {
		t.Fatal("the error was not stored")
	}
	if n := claim(&s.Submissions, post, ft.Now()); n != 2 || s.SubmissionOf(post).Error != nil {
		t.Errorf("attempt %d, %+v", n, s.SubmissionOf(post))
	}
}

func TestWhatAnErrorOfTheServerIsStoredAs(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"a bad argument":           {&altershield.ResultError{Code: altershield.CodeArgument}, v1alpha1.ReasonServerRejected},
		"a bad signature":          {&altershield.ResultError{Code: altershield.CodeSignature}, v1alpha1.ReasonServerRejected},
		"a state":                  {&altershield.ResultError{Code: altershield.CodeState}, v1alpha1.ReasonServerRejected},
		"its internal error":       {&altershield.ResultError{Code: altershield.CodeInternal}, v1alpha1.ReasonServerUnreachable},
		"no connection":            {&altershield.TransportError{Kind: altershield.KindDial, Err: errors.New("x")}, v1alpha1.ReasonServerUnreachable},
		"an answer that broke off": {&altershield.TransportError{Kind: altershield.KindIO, Sent: true, Err: errors.New("x")}, v1alpha1.ReasonServerUnreachable},
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

func TestWhatIsKnownOfAnOrder(t *testing.T) {
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
		"it was opened":                      {nil, altershield.OrderAnswer{OrderID: "1"}, nil, true, "1", false},
		"it existed":                         {nil, altershield.OrderAnswer{Existed: true}, nil, true, "", false},
		"it was refused":                     {nil, altershield.OrderAnswer{}, no, false, "", true},
		"it was opened after it was refused": {&v1alpha1.Order{Error: &v1alpha1.ServerError{}}, altershield.OrderAnswer{OrderID: "1"}, nil, true, "1", false},
		"two opened it, and the other one knows less": {open, altershield.OrderAnswer{Existed: true}, nil, true, "1", false},
		"two opened it, and the other one knows more": {&v1alpha1.Order{OpenedTime: &opened}, altershield.OrderAnswer{OrderID: "1"}, nil, true, "1", false},
		"two opened it, and the other one failed":     {open, altershield.OrderAnswer{}, no, true, "1", false},
	} {
		t.Run(name, func(t *testing.T) {
			got := orderAfter(tc.before, tc.answer, tc.err, ft.Now())
			if (got.OpenedTime != nil) != tc.open || got.ID != tc.id || (got.Error != nil) != tc.failed {
				t.Errorf("got %+v", got)
			}
		})
	}
}
