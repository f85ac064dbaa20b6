package kubectl

import "testing"

// Require runs a command with stdin and returns its stdout. An exit code other than 0 ends the test.
func (k Kubectl) Require(t testing.TB, stdin string, args ...string) string {
	t.Helper()
	out, err := k.Output(t.Context(), stdin, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Try runs a command with stdin, which may exit with any code.
func (k Kubectl) Try(t testing.TB, stdin string, args ...string) Result {
	t.Helper()
	r, err := k.RunWithInput(t.Context(), stdin, args...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
