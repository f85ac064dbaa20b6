package budget

import (
	"fmt"
	"strings"
)

// Heard is what a replica answers that knows the budget.
type Heard struct {
	// Probe is the value of the annotation.
	Probe string
	// Replica is the name of the pod.
	Replica string
}

const seenPrefix = "breakwater: probe "

func (h Heard) String() string { return fmt.Sprintf("%s%s seen by %s", seenPrefix, h.Probe, h.Replica) }

// ParseHeard reads a warning; false if it is another.
func ParseHeard(warning string) (Heard, bool) {
	rest, ok := strings.CutPrefix(warning, seenPrefix)
	if !ok {
		return Heard{}, false
	}
	probe, replica, ok := strings.Cut(rest, " seen by ")
	return Heard{probe, replica}, ok
}
