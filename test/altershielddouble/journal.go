package altershielddouble

import (
	"encoding/json"
	"time"
)

// maxEntries is the maximum length of each list of the log; the oldest entries
// are dropped.
const maxEntries = 20000

// Log has the calls and callbacks, for tests.
type Log struct {
	Calls     []CallEntry     `json:"calls"`
	Callbacks []CallbackEntry `json:"callbacks"`
	// Dropped is the number of dropped entries.
	Dropped int `json:"dropped"`
}

// CallEntry is one received call.
type CallEntry struct {
	// Seq orders calls and callbacks by the time of their answers.
	Seq    int       `json:"seq"`
	Time   time.Time `json:"time"`
	Done   time.Time `json:"done"`
	Action string    `json:"action"`
	Order  string    `json:"order,omitempty"`
	// Node is the node id of the request or the answer.
	Node string          `json:"node,omitempty"`
	Body json.RawMessage `json:"body,omitempty"`
	// Status is the HTTP status of the answer, 0 if the connection was closed.
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
	// Status is the HTTP status of the answer, 0 for none; Error is the reason.
	Status int    `json:"status"`
	Error  string `json:"error,omitempty"`
}

type journal struct {
	Log
	seq int
}

func (d *Double) recordCall(e CallEntry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log.addCall(e)
	d.keep(record{Call: &e})
}

// recordSending records the intent to send a callback and returns its number, so
// that the log of a killed double includes the callback.
func (d *Double) recordSending(c *check, e CallbackEntry) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sends++
	d.keep(record{Sending: &sending{d.sends, e}})
	c.node.due = ""
	d.keepNode(c.node)
	return d.sends
}

func (d *Double) recordCallback(n int, e CallbackEntry) {
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
