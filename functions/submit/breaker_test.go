package submit_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/breakwater-dev/breakwater/altershield"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
)

// waitFor waits in real time, as the circuit breaker does, and reports whether the condition became true.
func waitFor(t *testing.T, timeout time.Duration, condition func() bool) bool {
	t.Helper()
	return wait.PollUntilContextTimeout(t.Context(), time.Millisecond, timeout, true, func(context.Context) (bool, error) {
		return condition(), nil
	}) == nil
}

// After the pause of the circuit breaker one call is made, and all others are refused until it has ended.
func TestACallThatTheCircuitBreakerRefusesLeavesNoIntent(t *testing.T) {
	c, server, function := newFunction(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}), ft.NewBatch(2, []string{"b"}))
	c.ConfigureServer(t, map[string]string{"breaker-failures": "1", "breaker-pause": "100ms"})
	client, _, err := server.Clients.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server.Script(t, double.Script{Faults: []double.FaultRule{{Fault: double.FaultReset}}})
	if _, err := client.Retrieve(t.Context(), altershield.Retrieve{NodeID: "n"}); err == nil {
		t.Fatal("the server is reachable")
	}
	server.Script(t, double.Script{Faults: []double.FaultRule{{Fault: double.FaultSlow, Delay: metav1.Duration{Duration: time.Hour}}}})
	if !waitFor(t, 10*time.Second, func() bool { return !client.BreakerOpen() }) {
		t.Fatal("the pause does not end")
	}
	var ended atomic.Bool
	go func() {
		_ = function(t.Context(), ready(t, pre)) // has no answer in time
		ended.Store(true)
	}()
	if !waitFor(t, 10*time.Second, func() bool { return len(c.ChangePod(ft.BatchName(1)).Status.Submissions) > 0 }) {
		t.Fatal("no call is made after the pause")
	}
	if !waitFor(t, time.Second, client.BreakerOpen) { // less than the timeout of the call
		t.Error("the circuit breaker counts as closed during the call")
	}
	before := c.Patches()
	if err := function(t.Context(), readyOf(t, 2, pre)); err != nil {
		t.Errorf("got %v, want no error: the Broker need not retry", err)
	}
	if s := c.ChangePod(ft.BatchName(2)).Status.Submissions; c.Patches() != before || len(s) != 0 {
		t.Errorf("%d writes, submissions %+v, want none", c.Patches()-before, s)
	}
	answered := func() bool {
		server.Clock.Step(time.Hour) // the server may not have begun to wait before
		return ended.Load()
	}
	if !waitFor(t, 10*time.Second, answered) {
		t.Error("the call does not end")
	}
}
