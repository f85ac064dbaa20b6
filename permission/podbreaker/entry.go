package podbreaker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

// maxKey is the maximum length of a key of a ConfigMap.
const maxKey = 253

// Key returns the key of a pod's entry: `<namespace>.<pod>`. A key that would be
// too long is cut and ends in a hash.
func Key(namespace, pod string) string {
	key := namespace + "." + pod
	if len(key) <= maxKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	hash := hex.EncodeToString(sum[:])
	return key[:maxKey-len(hash)-1] + "-" + hash
}

// Entry is the record of a pod's unsuccessful attempts.
type Entry struct {
	// UID is the pod's UID. An entry of an earlier pod with the same name is ignored.
	UID types.UID `json:"uid"`
	// Denied and Failed count the denied and the failed attempts since the last success or reset.
	Denied int `json:"denied,omitempty"`
	Failed int `json:"failed,omitempty"`
	// LastRequestFailTime is the time of the last unsuccessful attempt.
	LastRequestFailTime time.Time `json:"lastRequestFailTime,omitzero"`
	// Next is when one attempt may begin while failed attempts keep the breaker open.
	Next time.Time `json:"next,omitzero"`
	// Duration and Steps are the state of the wait.Backoff.
	Duration time.Duration `json:"duration,omitempty"`
	Steps    int           `json:"steps,omitempty"`
	// Counted maps the ID of an application to its last attempt that was counted, so
	// that each attempt counts once, even if several replicas record it.
	Counted map[string]int `json:"settled,omitempty"`
	// Call is the last counted call that failed without an application.
	Call string `json:"call,omitempty"`
	// Holder is the caller that may begin an attempt until Until.
	Holder string    `json:"holder,omitempty"`
	Until  time.Time `json:"until,omitzero"`
	// Message says why the last unsuccessful attempt was unsuccessful, for people.
	Message string `json:"message,omitempty"`
}

// decode parses an entry. It returns false if the entry is invalid or belongs to a
// pod with another UID.
func decode(raw string, uid types.UID) (Entry, bool) {
	var e Entry
	if raw == "" || json.Unmarshal([]byte(raw), &e) != nil || e.UID != uid || !e.inRange() {
		return Entry{UID: uid}, false
	}
	return e, true
}

// Limits of the numbers that this package writes. Larger counts would overflow, and a
// negative or very long interval would not keep a breaker open.
const (
	maxCount    = 1 << 30
	maxInterval = 366 * 24 * time.Hour
)

// inRange reports whether the numbers are possible. A user may have edited them.
func (e Entry) inRange() bool {
	for _, n := range e.Counted {
		if n < 0 || n > maxCount {
			return false
		}
	}
	return e.Denied >= 0 && e.Denied <= maxCount && e.Failed >= 0 && e.Failed <= maxCount &&
		e.Duration >= 0 && e.Duration <= maxInterval && e.Steps >= 0
}

func encode(e Entry) string {
	raw, err := json.Marshal(e)
	if err != nil {
		panic(fmt.Sprintf("encode an entry: %v", err)) // all its fields can be encoded
	}
	return string(raw)
}

// nextBackoff advances the backoff by one step and returns the delay; random is
// the random part, from 0 to 1.
func (e *Entry) nextBackoff(b wait.Backoff, random float64) time.Duration {
	jitter := b.Jitter
	b.Jitter = 0
	if e.Duration > 0 {
		b.Duration, b.Steps = e.Duration, e.Steps
	}
	d := b.Step()
	e.Duration, e.Steps = b.Duration, b.Steps
	return d + time.Duration(random*jitter*float64(d))
}
