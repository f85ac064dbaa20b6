package lifecycle_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
)

func TestAStepThatCannotBeReadDoesNotDelayOthers(t *testing.T) {
	address := "sqlite:" + filepath.Join(t.TempDir(), "centre.db")
	synctest.Test(t, func(t *testing.T) {
		w := &backlog{t: t, address: address, provider: loggedProvider{"double": {byKey: map[string]int{}}}}
		w.start()
		defer func() { w.stop() }()
		registerBacklog(t, w.engine.Store, 10, 10)
		w.setRate("double", 0.01) // the next slot is after 100 s
		w.request(0, "web")
		w.wait(time.Minute, map[api.State]int{api.Granted: 1})
		w.request(1, "web")
		w.request(2, "web")
		if _, err := w.engine.Store.Writer().Exec("UPDATE grants SET parameters = '{' WHERE application = (SELECT id FROM applications WHERE pod = 'web-1')"); err != nil {
			t.Fatal(err)
		}
		w.wait(3*time.Minute, map[api.State]int{api.Granted: 2, api.Requested: 1})
		if _, err := w.engine.Store.Writer().Exec("UPDATE grants SET parameters = '{}'"); err != nil {
			t.Fatal(err)
		}
		w.wait(6*time.Minute, map[api.State]int{api.Granted: 3})
	})
}

// A process waits for a slot that is far away, and stops at once.
func TestAProcessThatWaitsForTheRateLimitStopsAtOnce(t *testing.T) {
	address := "sqlite:" + filepath.Join(t.TempDir(), "centre.db")
	synctest.Test(t, func(t *testing.T) {
		w := &backlog{t: t, address: address, provider: loggedProvider{"double": {byKey: map[string]int{}}}}
		w.start()
		registerBacklog(t, w.engine.Store, 10, 10)
		w.setRate("double", 0.01)
		w.request(0, "web")
		w.wait(time.Minute, map[api.State]int{api.Granted: 1})
		w.request(1, "web")
		time.Sleep(time.Second)
		began := time.Now()
		w.stop()
		if took := time.Since(began); took > time.Second {
			t.Errorf("the process stopped after %s", took)
		}
		w.start()
		w.wait(3*time.Minute, map[api.State]int{api.Granted: 2})
		w.stop()
	})
}

// SQLite has one writer, for which requests of pods wait.
func TestAnIdleCentreDoesNotUseTheWriter(t *testing.T) {
	address := "sqlite:" + filepath.Join(t.TempDir(), "centre.db")
	synctest.Test(t, func(t *testing.T) {
		w := &backlog{t: t, address: address, provider: loggedProvider{"double": {byKey: map[string]int{}}}}
		w.start()
		defer func() { w.stop() }()
		registerBacklog(t, w.engine.Store, 10, 10)
		w.request(0, "web")
		w.wait(time.Minute, map[api.State]int{api.Granted: 1})
		synctest.Wait()
		writer, err := w.engine.Store.Writer().Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		before := w.engine.Store.Writer().Stats().WaitCount
		time.Sleep(time.Hour) // of virtual time, in which the centre polls
		synctest.Wait()
		if n := w.engine.Store.Writer().Stats().WaitCount - before; n > 0 {
			t.Errorf("the writer was needed %d times in an hour without requests", n)
		}
		if err := writer.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
