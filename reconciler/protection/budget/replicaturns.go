package budget

import (
	"context"
	"errors"
	"maps"
	"net"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
)

// silenceTime is how long a replica that did not answer in time is not probed again.
// Until then it counts as not having answered, for every budget.
const silenceTime = 5 * time.Second

var errSilent = errors.New("the replica did not answer the last probe in time")

// replicaTurns sends one direct probe at a time to each replica. A replica that does
// not answer thus delays one probe by probeTimeout every silenceTime, and not the
// probes of all budgets.
type replicaTurns struct {
	clock clock.PassiveClock

	mu       sync.Mutex
	replicas map[string]*replicaTurn
}

// replicaTurn is the state of one replica.
type replicaTurn struct {
	// turn is a lock: a channel with one place, which is taken during a probe.
	turn chan struct{}
	// silentUntil is read and written only during a turn.
	silentUntil time.Time
}

func newReplicaTurns(c clock.PassiveClock) *replicaTurns {
	return &replicaTurns{clock: c, replicas: map[string]*replicaTurn{}}
}

// probe calls send when it is this probe's turn, unless the replica was silent.
func (t *replicaTurns) probe(ctx context.Context, replica string, send func() error) error {
	r := t.of(replica)
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-r.turn }()
	if t.clock.Now().Before(r.silentUntil) {
		return errSilent
	}
	err := send()
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		r.silentUntil = t.clock.Now().Add(silenceTime)
	}
	return err
}

func (t *replicaTurns) of(replica string) *replicaTurn {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, ok := t.replicas[replica]
	if !ok {
		r = &replicaTurn{turn: make(chan struct{}, 1)}
		t.replicas[replica] = r
	}
	return r
}

// keep deletes the state of other replicas.
func (t *replicaTurns) keep(replicas sets.Set[string]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.replicas, func(name string, _ *replicaTurn) bool { return !replicas.Has(name) })
}
