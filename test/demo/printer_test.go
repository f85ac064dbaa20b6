package main

import "testing"

func TestACommandIsPrintedWithShellQuotes(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"plain arguments":   {[]string{"get", "pods", "-n", "demo"}, "get pods -n demo"},
		"JSON is quoted":    {[]string{"-p", `{"a":1}`}, `-p '{"a":1}'`},
		"a quote is quoted": {[]string{"it's"}, `'it'\''s'`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := shellQuote(tc.args); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
