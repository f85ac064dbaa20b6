package kubectl

import (
	"os"
	"path/filepath"
	"testing"
)

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

// The first run of this kubectl finds null, as in the test above.
func TestAWaitThatIsRepeatedSucceeds(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("SECOND", filepath.Join(dir, "second"))
	const script = "#!/bin/sh\n[ -e $SECOND ] || { touch $SECOND; echo '.status.conditions accessor error: <nil>' >&2; exit 1; }\ncat\n"
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := (Kubectl{}).Output(t.Context(), "input", "wait"); out != "input" || err != nil {
		t.Errorf("%q, %v", out, err)
	}
}
