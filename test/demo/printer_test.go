package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestTheOutputOfADeniedCommandIsPrintedInItsOrder(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte("#!/bin/sh\necho first\necho denied >&2\necho last\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := (&steps{printer: &printer{out: &out}}).denied(t.Context(), "denied", "delete", "pods"); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "\n$ kubectl delete pods\nfirst\ndenied\nlast\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}

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
