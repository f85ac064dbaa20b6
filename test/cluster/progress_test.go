// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestBuildsShowTheirExpectedTimeAndShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		sleep := func(d time.Duration) func(context.Context) error {
			return func(context.Context) error { time.Sleep(d); return nil }
		}
		err := runGraph(t.Context(), newProgress(&out, time.Now), []task{
			{name: "build a", takes: 3 * time.Minute, run: sleep(150 * time.Second)},
			{name: "cached", needs: []string{"build a"}, run: sleep(time.Millisecond)},
			{name: "build b", takes: time.Minute, needs: []string{"cached"}, run: func(context.Context) error { return errors.New("no space") }},
		})
		if err == nil {
			t.Error("no error")
		}
		want := `[   0.0s]    builds what is not cached, about 4 min on two idle cores: a, b
[   0.0s] …  build a: about 3 min, 75 % of all builds
[  60.0s] …  build a: 1 of about 3 min
[ 120.0s] …  build a: 2 of about 3 min
[ 150.0s] ✓  build a (150.0s)
[ 150.0s]    75 % of all builds done
[ 150.0s] ✓  cached (0.0s)
[ 150.0s] …  build b: about 1 min, 25 % of all builds
[ 150.0s] ✗  build b (0.0s): no space
`
		if got := out.String(); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}

func TestBuildsAreExpectedUntilTheyAreCached(t *testing.T) {
	c := testCluster(t)
	c.source = "."
	if got := c.buildTime(etcd); got != etcd.takes || got == 0 {
		t.Errorf("%v, want %v", got, etcd.takes)
	}
	put(t, c.binary(etcd, "etcd"), "")
	if got := c.buildTime(etcd); got != 0 {
		t.Errorf("%v of a cached build", got)
	}
}
