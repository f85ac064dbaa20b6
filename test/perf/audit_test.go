package perf

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOnlyOurWritesToTheNamespaceAreCounted(t *testing.T) {
	const before = `{"stage":"ResponseComplete","user":{"username":"a:controller"},"objectRef":{"resource":"pods","namespace":"ns"},"responseStatus":{"code":200}}
`
	const after = `{"stage":"ResponseComplete","user":{"username":"a:controller"},"objectRef":{"resource":"pods","namespace":"ns"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","user":{"username":"a:controller"},"objectRef":{"resource":"changepods","namespace":"ns"},"responseStatus":{"code":409}}
{"stage":"ResponseComplete","user":{"username":"a:controller"},"objectRef":{"resource":"events","namespace":"ns"},"responseStatus":{"code":201}}
{"stage":"RequestReceived","user":{"username":"a:controller"},"objectRef":{"resource":"pods","namespace":"ns"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","user":{"username":"a:controller"},"objectRef":{"resource":"pods","namespace":"other"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","user":{"username":"somebody"},"objectRef":{"resource":"pods","namespace":"ns"},"responseStatus":{"code":200}}
`
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	since, err := auditSize(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(before+after), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := countWrites(path, since, "a:", "ns")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]writes{"controller": {Objects: 1, Refused: 1, Events: 1}}, got); diff != "" {
		t.Error(diff)
	}
}
