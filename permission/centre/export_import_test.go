package centre

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
	"github.com/breakwater-dev/breakwater/test/database"
	double "github.com/breakwater-dev/breakwater/test/provider"
)

func TestAnImportedStoreContinues(t *testing.T) {
	sqlite := func(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "centre.db") }
	for name, tc := range map[string]struct {
		from, to func(testing.TB) string
		// The export is made while the centre runs: a backup.
		running bool
	}{
		"sqlite to postgres":           {sqlite, database.Postgres, false},
		"postgres to sqlite":           {database.Postgres, sqlite, false},
		"a backup of a running centre": {sqlite, sqlite, true},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := tc.from(t), tc.to(t)
			w := newFixture(t, from)
			w.register(func(p *api.Provider) { p.Retry = api.Retry{MaxCalls: 20, BackoffSeconds: 600} }, "web", "db")
			granted := w.waitForState(w.request(podRequest(1, "web")).ID, api.Granted)
			w.double.SetFaults(double.Faults{Status: 503})
			waiting := w.request(podRequest(2, "web"))
			eventually(t, 10*time.Second, "nextTry is set", func() bool {
				w.mustDo(serverToken, "GET", "/v1/applications/"+waiting.ID, nil, &waiting)
				return waiting.Permissions[0].NextTry != nil
			})
			var before api.History
			w.mustDo(serverToken, "GET", "/v1/applications/"+granted.ID+"/history", nil, &before)
			if !tc.running {
				w.stop()
			}
			var moved bytes.Buffer
			if err := Export(t.Context(), Config{Store: from}, &moved); err != nil {
				t.Fatal(err)
			}
			if tc.running {
				w.stop()
			}
			if strings.Contains(moved.String(), "very-secret-bearer") {
				t.Error("the export contains a credential")
			}
			text := moved.String()
			if err := Import(t.Context(), Config{Store: to}, &moved); err != nil {
				t.Fatal(err)
			}
			if err := Import(t.Context(), Config{Store: to}, strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "already") {
				t.Errorf("second import: %v", err)
			}

			w.double.SetFaults(double.Faults{})
			w.startReplica(testConfig(t, to))
			var after api.History
			w.mustDo(serverToken, "GET", "/v1/applications/"+granted.ID+"/history", nil, &after)
			if diff := cmp.Diff(before, after); diff != "" {
				t.Error(diff)
			}
			// The waiting application keeps its nextTry, and grants can be revoked.
			var still api.Application
			w.mustDo(serverToken, "GET", "/v1/applications/"+waiting.ID, nil, &still)
			if still.Permissions[0].NextTry == nil || !still.Permissions[0].NextTry.Equal(*waiting.Permissions[0].NextTry) {
				t.Errorf("nextTry %v, want %v", still.Permissions[0].NextTry, waiting.Permissions[0].NextTry)
			}
			for _, id := range []string{granted.ID, waiting.ID} {
				w.mustDo(serverToken, "POST", "/v1/applications/"+id+"/revoke", nil, nil)
				w.waitForState(id, api.Revoked)
			}
			w.waitForState(w.request(podRequest(3, "web")).ID, api.Granted)
			w.mustDo(ownerToken, "PUT", "/v1/permissions/db", api.Permission{Meta: api.Meta{Owner: "team-a"}, Provider: "double"}, nil, "If-Match", `"1"`)
			if grants := len(w.double.Stats().Current); grants != 1 {
				t.Errorf("the provider has %d grants, want 1", grants)
			}
		})
	}
}

// writerFunc is called between the parts of an export.
type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(part []byte) (int, error) { return w(part) }

// Otherwise the copy could have a grant without its application.
func TestAnExportOfARunningCentreIsOneSnapshot(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		const pods = 20
		w := newFixture(t, address)
		w.register(nil, "web", "db")
		requested := 0
		request := func() {
			requested++
			w.request(podRequest(requested, "web"))
		}
		for requested < pods {
			request()
		}
		var moved bytes.Buffer
		if err := Export(t.Context(), Config{Store: address}, writerFunc(func(part []byte) (int, error) {
			request()
			return moved.Write(part)
		})); err != nil {
			t.Fatal(err)
		}
		for _, table := range []string{"applications", "application_ips", "grants", "grant_ips"} {
			if rows := strings.Count(moved.String(), `{"table":"`+table+`",`); rows != pods {
				t.Errorf("the export has %d rows of %s, want %d", rows, table, pods)
			}
		}
	})
}

func TestInvalidExportsAreNotImported(t *testing.T) {
	address := "sqlite:" + filepath.Join(t.TempDir(), "c.db")
	for name, text := range map[string]string{
		"empty input":          "",
		"other format":         `{"format":"other"}`,
		"unknown table":        `{"format":"permissioncentre/1"}` + "\n" + `{"table":"jobs","values":{"id":1}}`,
		"SQL in a column name": `{"format":"permissioncentre/1"}` + "\n" + `{"table":"pace","values":{"next) VALUES (1); --":1}}`,
	} {
		if err := Import(t.Context(), Config{Store: address}, strings.NewReader(text)); err == nil {
			t.Errorf("%s was imported", name)
		}
	}
}

// An earlier version had a queue of jobs.
func TestAnExportOfAnEarlierVersionIsImported(t *testing.T) {
	address := "sqlite:" + filepath.Join(t.TempDir(), "c.db")
	const text = `{"format":"permissioncentre/1"}
{"table":"grants","values":{"application":"a","ordinal":0,"permission":"db","provider":"p","subject":"db","owner":"team-a","parameters":"{}","state":"Applying","reason":"","message":"","calls":0,"failures":0,"since":0,"began":0,"next_try":0,"step":3,"job":9,"due":0,"lease":"run","lease_until":1700000000000000,"call_key":"k","keys":0,"touched":1,"pending":0,"kept":"null"}}
`
	if err := Import(t.Context(), Config{Store: address}, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if grants, err := s.View(t.Context()).Grants("a"); err != nil || len(grants) != 1 || !grants[0].Due.Equal(time.Unix(1_700_000_000, 0)) {
		t.Errorf("grants %+v, %v", grants, err)
	}
}
