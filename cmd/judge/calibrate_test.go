package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

func TestNoReleaseIsQueriedIfALineOfTheListIsInvalid(t *testing.T) {
	var queries atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		queries.Add(1)
		_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"matrix","result":[]}}`))
	}))
	defer server.Close()
	valid := `"a=""b""","a=""c""",1760000000,,good` + "\n"
	for name, c := range map[string]struct{ line, want string }{
		"matcher": {"a=b,,1760000000,,good\n", "line 4: new: "},
		"time":    {`"a=""b""",,yesterday,,good` + "\n", "line 4: at: "},
		"check":   {`"a=""b""",,1760000000,none,good` + "\n", "line 4: open "},
	} {
		list := filepath.Join(t.TempDir(), "list.csv")
		if err := os.WriteFile(list, []byte("new,old,at,check,label\n"+valid+valid+c.line), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		code := run(t.Context(), []string{"calibrate", "--prometheus", server.URL, "--list", list, "--parallel", "1"}, &out, &errs)
		if n := queries.Swap(0); code != exitError || !strings.Contains(errs.String(), c.want) || n > 0 {
			t.Errorf("%s: exit code %d after %d queries, error %q, want 3 after none, and %q", name, code, n, errs.String(), c.want)
		}
	}
}
