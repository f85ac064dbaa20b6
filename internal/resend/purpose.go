package resend

import "time"

// Purpose is the purpose of a wake-up for a call to the server. Each purpose has its own
// backoff.
type Purpose string

// The purposes.
const (
	// ForCall: the call is to be made, or its answer stored.
	ForCall Purpose = ""
	// ForVerdict: the server accepted the call, and is asked for the verdict.
	ForVerdict Purpose = "verdict"
	// ForLastVerdict: the same after the timeout of the verdict.
	ForLastVerdict Purpose = "last-verdict"
)

// Purposes returns all purposes.
func Purposes() []Purpose { return []Purpose{ForCall, ForVerdict, ForLastVerdict} }

// ID returns the id of the wake-up for a call.
func (p Purpose) ID(call string) string { return call + "/" + string(p) }

// VerdictDelay is how long the server may take to call back before it is asked. Most
// checks need less, so that most verdicts cost no further call.
const VerdictDelay = time.Second

// CallDelay is how long the writer of an intent has for its call, before function submit is
// woken for it: most calls are answered sooner.
const CallDelay = minInterval
