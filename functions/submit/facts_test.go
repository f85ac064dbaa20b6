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

func TestAnAnswerCountsOnlyForTheLastIntent(t *testing.T) {
	var s v1alpha1.ChangePodStatus
	first := writeIntent(&s.Submissions, pre, ft.Now())
	second := writeIntent(&s.Submissions, pre, ft.Now().Add(time.Minute))
	if storeStart(&s, first, "node-1", ft.Now()) || s.ChangePodID != "" {
		t.Error("the answer to an earlier call was stored")
	}
	if storeError(&s, pre, first, &v1alpha1.ServerError{}) {
		t.Error("the error of an earlier call was stored")
	}
	if !storeStart(&s, second, "node-2", ft.Now()) || s.ChangePodID != "node-2" || s.PreSubmitTimeUnix != ft.Now().Unix() {
		t.Errorf("the answer was not stored: %+v", s)
	}
	if storeStart(&s, second, "node-3", ft.Now()) {
		t.Error("an answer was stored twice")
	}
}

func TestANewIntentClearsTheLastError(t *testing.T) {
	var s v1alpha1.ChangePodStatus
	storeError(&s, post, writeIntent(&s.Submissions, post, ft.Now()), &v1alpha1.ServerError{Reason: "x"})
	if s.SubmissionOf(post).Error == nil {
		t.Fatal("the error was not stored")
	}
	if n := writeIntent(&s.Submissions, post, ft.Now()); n != 2 || s.SubmissionOf(post).Error != nil {
		t.Errorf("attempt %d, %+v", n, s.SubmissionOf(post))
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
		"no connection":  {&altershield.TransportError{Kind: altershield.KindDial, Err: errors.New("x")}, v1alpha1.ReasonServerUnreachable},
		"partial answer": {&altershield.TransportError{Kind: altershield.KindIO, Sent: true, Err: errors.New("x")}, v1alpha1.ReasonServerUnreachable},
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
