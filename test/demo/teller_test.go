package main

import "testing"

func TestACommandIsShownAsItIsTyped(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"plain words":       {[]string{"get", "pods", "-n", "demo"}, "get pods -n demo"},
		"JSON is quoted":    {[]string{"-p", `{"a":1}`}, `-p '{"a":1}'`},
		"a quote is quoted": {[]string{"it's"}, `'it'\''s'`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := typed(tc.args); got != tc.want {
				t.Errorf("typed %s, want %s", got, tc.want)
			}
		})
	}
}
