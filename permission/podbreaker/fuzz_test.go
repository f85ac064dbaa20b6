package podbreaker

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// FuzzDecodeEntry decodes entries and applies a request to them, as if somebody had
// edited the ConfigMap. What is decoded is encoded and decoded to the same entry, and
// the entry that follows can be stored and has a bounded delay.
func FuzzDecodeEntry(f *testing.F) {
	e := Entry{UID: "uid", Denied: 2, Failed: 3, LastRequestFailTime: zero, Next: zero.Add(time.Minute), Duration: time.Minute, Steps: 4,
		Counted: map[string]int{"app": 3}, Call: "call", Holder: "holder", Until: zero, Message: "the provider answered HTTP 500"}
	f.Add(encode(e), uint8(RecordFailure), 4, false, 0.5)
	f.Add(`{"uid":"uid","duration":9223372036854775807,"steps":9223372036854775807,"failed":3}`, uint8(RecordFailure), 1, false, 1.0)
	f.Add(`{"uid":"uid","duration":-1,"steps":-1,"failed":-9223372036854775808}`, uint8(RecordFailure), 1, false, 0.0)
	f.Add(`{"uid":"uid","failed":9223372036854775807,"settled":{"app":-9223372036854775808}}`, uint8(RecordFailure), 9223372036854775807, true, 0.0)
	f.Add(`{"uid":"uid","next":"9999-12-31T23:59:59.999999999-23:59","until":"0000-01-01T00:00:00+23:59"}`, uint8(Acquire), 0, false, 0.0)
	f.Add(`{"uid":"another"}`, uint8(Reset), 0, false, 0.0)
	f.Add(`null`, uint8(RecordSuccess), 0, false, 0.0)
	f.Fuzz(func(t *testing.T, raw string, op uint8, attempt int, denied bool, jitter float64) {
		if !(jitter >= 0 && jitter <= 1) || attempt < 0 || attempt > maxCount {
			return
		}
		entry, exists := decode(raw, "uid")
		if entry.UID != "uid" {
			t.Fatalf("an entry of pod %q", entry.UID)
		}
		if exists {
			checkEntry(t, entry)
		}
		policy := DefaultPolicy()
		r := Request{Operation: Operation(op % 4), Key: "ns.pod", UID: "uid", Now: zero, Jitter: jitter, Holder: "me", Application: "app", Attempt: attempt, Denied: denied, Message: strings.Repeat(raw, 100)}
		d, next, remove := policy.Decide(entry, exists, r)
		if next == nil {
			return
		}
		checkEntry(t, *next)
		if d.Counted && len(next.Message) > maxMessage {
			t.Errorf("a message of %d bytes", len(next.Message))
		}
		if remove || next.UID != "uid" || len(next.Counted) > max(maxCounted, len(entry.Counted)) {
			t.Errorf("%+v, removed %t", next, remove)
		}
		// An entry keeps the interval of the policy that wrote it.
		longest := 2 * max(policy.Backoff.Cap, entry.Duration)
		if delay := next.Next.Sub(zero); d.Counted && !denied && next.Failed >= policy.Threshold && (delay <= 0 || delay > longest) {
			t.Errorf("the next attempt is in %s, not within %s", delay, longest)
		}
		if d.Counted && denied && next.Denied <= entry.Denied || d.Counted && !denied && next.Failed <= entry.Failed {
			t.Errorf("an unsuccessful attempt reduces the count: %+v to %+v", entry, next)
		}
	})
}

func checkEntry(t *testing.T, e Entry) {
	t.Helper()
	again, ok := decode(encode(e), "uid")
	if diff := cmp.Diff(e, again, cmpopts.EquateEmpty()); diff != "" || !ok {
		t.Errorf("(-encoded +decoded) %t:\n%s", ok, diff)
	}
}

// FuzzKey derives keys of entries: each is a valid key of a ConfigMap, and pods with
// different names have different keys.
func FuzzKey(f *testing.F) {
	f.Add("ns", "pod", "ns", "pod-1")
	f.Add("a", strings.Repeat("b", 253), "a", strings.Repeat("b", 252)+"c")
	f.Fuzz(func(t *testing.T, namespace, pod, namespace2, pod2 string) {
		// The name of a namespace has no dot.
		if strings.Contains(namespace+namespace2, ".") {
			return
		}
		a, b := Key(namespace, pod), Key(namespace2, pod2)
		if len(a) > maxKey || (a == b) != (namespace == namespace2 && pod == pod2) {
			t.Errorf("%q/%q has key %q, %q/%q has %q", namespace, pod, a, namespace2, pod2, b)
		}
	})
}
