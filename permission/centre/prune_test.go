package centre

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A process may restart more often than once an hour.
func TestAProcessPrunesWhenItStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		began, runs := time.Now(), []time.Duration(nil)
		err := (&Centre{}).runEvery(ctx, time.Hour, func(context.Context) error {
			if runs = append(runs, time.Since(began)); len(runs) == 2 {
				cancel()
			}
			return nil
		})
		if err != nil || len(runs) != 2 || runs[0] != 0 || runs[1] != time.Hour {
			t.Errorf("it ran after %v: %v", runs, err)
		}
	})
}
