package callback

import (
	"net/http"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/events"
)

// Received is one verdict of a callback.
type Received struct {
	// Form is json, binary, structured or batch.
	Form string
	// Data is the verdict.
	Data events.ExternalVerdict
	// WithoutRules marks a pass without rules.
	WithoutRules bool
	// Check is the type of the check; empty for a CloudEvent.
	Check altershield.CheckType
}

// Read returns the verdicts of a callback, for tests of a server. The caller
// authenticates the callback (altershield.Verify) and limits the size of its body.
func Read(header http.Header, body []byte) ([]Received, error) {
	f := formOf(header)
	verdicts, err := read(f, header, body)
	if err != nil {
		return nil, err
	}
	out := make([]Received, len(verdicts))
	for i, v := range verdicts {
		out[i] = Received{Form: string(f), Data: v.data, WithoutRules: v.withoutRules, Check: v.check}
	}
	return out, nil
}
