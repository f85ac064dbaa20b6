package centre

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// A process may restart more often than once an hour. After an outage, the first reports list the pods whose applications stay.
func TestAProcessPrunesTenMinutesAfterItsStartAndEachHour(t *testing.T) {
	path := filepath.Join(t.TempDir(), "centre.db")
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open(t.Context(), "sqlite:"+path)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		add := func() {
			if err := s.Write(t.Context(), func(tx store.Tx) error { return tx.AddAudit(time.Now().Add(-49*time.Hour), api.AuditEntry{}) }); err != nil {
				t.Fatal(err)
			}
		}
		add()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = (&Centre{store: s, config: Config{Retention: 48 * time.Hour}}).prunePeriodically(ctx) }()
		for _, tc := range []struct {
			after time.Duration
			want  int
		}{{9 * time.Minute, 1}, {2 * time.Minute, 0}, {58 * time.Minute, 1}, {2 * time.Minute, 0}} {
			time.Sleep(tc.after)
			synctest.Wait()
			if entries, err := s.View(t.Context()).Audit("", "", "", 0, 10); err != nil || len(entries) != tc.want {
				t.Errorf("after %s more, %d entries, %v, want %d", tc.after, len(entries), err, tc.want)
			} else if tc.want == 0 {
				add()
			}
		}
	})
}
