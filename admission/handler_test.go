package admission_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/internal/groupcommit"
)

func TestADenialWithoutADecisionNamesItsCause(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"no decision in time": {fmt.Errorf("commit: %w", groupcommit.ErrDeadline), admission.DecisionDeniedTimeout},
		"a full queue":        {fmt.Errorf("commit: %w", groupcommit.ErrQueueFull), admission.DecisionDeniedQueueFull},
		"another error":       {errors.New("no route to host"), admission.DecisionError},
	} {
		t.Run(name, func(t *testing.T) {
			if got := admission.DecisionOf(tc.err); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
