package altershielddouble

import (
	"bytes"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
)

// facts are the properties of a check that a Match compares.
type facts struct {
	Stage               Stage
	Step                string
	BatchNo             int64
	Pods                []string
	Order               string
	Namespace, Workload string
}

func (m Match) matches(f facts) bool {
	podMatches := m.Pod == "" || slices.ContainsFunc(f.Pods, func(pod string) bool {
		ok, _ := path.Match(m.Pod, pod) // the pattern was validated
		return ok
	})
	return podMatches &&
		(m.Stage == "" || m.Stage == f.Stage) &&
		(m.Step == f.Step || m.Step == "" && f.Step != stepRelease) &&
		(m.BatchNo == nil || (f.Step == stepBatch && *m.BatchNo == f.BatchNo)) &&
		strings.Contains(f.Order, m.Order) &&
		(m.Namespace == "" || m.Namespace == f.Namespace) &&
		(m.Workload == "" || m.Workload == f.Workload)
}

// applies reports whether a rule with nth and times applies to the match with
// number seen.
func applies(seen, nth, times int) bool {
	if nth > 0 && times == 0 {
		times = 1
	}
	from := max(nth, 1)
	return seen >= from && (times == 0 || seen < from+times)
}

// progress counts the matches of each rule.
type progress struct {
	checks, faults []int
	random         *rand.Rand
}

func newProgress(s Script) *progress {
	return &progress{
		checks: make([]int, len(s.Checks)), faults: make([]int, len(s.Faults)),
		random: rand.New(rand.NewPCG(s.Seed, 0)), //nolint:gosec // a test that can be repeated
	}
}

// lucky reports whether an event with a rate occurs.
func (p *progress) lucky(rate float64) bool { return p.random.Float64() < rate }

// behaviour returns the behavior of a check by the script. Every matching rule
// counts the check, even if an earlier rule decides.
func (s Script) behaviour(p *progress, f facts) Behaviour {
	chosen, found := s.Default, false
	if f.Step == stepRelease {
		chosen = Behaviour{} // as in the published server
	}
	for i, rule := range s.Checks {
		if !rule.Match.matches(f) {
			continue
		}
		p.checks[i]++
		// Every rule draws a number, so that one rule does not change the draws of others.
		selected := p.lucky(rule.Rate) || rule.Rate == 0
		if !found && selected && applies(p.checks[i], rule.Nth, rule.Times) {
			chosen, found = rule.Then, true
		}
	}
	return chosen
}

// fault returns the fault of a call by the script, or nil.
func (s Script) fault(p *progress, action string, body []byte) *FaultRule {
	var chosen *FaultRule
	for i, rule := range s.Faults {
		if (rule.Action != "" && rule.Action != action) || !bytes.Contains(body, []byte(rule.Order)) {
			continue
		}
		p.faults[i]++
		if chosen == nil && applies(p.faults[i], rule.Nth, rule.Times) {
			chosen = &rule
		}
	}
	return chosen
}
