package submit_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/altershield"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
)

// The published server also calls back a pass without rules while a check runs.
func TestAPassWithoutRulesIsAskedForUntilItIsConfirmed(t *testing.T) {
	c := ft.New(t, ft.NewRelease())
	server := ft.NewServerDouble(t, c, "")
	server.Script(t, double.Script{CheckTimeout: duration(time.Minute), Default: double.Behaviour{Delay: duration(time.Second)}})
	ask := functionOf(t, c, server)
	client, _, err := server.Clients.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.OpenOrder(t.Context(), altershield.OpenOrder{OrderID: ft.OrderID}); err != nil {
		t.Fatal(err)
	}
	answer, err := client.StartBatch(t.Context(), altershield.StartBatch{OrderID: ft.OrderID})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Change.Tracker().Add(ft.NewBatch(1, []string{"a"}, ft.Started(answer.NodeID, 0), ft.Unconfirmed(pre, false))); err != nil {
		t.Fatal(err)
	}
	server.Script(t, double.Script{Faults: []double.FaultRule{{Action: retrieve, Fault: double.Fault404}}})
	for _, step := range []struct {
		name                       string
		before                     func()
		withoutRules, contradicted bool
	}{
		{"no answer", func() {}, true, false},
		{"the check runs", func() { server.Script(t, double.Script{}) }, true, true},
		{"the check runs still", func() {}, true, true},
		{"the check passed", func() {
			server.Clock.Step(time.Second)
			if err := server.Idle(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, false, false},
	} {
		step.before()
		if err := ask(t.Context(), ready(t, pre)); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		v := c.ChangePod(ft.BatchName(1)).Status.VerdictOf(pre)
		if v.UnconfirmedPass != step.withoutRules || v.Contradicted != step.contradicted {
			t.Errorf("%s: verdict is %+v", step.name, v)
		}
	}
	if n := c.Patches(); n != 2 {
		t.Errorf("%d writes, want one for the contradiction and one for the pass", n)
	}
}

func duration(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }
