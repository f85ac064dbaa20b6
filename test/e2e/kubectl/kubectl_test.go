package kubectl

import "testing"

func TestAWaitIsRepeatedWhileACRDHasNoConditions(t *testing.T) {
	const null = "error: .status.conditions accessor error: <nil> is of the type <nil>, expected []interface{}"
	for name, tc := range map[string]struct {
		r    Result
		want bool
	}{
		"conditions are null": {Result{Args: []string{"wait"}, Stderr: null, Code: 1}, true},
		"it timed out":        {Result{Args: []string{"wait"}, Stderr: "error: timed out waiting for the condition", Code: 1}, false},
		"it is met":           {Result{Args: []string{"wait"}}, false},
		"another command":     {Result{Args: []string{"get"}, Stderr: null, Code: 1}, false},
	} {
		if got := withoutConditions(tc.r); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
