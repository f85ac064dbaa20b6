package resend

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/internal/deadline"
)

// DecidingSince is the time of the first decision of a process, not of its start. A process
// that leads no bucket makes no decisions: a deadline before its DecidingSince may have
// expired because no leader sent a wake-up. A process that leads a bucket and takes over
// another one keeps its DecidingSince. After it lost its last bucket, it begins again with the first decision as a leader.
// In a namespace that was opted out it begins again with the first decision after the opt-in.
type DecidingSince struct {
	mu    sync.Mutex
	first time.Time
	// led are the names of the buckets that the process leads. lost: it led one, and leads none any more.
	led  sets.Set[string]
	lost bool
	// resumed has the first decision in each namespace that was opted out; zero until there is one. Namespaces are
	// rarely opted out, so no entry is removed.
	resumed map[string]time.Time
}

// Get returns the time of the first call of Get or In.
func (s *DecidingSince) Get(now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.get(now)
}

func (s *DecidingSince) get(now time.Time) time.Time {
	if s.lost {
		return now // of a reconciliation that had begun before
	}
	if s.first.IsZero() {
		s.first = now
	}
	return s.first
}

// In is Get for a decision in a namespace. After Pause it returns the time of its next call.
func (s *DecidingSince) In(namespace string, now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	resumed, paused := s.resumed[namespace]
	if paused && resumed.IsZero() {
		resumed = now
		s.resumed[namespace] = now
	}
	return deadline.Latest(s.get(now), resumed)
}

// Pause records that an existing namespace is opted out, so that nothing is decided in it.
func (s *DecidingSince) Pause(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resumed == nil {
		s.resumed = map[string]time.Time{}
	}
	s.resumed[namespace] = time.Time{}
}

// Promote records that the process leads a bucket.
func (s *DecidingSince) Promote(b reconciler.Bucket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost {
		s.lost, s.first = false, time.Time{}
	}
	if s.led == nil {
		s.led = sets.New[string]()
	}
	s.led.Insert(b.Name())
}

// Demote records that the process lost a bucket.
func (s *DecidingSince) Demote(b reconciler.Bucket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.led.Delete(b.Name())
	s.lost = len(s.led) == 0
}

// ExtendDeadline extends a deadline to at least the grace period after the
// process began to decide, so that it can send a wake-up first. A clock
// that was set back extends nothing.
func ExtendDeadline(end, decidingSince, now time.Time, grace time.Duration) time.Time {
	if extended := decidingSince.Add(grace); !decidingSince.After(now) && extended.After(end) {
		return extended
	}
	return end
}

// RetrieveGrace is how long a stage waits for a verdict after its timeout: function submit asks the
// server in that time.
const RetrieveGrace = 15 * time.Second

// EndOfStage returns when a stage ends without a verdict. After timeout the server is asked once more if
// it accepted the call, and a new process waits as long before it decides.
func EndOfStage(timeout time.Time, accepted bool, decidingSince, now time.Time) time.Time {
	end := timeout
	if accepted {
		end = end.Add(RetrieveGrace)
	}
	return ExtendDeadline(end, decidingSince, now, RetrieveGrace)
}
