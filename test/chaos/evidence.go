package chaos

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
)

// Evidence is the double's record of one order.
type Evidence struct {
	Log   double.Log
	Nodes []double.Node
}

// Stage returns the server's actions for a stage of a batch with these nodes: a start
// that the server forgot is repeated, with a new node.
func (e Evidence) Stage(nodes []string, stage double.Stage) Stage {
	var out Stage
	for _, n := range e.Nodes {
		if slices.Contains(nodes, n.ID) {
			out.Passed = out.Passed || n.Passed[stage]
		}
	}
	for _, c := range e.Log.Callbacks {
		if !slices.Contains(nodes, c.Node) || c.Stage != stage || notStored(c.Status) {
			continue
		}
		outcome := v1alpha1.ParseVerdict(c.Verdict)
		out.Verdicts = append(out.Verdicts, Verdict{
			Outcome:      outcome,
			WithoutRules: outcome == v1alpha1.OutcomePass && withoutRules(c),
			Accepted:     c.Status == http.StatusOK,
		})
	}
	return out
}

// Starts returns how often the server was called to start a batch of the order.
func (e Evidence) Starts(batchNo int32) (n int) {
	for _, c := range e.Log.Calls {
		var body struct{ BatchNo *int32 }
		if c.Action == "submitChangeExecBatchStartNotify" && json.Unmarshal(c.Body, &body) == nil && body.BatchNo != nil && *body.BatchNo == batchNo {
			n++
		}
	}
	return n
}

// Finishes returns how often the server was called for the finish of a batch with these nodes.
func (e Evidence) Finishes(nodes []string) (n int) {
	for _, c := range e.Log.Calls {
		if c.Action == "submitChangeFinishNotify" && slices.Contains(nodes, c.Node) {
			n++
		}
	}
	return n
}

// unknownNodeTimeout is longer than the time for which Breakwater keeps a
// verdict of an unknown node.
const unknownNodeTimeout = 3 * time.Minute

// Stuck returns the number of verdicts in an inbox that should have been
// delivered. A verdict of an unknown node may stay for unknownNodeTimeout: the
// answer to the start of the node was lost.
func Stuck(inbox []v1alpha1.InboxVerdict, known map[string]bool, now time.Time) (n int) {
	for _, v := range inbox {
		if known[v.NodeID] || now.Sub(v.Time.Time) > unknownNodeTimeout {
			n++
		}
	}
	return n
}

// notStored reports whether an answer proves that the callback was not stored,
// because its signature or body was invalid. No answer, or the answer of a
// proxy, proves nothing.
func notStored(status int) bool {
	return status >= http.StatusBadRequest && status < http.StatusInternalServerError
}

// withoutRules reports whether a callback had no rules. CloudEvents never have rules.
func withoutRules(c double.CallbackEntry) bool {
	if c.As != "" && c.As != "json" {
		return false
	}
	var body struct {
		CallbackRequest struct {
			Verdict struct{ Rules []json.RawMessage }
		}
	}
	return json.Unmarshal([]byte(c.Body), &body) == nil && len(body.CallbackRequest.Verdict.Rules) == 0
}
