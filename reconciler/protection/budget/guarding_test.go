package budget

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

func TestTheConditionGuarding(t *testing.T) {
	now := time.Unix(1000, 0)
	both, one, none := sets.New("a", "b"), sets.New("a"), sets.New[string]()
	for _, tc := range []struct {
		name          string
		first         time.Time
		answered, all sets.Set[string]
		err           error
		want          corev1.ConditionStatus
		reason        string
	}{
		{"not all replicas answered", time.Time{}, one, both, nil, corev1.ConditionUnknown, v1alpha1.ReasonProbing},
		{"all replicas answered, but earlier requests may be pending", time.Time{}, both, both, nil, corev1.ConditionUnknown, v1alpha1.ReasonProbing},
		{"all replicas answered for less than inFlightWait", now.Add(-inFlightWait / 2), both, both, nil, corev1.ConditionUnknown, v1alpha1.ReasonProbing},
		{"all replicas answered for inFlightWait", now.Add(-inFlightWait), both, both, nil, corev1.ConditionTrue, v1alpha1.ReasonAllReplicasAnswered},
		{"a third replica was added", now.Add(-inFlightWait), both, sets.New("a", "b", "c"), nil, corev1.ConditionUnknown, v1alpha1.ReasonProbing},
		{"one replica was removed", now.Add(-inFlightWait), both, one, nil, corev1.ConditionTrue, v1alpha1.ReasonAllReplicasAnswered},
		{"no replica was called", now.Add(-inFlightWait), none, both, nil, corev1.ConditionFalse, v1alpha1.ReasonWebhookNotCalled},
		{"no replica exists", now.Add(-inFlightWait), nil, none, nil, corev1.ConditionFalse, v1alpha1.ReasonWebhookNotCalled},
		{"the probe failed", now.Add(-inFlightWait), nil, both, errors.New("no route"), corev1.ConditionUnknown, v1alpha1.ReasonProbing},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := evaluateProbe(probeState{allSince: tc.first}, tc.answered, tc.all, tc.err, now)
			if h.condition.Status != tc.want || h.condition.Reason != tc.reason || !h.next.After(now) {
				t.Errorf("got %+v, next %v", h.condition, h.next)
			}
			if (h.condition.Message == "") != (tc.want == corev1.ConditionTrue) {
				t.Errorf("message is %q", h.condition.Message)
			}
			if tc.want == corev1.ConditionFalse && !h.allSince.IsZero() {
				t.Error("the wait for requests in flight did not start again")
			}
		})
	}
}

// A replica that does not have this generation of the budget in its cache does not answer,
// and without a ready replica failurePolicy decides.
func TestTheConditionGuardingNamesEachPossibleCause(t *testing.T) {
	ready, none := sets.New("a"), sets.New[string]()
	for name, tc := range map[string]struct {
		all   sets.Set[string]
		words []string
	}{
		"no answer":        {ready, []string{"does not know this version of the budget yet", "namespace label", "webhook configuration"}},
		"no ready replica": {none, []string{"denied, or pass if failurePolicy is Ignore"}},
	} {
		message := evaluateProbe(probeState{}, none, tc.all, nil, time.Unix(1000, 0)).condition.Message
		for _, words := range tc.words {
			if !strings.Contains(message, words) {
				t.Errorf("%s: %q is missing: %s", name, words, message)
			}
		}
	}
}
