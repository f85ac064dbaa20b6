package releasecheck

import (
	"errors"
	"testing"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
)

func answered(outcome v1alpha1.Outcome) v1alpha1.ReleaseCheckStatus {
	return v1alpha1.ReleaseCheckStatus{Outcome: outcome, Attempt: 1, Time: metav1.NewMicroTime(noon)}
}

func TestTheFirstStoredAnswerCounts(t *testing.T) {
	q := Query{Namespace: "default", Kind: "Deployment", Name: "sleep", Release: v1alpha1.Release{Version: "v1", Attempt: 1}}
	const pass, fail = v1alpha1.OutcomePass, v1alpha1.OutcomeFail
	yesterday, anotherAttempt := answered(fail), answered(fail)
	yesterday.Time = metav1.NewMicroTime(noon.Add(-24 * time.Hour))
	anotherAttempt.Attempt = 3
	passedBefore := yesterday
	passedBefore.Outcome = pass
	for name, tc := range map[string]struct {
		first    v1alpha1.ReleaseCheckStatus
		conflict bool // before was read
		answer   v1alpha1.Outcome
		want     v1alpha1.Outcome
	}{
		"without an earlier answer":          {answered(fail), false, pass, fail},
		"with an expired answer":             {answered(fail), true, pass, fail},
		"unless it is old":                   {yesterday, false, pass, pass},
		"unless it is old, with a conflict":  {yesterday, true, pass, pass},
		"unless it is about another attempt": {anotherAttempt, false, pass, pass},
		"unless it is empty":                 {v1alpha1.ReleaseCheckStatus{}, false, fail, fail},
		"also if it is old, if it is a pass": {passedBefore, false, fail, pass},
	} {
		t.Run(name, func(t *testing.T) {
			first := newReleaseCheck(q, tc.first)
			client := fake.NewSimpleClientset(first)
			var before *v1alpha1.ReleaseCheck
			if tc.conflict {
				before = newReleaseCheck(q, answered(v1alpha1.OutcomeNoVerdict))
				conflicts := 0
				client.PrependReactor("update", "releasechecks", func(clienttesting.Action) (bool, runtime.Object, error) {
					conflicts++
					return conflicts == 1, nil, apierrs.NewConflict(v1alpha1.Resource("releasechecks"), first.Name, errors.New("changed"))
				})
			}
			got, err := AnswerStore{client.AppV1alpha1()}.Store(t.Context(), q, before, answered(tc.answer))
			if err != nil || got.Outcome != tc.want {
				t.Errorf("%+v, %v", got, err)
			}
			stored, err := client.AppV1alpha1().ReleaseChecks(q.Namespace).Get(t.Context(), first.Name, metav1.GetOptions{})
			if err != nil || stored.Status.Outcome != tc.want {
				t.Errorf("stored: %+v, %v", stored, err)
			}
		})
	}
}

func TestAnAnswerThatCannotBeStoredIsEnforced(t *testing.T) {
	w := newFixture(t, nil)
	w.answer(t, fails)
	w.change.PrependReactor("*", "releasechecks", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrs.NewForbidden(v1alpha1.Resource("releasechecks"), "", errors.New("the namespace is being terminated"))
	})
	if got := w.Admit(t.Context(), release(t)); got.Response.Allowed || got.Decision != "ReleaseCheckFailed" {
		t.Errorf("%+v", got)
	}
}

func TestExpiredReleaseChecksAreDeleted(t *testing.T) {
	at := func(name string, created, answer time.Duration) *v1alpha1.ReleaseCheck {
		c := &v1alpha1.ReleaseCheck{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", CreationTimestamp: metav1.NewTime(noon.Add(-created))}}
		if answer > 0 {
			c.Status.Time = metav1.NewMicroTime(noon.Add(-answer))
		}
		return c
	}
	client := fake.NewSimpleClientset(
		at("old", 2*Retention, Retention), at("repeated", 2*Retention, Retention-time.Second), at("new", time.Hour, time.Hour), at("unanswered", Retention, 0))
	if err := (AnswerStore{client.AppV1alpha1()}).DeleteExpired(t.Context(), noon); err != nil {
		t.Fatal(err)
	}
	left, err := client.AppV1alpha1().ReleaseChecks("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, c := range left.Items {
		names[c.Name] = true
	}
	if len(names) != 2 || !names["repeated"] || !names["new"] {
		t.Errorf("%v are left", names)
	}
}
