package store

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzImport imports exports into an empty store. An import that is rejected changes
// nothing; what an accepted import stored is exported, and imported again to the same.
func FuzzImport(f *testing.F) {
	const (
		header      = `{"format":"permissioncentre/1","tables":["objects"]}` + "\n"
		object      = `{"table":"objects","values":{"kind":"provider","name":"p","owner":"o","description":"","body":"{}","version":1,"created":0,"updated":0}}` + "\n"
		pace        = `{"table":"pace","values":{"provider":"p","next":1}}` + "\n"
		counted     = `{"format":"permissioncentre/2"}` + "\n"
		application = `{"table":"application_ips","values":{"application":"a","ip":"10.0.0.1"}}` + "\n"
	)
	for _, text := range []string{
		header, header + object, header + object + object, header + application + application, header + pace,
		header + `{"table":"grants"}`, header + `{"table":"grants","values":null}`, header + `{"table":"objects","values":{}}`,
		header + `{"table":"jobs","values":{"a":1}}`, header + `{"table":"objects","values":{"":1}}`,
		header + `{"table":"links","values":{"kind":1.5}}`, header + `{"table":"links","values":{"kind":{"a":[]},"name":true}}`,
		header + `{"table":"links","values":{"kind":"k","name":"n","to_kind":"\u0000","to_name":"\ud800"}}`,
		header + `{"table":"links","values":{"kind) VALUES (1); DROP TABLE objects; --a":1}}`,
		header + "{", counted, counted + object + `{"rows":1}`, counted + object + `{"rows":2}`, counted + `{"rows":0}` + object, `{"format":"permissioncentre/3"}`, `null`, ``,
	} {
		f.Add(text)
	}
	s, again := open(f), open(f)
	empty := export(f, s)
	for _, s := range []*Store{s, again} {
		if _, err := s.write.Exec("PRAGMA synchronous = OFF"); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 64<<10 {
			return
		}
		deleteRows(t, s)
		err := s.Import(t.Context(), strings.NewReader(text))
		stored := export(t, s)
		if err != nil {
			if stored != empty || len(err.Error()) > 1024 {
				t.Errorf("rejected with %.1000v, but stored:\n%s", err, stored)
			}
			return
		}
		deleteRows(t, again)
		if err := again.Import(t.Context(), strings.NewReader(stored)); err != nil {
			t.Fatalf("an export is rejected: %v\n%s", err, stored)
		}
		if second := export(t, again); second != stored {
			t.Errorf("exported:\n%s\nimported:\n%s", stored, second)
		}
	})
}

func open(t testing.TB) *Store {
	t.Helper()
	return openAt(t, "sqlite:"+filepath.Join(t.TempDir(), "#?%41.db"))
}

func openAt(t testing.TB, address string) *Store {
	t.Helper()
	s, err := Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// deleteRows deletes all rows; opening a new store for each input takes too long.
func deleteRows(t testing.TB, s *Store) {
	t.Helper()
	for _, table := range exportTables {
		if _, err := s.write.Exec("DELETE FROM " + table); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.write.Exec("DELETE FROM sqlite_sequence"); err != nil {
		t.Fatal(err)
	}
}

func export(t testing.TB, s *Store) string {
	t.Helper()
	var out bytes.Buffer
	if err := s.Export(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
