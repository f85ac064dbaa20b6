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

// maxKey is how long a key of a ConfigMap may be.
const maxKey = 253

// Key is the key of a pod's entry: `<namespace>.<pod>`. What is longer than a
// key may be ends in a hash instead.
func Key(namespace, pod string) string {
	key := namespace + "." + pod
	if len(key) <= maxKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	hash := hex.EncodeToString(sum[:])
	return key[:maxKey-len(hash)-1] + "-" + hash
}

// Entry is what is known of a pod's failures.
type Entry struct {
	// UID tells the pod from its predecessors of the same name: theirs count for
	// nothing.
	UID types.UID `json:"uid"`
	// Denied and Failed count since the last success or reset.
	Denied int `json:"denied,omitempty"`
	Failed int `json:"failed,omitempty"`
	// LastRequestFailTime is when the last of them happened.
	LastRequestFailTime time.Time `json:"lastRequestFailTime,omitzero"`
	// Next is when one try is let through while Failed keeps the breaker open.
	Next time.Time `json:"next,omitzero"`
	// Duration and Steps are where the wait.Backoff stands.
	Duration time.Duration `json:"duration,omitempty"`
	Steps    int           `json:"steps,omitempty"`
	// Settled are the attempts of applications that were counted, by the id of
	// the application; and the last call that failed without an application.
	// Each counts once, whoever reports it.
	Settled map[string]int `json:"settled,omitempty"`
	Call    string         `json:"call,omitempty"`
	// Holder may begin an attempt until Until; nobody else may meanwhile.
	Holder string    `json:"holder,omitempty"`
	Until  time.Time `json:"until,omitzero"`
	// Message is that of the last failure, for people.
	Message string `json:"message,omitempty"`
}

// decode reads an entry; one that cannot be read, or is another pod's, is none.
func decode(raw string, uid types.UID) (Entry, bool) {
	var e Entry
	if raw == "" || json.Unmarshal([]byte(raw), &e) != nil || e.UID != uid {
		return Entry{UID: uid}, false
	}
	return e, true
}

func encode(e Entry) string {
	raw, err := json.Marshal(e)
	if err != nil {
		panic(fmt.Sprintf("encode an entry: %v", err)) // it has nothing that cannot be
	}
	return string(raw)
}

// step moves the backoff by one failure and returns how long to wait; spread is
// the random part, from 0 to 1.
func (e *Entry) nextBackoff(b wait.Backoff, spread float64) time.Duration {
	jitter := b.Jitter
	b.Jitter = 0
	if e.Duration > 0 {
		b.Duration, b.Steps = e.Duration, e.Steps
	}
	d := b.Step()
	e.Duration, e.Steps = b.Duration, b.Steps
	return d + time.Duration(spread*jitter*float64(d))
}
