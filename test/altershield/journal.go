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
	d.log.addCall(e)
	d.keep(record{Call: &e})
}

// noteSending writes down that a callback is about to be sent, and returns its
// number: whoever reads the log of a double that died must not take it for one
// that was never sent.
func (d *Double) noteSending(c *check, e CallbackEntry) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sends++
	d.keep(record{Sending: &sending{d.sends, e}})
	c.node.due = ""
	d.keepNode(c.node)
	return d.sends
}

func (d *Double) noteCallback(n int, e CallbackEntry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log.addCallback(e)
	d.keep(record{Sent: &sending{n, e}})
}

func (j *journal) addCall(e CallEntry) {
	j.seq++
	e.Seq = j.seq
	j.Calls = trim(&j.Dropped, append(j.Calls, e))
}

func (j *journal) addCallback(e CallbackEntry) {
	j.seq++
	e.Seq = j.seq
	j.Callbacks = trim(&j.Dropped, append(j.Callbacks, e))
}

func trim[E any](dropped *int, entries []E) []E {
	over := len(entries) - maxEntries
	if over <= 0 {
		return entries
	}
	*dropped += over
	return entries[over:]
}
