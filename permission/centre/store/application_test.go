package store

import (
	"database/sql"
	"net/url"
	"slices"
	"testing"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/test/database"
)

// The reports of existing pods compare UIDs by their bytes. In Danish "aa" follows "z".
func TestTheRangeOfPodUIDsDoesNotDependOnTheCollation(t *testing.T) {
	address, err := url.Parse(database.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	admin, err := sql.Open("pgx", address.String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close() }()
	if _, err := admin.ExecContext(t.Context(), "CREATE DATABASE danish TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'da'"); err != nil {
		t.Fatal(err)
	}
	address.Path = "danish"
	s := openAt(t, address.String())
	if _, err := s.write.ExecContext(t.Context(), `
		INSERT INTO applications (id, cluster, namespace, pod, pod_uid, set_name, request, state, reason, message, attempt, going, created, updated, version, asked)
		SELECT uid, 'c', 'shop', 'web', uid, 'web', '{}', 'Granted', '', '', 1, 0, 0, 0, 1, 0 FROM unnest(ARRAY['0', 'a9', 'aa', 'ab', 'f']) uid`); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		above, upTo string
		want        []string
	}{
		{"", "aa", []string{"0", "a9", "aa"}},
		{"a9", "ab", []string{"aa", "ab"}},
		{"aa", "", []string{"ab", "f"}},
	} {
		list, err := s.View(t.Context()).Applications(Filter{Cluster: "c", States: []api.State{api.Granted}, UIDAbove: tc.above, UIDUpTo: tc.upTo}, Page{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, a := range list {
			ids = append(ids, a.ID)
		}
		if slices.Sort(ids); !slices.Equal(ids, tc.want) {
			t.Errorf("above %q, up to %q: %q, want %q", tc.above, tc.upTo, ids, tc.want)
		}
	}
}
