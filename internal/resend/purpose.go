package resend

import "time"

// Purpose is the purpose of a wake-up for a call to the server. Each purpose has its own
// backoff.
type Purpose string

// The purposes.
const (
	// ForCall: the call has to be made, or its answer to be stored.
	ForCall Purpose = ""
	// ForVerdict: the server has accepted the call, and has to be asked for the
	// verdict.
	ForVerdict Purpose = "verdict"
	// ForLastVerdict is ForVerdict after the timeout of the verdict.
	ForLastVerdict Purpose = "last-verdict"
)

// Purposes returns all purposes.
func Purposes() []Purpose { return []Purpose{ForCall, ForVerdict, ForLastVerdict} }

// ID returns the id of the wake-up for a call.
func (p Purpose) ID(call string) string { return call + "/" + string(p) }

// VerdictDelay is the time after a call before the server is asked for the verdict.
// Most checks end sooner, so most verdicts cost no further call.
const VerdictDelay = time.Second

// CallDelay is the time that the writer of an intent has for its call before function
// submit is woken for it. Most calls are answered sooner.
const CallDelay = minInterval
