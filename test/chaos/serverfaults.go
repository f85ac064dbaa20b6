package chaos

import (
	"fmt"
	"math/rand/v2"
	"time"

	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
)

// ServerFaults are faults of all calls of a release to the server.
type ServerFaults struct {
	Rules []double.FaultRule
	// For is the time from the start of the release until the faults end.
	For time.Duration
}

func (f ServerFaults) String() string {
	if len(f.Rules) == 0 {
		return "the server has no faults"
	}
	when := "before"
	if f.Rules[0].After {
		when = "after"
	}
	return fmt.Sprintf("the server answers %s for %s, %s it executes the call", f.Rules[0].Fault, f.For.Round(100*time.Millisecond), when)
}

// Limits of the time for which the server has faults, and the delay of a slow
// answer.
const (
	minServerFault = 2 * time.Second
	maxServerFault = 8 * time.Second
	slowAnswer     = 2 * time.Second
)

// NewServerFaults draws the faults of a release. About half of the releases have
// one.
func NewServerFaults(r *rand.Rand) ServerFaults {
	kinds := []double.Fault{double.Fault500, double.Fault502, double.FaultGarbage, double.FaultReset, double.FaultSlow}
	rule := double.FaultRule{Fault: kinds[r.IntN(len(kinds))], After: r.IntN(2) == 0}
	if rule.Fault == double.FaultSlow {
		rule.Delay.Duration = slowAnswer
	}
	duration := minServerFault + time.Duration(r.Int64N(int64(maxServerFault-minServerFault)))
	if r.IntN(2) == 0 {
		return ServerFaults{}
	}
	return ServerFaults{Rules: []double.FaultRule{rule}, For: duration}
}
