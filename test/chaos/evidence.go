package chaos

import (
	"encoding/json"
	"net/http"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	double "github.com/breakwater-dev/breakwater/test/altershield"
)

// Evidence is the double's record of one order.
type Evidence struct {
	Log   double.Log
	Nodes []double.Node
}

// Stage returns the server's actions for a stage of a node.
func (e Evidence) Stage(node string, stage double.Stage) Stage {
	var out Stage
	for _, n := range e.Nodes {
		if n.ID == node {
			out.Passed = n.Passed[stage]
		}
	}
	for _, c := range e.Log.Callbacks {
		if c.Node != node || c.Stage != stage || refused(c.Status) {
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

// refused reports whether an answer proves that the callback was not stored,
// because its signature or body was invalid. No answer, or the answer of a
// proxy, proves nothing.
func refused(status int) bool {
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
