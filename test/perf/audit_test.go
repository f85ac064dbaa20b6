package perf

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOnlyOurRequestsInTheNamespaceAreCounted(t *testing.T) {
	const before = `{"stage":"ResponseComplete","user":{"username":"a:controller"},"objectRef":{"resource":"pods","namespace":"ns"},"responseStatus":{"code":200}}
`
	const after = `{"stage":"ResponseComplete","verb":"patch","user":{"username":"a:controller"},"objectRef":{"resource":"pods","namespace":"ns"},"responseStatus":{"code":200},"stageTimestamp":"2026-01-02T03:04:05.678901Z"}
{"stage":"ResponseComplete","verb":"patch","user":{"username":"a:controller"},"objectRef":{"resource":"changepods","subresource":"status","namespace":"ns"},"responseStatus":{"code":409}}
{"stage":"ResponseComplete","verb":"get","user":{"username":"a:controller"},"objectRef":{"resource":"pods","namespace":"ns"},"responseStatus":{"code":404}}
{"stage":"ResponseComplete","verb":"list","user":{"username":"a:controller"},"objectRef":{"resource":"pods","namespace":"ns"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"watch","user":{"username":"a:controller"},"objectRef":{"resource":"pods","namespace":"ns"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"create","user":{"username":"a:controller"},"objectRef":{"resource":"events","namespace":"ns"},"responseStatus":{"code":201}}
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
	got, err := countRequests(path, since, "a:", "ns")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[call]requests{
		{"controller", "patch", "pods"}:              {Writes: 1, Last: time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)},
		{"controller", "patch", "changepods/status"}: {Rejected: 1},
		{"controller", "create", "events"}:           {Events: 1},
		{"controller", "get", "pods"}:                {Reads: 1},
		{"controller", "list", "pods"}:               {Reads: 1},
	}, got); diff != "" {
		t.Error(diff)
	}
	everywhere, err := countRequests(path, since, "a:", "")
	if err != nil || everywhere[call{"controller", "", "pods"}].Writes != 1 {
		t.Errorf("in all namespaces %v, %v, want the write in the other one", everywhere, err)
	}
	if err := os.WriteFile(path, []byte(before)[:10], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := countRequests(path, since, "a:", "ns"); err == nil {
		t.Error("a rotated log is counted")
	}
}
