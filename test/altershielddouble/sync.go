package altershielddouble

import "time"

// syncTimeout is the default timeout of a synchronous check.
const syncTimeout = 3 * time.Second

// timedOutMsg is the message of a synchronous check that timed out.
const timedOutMsg = "the check took longer than its time-out"

// syncStart opens an order, checks it and then answers. A repeated call checks
// the same node of the same order again.
//
// The published server never has a verdict in time. The double has one only if
// the script has a rule for step RELEASE.
func (d *Double) syncStart(key orderKey, in form) result {
	if !d.isGeneration1(in.text("changeSceneKey")) {
		return rejected(codeState, "402:unsupported operation in "+string(PreSubmit))
	}
	o, exists := d.orders[key]
	if !exists {
		var rejection *result
		if o, rejection = d.newOrder(key, in, "RUNNING"); rejection != nil {
			return *rejection
		}
	}
	n := d.latestNode(o)
	if n == nil {
		n = d.newNode(o, stepRelease, in)
	}
	b := d.script.behaviour(d.progress, n.facts(Pre))
	timeout := time.Duration(in.num("checkTimeout")) * time.Millisecond
	switch scripted := d.script.CheckTimeout.Duration; {
	case scripted > 0:
		timeout = scripted
	case timeout <= 0:
		timeout = syncTimeout
	}
	how, takes := syncEnding(b, timeout)
	n.state = endOf(Pre, how)
	out := syncVerdict{verdict: verdict{AllFinish: true, CheckPass: true, Emergency: n.emergency, Rules: []Rule{}, Verdict: "pass"}}
	if how == Judged {
		// From now on retrieve returns pass, whatever the verdict is.
		n.passed[Pre] = true
		out.Verdict, out.CheckPass, out.Rules, out.Msg = b.Verdict, passes(b.Verdict), rulesOf(b, Pre), b.Message
	} else {
		out.Msg = timedOutMsg
	}
	d.keepNode(n)
	answer := done("success", syncDomain{OrderID: o.id, NodeID: n.id, URL: urlOf("node", n.id), Verdict: out})
	answer.after = takes
	return answer
}

// syncEnding returns the ending and duration of a synchronous check. Without a
// matching rule it times out.
func syncEnding(b Behaviour, timeout time.Duration) (Ending, time.Duration) {
	switch {
	case b.Ending == Threw:
		return Threw, b.Delay.Duration
	case b.Verdict == "", b.Ending == TimedOut, b.Never, b.Delay.Duration >= timeout:
		return TimedOut, timeout
	default:
		return Judged, b.Delay.Duration
	}
}

// latestNode returns the last order node of the order itself, or nil.
func (d *Double) latestNode(o *order) *node {
	for i := len(d.nodeList) - 1; i >= 0; i-- {
		if n := d.nodeList[i]; n.order == o && n.step != stepBatch {
			return d.nodeList[i]
		}
	}
	return nil
}
