package budget

import (
	"fmt"
	"strings"
)

// ProbeAnswer is the answer of a replica that knows the budget.
type ProbeAnswer struct {
	// Probe is the value of ProbeAnnotation.
	Probe string
	// Replica is the name of the replica's pod.
	Replica string
}

const probeAnswerPrefix = "breakwater: probe "

func (a ProbeAnswer) String() string {
	return fmt.Sprintf("%s%s seen by %s", probeAnswerPrefix, a.Probe, a.Replica)
}

// ParseProbeAnswer parses a warning; false if it is another warning.
func ParseProbeAnswer(warning string) (ProbeAnswer, bool) {
	rest, ok := strings.CutPrefix(warning, probeAnswerPrefix)
	if !ok {
		return ProbeAnswer{}, false
	}
	probe, replica, ok := strings.Cut(rest, " seen by ")
	return ProbeAnswer{probe, replica}, ok
}
