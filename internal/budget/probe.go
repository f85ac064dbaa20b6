package budget

import (
	"fmt"
	"strings"
)

// Heard is what a replica answers that knows the budget.
type ProbeAnswer struct {
	// Probe is the value of the annotation.
	Probe string
	// Replica is the name of the pod.
	Replica string
}

const probeAnswerPrefix = "breakwater: probe "

func (h ProbeAnswer) String() string {
	return fmt.Sprintf("%s%s seen by %s", probeAnswerPrefix, h.Probe, h.Replica)
}

// ParseHeard reads a warning; false if it is another.
func ParseProbeAnswer(warning string) (ProbeAnswer, bool) {
	rest, ok := strings.CutPrefix(warning, probeAnswerPrefix)
	if !ok {
		return ProbeAnswer{}, false
	}
	probe, replica, ok := strings.Cut(rest, " seen by ")
	return ProbeAnswer{probe, replica}, ok
}
