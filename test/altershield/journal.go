package altershield

import (
	"encoding/json"
	"time"
)

// maxEntries bounds each list of the log; the oldest go first.
const maxEntries = 20000

// Log is what happened, for tests to look at.
type Log struct {
	Calls     []CallEntry     `json:"calls"`
	Callbacks []CallbackEntry `json:"callbacks"`
	// Dropped is how many old entries the lists have lost.
	Dropped int `json:"dropped"`
}

// CallEntry is one call that came.
type CallEntry struct {
	// Seq orders calls and callbacks by the time of their writing down, which
	// is when they were answered.
	Seq    int       `json:"seq"`
	Time   time.Time `json:"time"`
	Done   time.Time `json:"done"`
	Action string    `json:"action"`
	Order  string    `json:"order,omitempty"`
	// Node is the one that the call named or made.
	Node string          `json:"node,omitempty"`
	Body json.RawMessage `json:"body,omitempty"`
	// Status is what was answered, 0 when the connection was closed instead.
	Status int    `json:"status"`
	Code   string `json:"code,omitempty"`
	Msg    string `json:"msg,omitempty"`
	Fault  Fault  `json:"fault,omitempty"`
}

// CallbackEntry is one callback that was sent.
type CallbackEntry struct {
	Seq     int       `json:"seq"`
	Sent    time.Time `json:"sent"`
	Done    time.Time `json:"done"`
	Order   string    `json:"order"`
	Node    string    `json:"node"`
	Stage   Stage     `json:"stage"`
	Verdict string    `json:"verdict"`
	As      string    `json:"as"`
	URL     string    `json:"url"`
	Body    string    `json:"body"`
	// Status is what was answered, 0 for none; Error says why.
	Status int    `json:"status"`
	Error  string `json:"error,omitempty"`
}

type journal struct {
	Log
	seq int
}

func (d *Double) noteCall(e CallEntry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log.seq++
	e.Seq = d.log.seq
	d.log.Calls = trim(&d.log.Dropped, append(d.log.Calls, e))
}

func (d *Double) noteCallback(e CallbackEntry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log.seq++
	e.Seq = d.log.seq
	d.log.Callbacks = trim(&d.log.Dropped, append(d.log.Callbacks, e))
}

func trim[E any](dropped *int, entries []E) []E {
	over := len(entries) - maxEntries
	if over <= 0 {
		return entries
	}
	*dropped += over
	return entries[over:]
}
