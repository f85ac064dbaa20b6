package submit_test

import (
	"slices"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/functions"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
)

const resubmit = "resubmitChangeStartNotifyAction"

// wakeAt sends a wake-up at each of these seconds.
func wakeAt(t *testing.T, server *ft.ServerDouble, function functions.Function, e event.Event, seconds ...int) {
	t.Helper()
	for _, at := range seconds {
		server.Clock.SetTime(ft.Now().Add(time.Duration(at) * time.Second))
		if err := function(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		if err := server.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// secondsOf returns the seconds at which an action was called.
func secondsOf(server *ft.ServerDouble, action string) []int {
	var out []int
	for _, c := range server.Log().Calls {
		if c.Action == action {
			out = append(out, int(c.Time.Sub(ft.Now())/time.Second))
		}
	}
	return out
}

// nodesOf returns the nodes of the double, the newest first.
func nodesOf(server *ft.ServerDouble) []string {
	var out []string
	for _, n := range server.Nodes() {
		out = append(out, n.ID)
	}
	slices.Reverse(out)
	return out
}

func TestAStartThatTheServerForgotIsRepeatedThreeTimesAtGrowingDistance(t *testing.T) {
	forgotten := double.Script{Default: double.Behaviour{Forgotten: true}}
	seconds := []int{0, 1, 4, 5, 6, 14, 15, 16, 34, 35, 36, 60, 130}
	check := func(t *testing.T, server *ft.ServerDouble, s *v1alpha1.Submission, nodes []string, action string) {
		t.Helper()
		if diff := cmp.Diff([]int{0, 5, 15, 35}, secondsOf(server, action)); diff != "" {
			t.Errorf("seconds of the starts: %s", diff)
		}
		if diff := cmp.Diff([]int{5, 15, 35}, secondsOf(server, resubmit)); diff != "" {
			t.Errorf("seconds of the resubmits: %s", diff)
		}
		if !s.FirstIntent().Equal(ft.Now()) || s.Resumptions != 3 || s.Attempts != 4 {
			t.Errorf("the timeout begins again: %+v", s)
		}
		want := nodesOf(server)
		slices.Sort(want)
		slices.Sort(nodes)
		if diff := cmp.Diff(want, nodes); diff != "" {
			t.Errorf("not all nodes are known: %s", diff)
		}
	}
	t.Run("of a batch", func(t *testing.T) {
		c, server, function := newFunction(t, ft.NewRelease(unopened), ft.NewBatch(1, []string{"a"}))
		server.Script(t, forgotten)
		wakeAt(t, server, function, ready(t, pre), seconds...)
		status := c.ChangePod(ft.BatchName(1)).Status
		if status.ChangePodID != nodesOf(server)[0] {
			t.Errorf("the current node is %s, of %v", status.ChangePodID, nodesOf(server))
		}
		check(t, server, status.SubmissionOf(pre), status.Nodes(), start)
	})
	t.Run("of the order", func(t *testing.T) {
		c, server, function := newFunction(t, ft.NewRelease(unopened))
		server.Script(t, forgotten)
		wakeAt(t, server, function, orderStartReady(t), seconds...)
		o := c.ChangeWorkload(ft.Release).Status.Order
		check(t, server, o.SubmissionOf(pre), o.Nodes(), startOrder)
	})
}

func TestACheckWhoseCallbackIsLostCostsSeconds(t *testing.T) {
	for name, tc := range map[string]struct {
		behaviour double.Behaviour
		calls     []string
		want      v1alpha1.Outcome
	}{
		"it passed":  {double.Behaviour{Lost: true}, []string{open, start, retrieve}, v1alpha1.OutcomePass},
		"it failed":  {double.Behaviour{Lost: true, Verdict: "fail"}, []string{open, start, retrieve, retrieve, retrieve, retrieve, retrieve, resubmit, retrieve}, v1alpha1.OutcomePending},
		"it runs on": {double.Behaviour{Never: true}, []string{open, start, retrieve, retrieve, retrieve, retrieve, retrieve, resubmit, retrieve, resubmit}, v1alpha1.OutcomePending},
	} {
		t.Run(name, func(t *testing.T) {
			c, server, function := newFunction(t, ft.NewRelease(unopened), ft.NewBatch(1, []string{"a"}))
			server.Script(t, double.Script{Default: tc.behaviour})
			wakeAt(t, server, function, ready(t, pre), 0, 1, 2, 3, 4, 5, 6)
			calls(t, server, tc.calls...)
			status := c.ChangePod(ft.BatchName(1)).Status
			if got := status.VerdictOf(pre).Outcome(); got != tc.want || len(server.Nodes()) != 1 {
				t.Errorf("the outcome is %s, nodes are %v", got, nodesOf(server))
			}
			if s := status.SubmissionOf(pre); name == "it failed" && s.Resumptions != 1 {
				t.Errorf("the check was not begun again: %+v", s)
			}
		})
	}
}

func TestAPassOfAnEarlierNodeIsRetrievedAndTheFinishNamesThatNode(t *testing.T) {
	c, server, function := newFunction(t, ft.NewRelease(unopened), ft.NewBatch(1, []string{"a"}))
	// A slow server: the check of the first start begins after the second start.
	server.Script(t, double.Script{Checks: []double.CheckRule{{Nth: 1, Then: double.Behaviour{Forgotten: true}}}, Default: double.Behaviour{Never: true}})
	wakeAt(t, server, function, ready(t, pre), 0, 5)
	nodes := nodesOf(server)
	if len(nodes) != 2 {
		t.Fatalf("nodes are %v", nodes)
	}
	first := nodes[1]
	server.Script(t, double.Script{})
	server.TakeUp(first)
	if err := server.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	wakeAt(t, server, function, ready(t, pre), 6)
	status := c.ChangePod(ft.BatchName(1)).Status
	if v := status.VerdictOf(pre); v.Outcome() != v1alpha1.OutcomePass || v.NodeID != first {
		t.Fatalf("verdict is %+v", v)
	}
	if err := function(t.Context(), ready(t, post)); err != nil {
		t.Fatal(err)
	}
	status = c.ChangePod(ft.BatchName(1)).Status
	if status.ChangePodID != first || !status.HasNode(nodes[0]) || status.SubmissionOf(post).Error != nil {
		t.Errorf("status is %+v", status)
	}
}

func TestAServerWithoutResubmitOnlyWaits(t *testing.T) {
	c, server, function := newFunction(t, ft.NewRelease(unopened), ft.NewBatch(1, []string{"a"}))
	server.Script(t, double.Script{Default: double.Behaviour{Never: true}, Faults: []double.FaultRule{{Action: resubmit, Fault: double.Fault404}}})
	wakeAt(t, server, function, ready(t, pre), 0, 5)
	calls(t, server, open, start, retrieve, resubmit)
	if s := c.ChangePod(ft.BatchName(1)).Status.SubmissionOf(pre); s.Resumptions != 0 || s.Attempts != 1 || s.Error != nil {
		t.Errorf("submission is %+v", s)
	}
}
