package callback

import (
	"net/http"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/events"
)

// Received is one verdict as this function reads it from a callback.
type Received struct {
	// Form is json, binary, structured or batch.
	Form string
	// Said is what the verdict says.
	Said events.ExternalVerdict
	// Unjudged says that it is a pass that came with no rule.
	Unjudged bool
	// Check is what was checked. A CloudEvent does not say it.
	Check altershield.CheckType
}

// Read returns the verdicts of a callback, for those who try a judge. The
// caller has authenticated it (altershield.Verify) and bounded its body.
func Read(header http.Header, body []byte) ([]Received, error) {
	f := formOf(header)
	verdicts, err := read(f, header, body)
	if err != nil {
		return nil, err
	}
	out := make([]Received, len(verdicts))
	for i, v := range verdicts {
		out[i] = Received{Form: string(f), Said: v.said, Unjudged: v.unjudged, Check: v.check}
	}
	return out, nil
}
