package lifecycle

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

const (
	// pollInterval is how often the store is polled for steps and changes of other
	// replicas. localPollInterval is used if there is only one: its own transactions
	// start the dispatch.
	pollInterval      = 250 * time.Millisecond
	localPollInterval = 5 * time.Second
	// lockedInterval is the delay if other replicas have locked all steps that are due,
	// errorInterval the delay after an error.
	lockedInterval = 20 * time.Millisecond
	errorInterval  = time.Second
	// usualStartAhead is the usual time from the start of a step to its slot, slotDuration the time
	// in which the slot may be used (package ratelimit). startedPerCall is how many steps of a
	// fast provider may be in progress for each call that may be in progress.
	usualStartAhead = 30 * time.Millisecond
	slotDuration    = 20 * time.Millisecond
	startedPerCall  = 4
)

// dispatcher makes the calls that are due.
type dispatcher struct {
	*Engine
	// startCtx ends when no new call may begin, and callCtx when running calls are
	// interrupted.
	startCtx, callCtx context.Context
	all               sync.WaitGroup
	// ended receives a value when the queue of a provider became empty.
	ended chan struct{}

	mu        sync.Mutex
	stopped   bool
	providers map[string]*providerDispatch
}

// providerDispatch is the dispatch of the steps of one provider.
type providerDispatch struct {
	// calls has an element for each call in progress, started one for each step that is in
	// progress or is being started. freed receives a value when one of them is removed.
	calls, started chan struct{}
	freed          chan struct{}
	// latency is the moving average of the duration of calls, in nanoseconds.
	latency atomic.Int64
	// running: a goroutine starts steps. again: steps became due meanwhile.
	running, again bool
	// broken is the step that could not be started.
	broken brokenStep
}

// Run makes the calls that are due until ctx ends, and then waits up to drain for calls
// in progress before it interrupts them.
func (e *Engine) Run(ctx context.Context, drain time.Duration) {
	callCtx, interrupt := context.WithCancel(context.WithoutCancel(ctx))
	defer interrupt()
	d := &dispatcher{Engine: e, startCtx: ctx, callCtx: callCtx, ended: make(chan struct{}, 1), providers: map[string]*providerDispatch{}}
	e.dispatcher.Store(d)
	d.dispatchLoop()
	e.dispatcher.Store(nil)
	d.stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.all.Wait()
	}()
	timer := e.Clock.NewTimer(drain)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C():
		interrupt()
		<-ended
	}
}

// dispatchLoop starts the dispatch of each provider when a step of it is due, until startCtx ends. It also makes leaks, and steps
// that wait because the clock was ahead, due every leakInterval.
func (d *dispatcher) dispatchLoop() {
	interval := pollInterval
	if !d.Store.Shared() {
		interval = localPollInterval
	}
	var leaks, latest time.Time // when leaks are made due again, and the latest time of the clock
	for d.startCtx.Err() == nil {
		if now := d.Clock.Now(); !now.Before(leaks) {
			leaks = now.Add(leakInterval)
			if err := d.ScheduleLeaks(d.startCtx); err != nil && d.startCtx.Err() == nil {
				d.Log.Error("could not schedule the revocation of leaked grants", "error", err)
			}
			var err error
			if latest, err = d.ResumeAfterClockSetBack(d.startCtx, latest); err != nil && d.startCtx.Err() == nil {
				d.Log.Error("could not make steps due that wait because the clock was ahead", "error", err)
			}
		}
		wait := interval
		next, err := d.Store.View(d.startCtx).NextDue()
		if err != nil && d.startCtx.Err() == nil {
			d.Log.Error("could not read when steps are due", "error", err)
		}
		now := d.Clock.Now()
		for provider, due := range next {
			if until := due.Sub(now); until > 0 {
				wait = min(wait, until)
				continue
			}
			d.start(provider)
		}
		timer := d.Clock.NewTimer(wait)
		select {
		case <-timer.C():
		case <-d.ended:
		case <-d.startCtx.Done():
		}
		timer.Stop()
	}
}

// start starts the dispatch of a provider's steps if it does not run.
func (d *dispatcher) start(provider string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return
	}
	pd := d.providers[provider]
	if pd == nil {
		pd = newProviderDispatch(max(1, d.ConcurrentCallsPerProvider))
		d.providers[provider] = pd
	}
	if pd.running {
		pd.again = true
		return
	}
	pd.running = true
	d.all.Go(func() { d.dispatch(provider, pd) })
}

// stop makes start do nothing.
func (d *dispatcher) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
}

// end ends the dispatch of a provider, unless steps became due meanwhile.
func (d *dispatcher) end(pd *providerDispatch) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if pd.again && d.startCtx.Err() == nil {
		pd.again = false
		return false
	}
	pd.running = false
	select {
	case d.ended <- struct{}{}:
	default:
	}
	return true
}

// dispatch starts steps of a provider and runs them, until none is due.
func (d *dispatcher) dispatch(provider string, pd *providerDispatch) {
	for {
		n, err := d.dispatchDue(provider, pd)
		switch {
		case err != nil && d.startCtx.Err() == nil:
			d.Log.Error("could not start steps", "provider", provider, "error", err)
			_ = d.sleep(d.startCtx, d.Clock.Now().Add(errorInterval))
		case (n == 0 || d.startCtx.Err() != nil) && d.end(pd):
			return
		}
	}
}

// dispatchDue starts due steps and runs them in other goroutines, or waits until some
// can be started. It returns how many are due, at most the number that may be started.
func (d *dispatcher) dispatchDue(provider string, pd *providerDispatch) (due int, err error) {
	free := pd.acquire(d.startCtx)
	defer func() { pd.release(pd.started, free) }()
	if free == 0 {
		return 0, nil // the process stops
	}
	r, err := d.startSteps(d.startCtx, provider, free)
	if err != nil {
		return r.dueCount, d.postponeBroken(pd, provider, err)
	}
	pd.broken = brokenStep{}
	for _, s := range r.steps {
		free--
		d.all.Go(func() {
			defer pd.release(pd.started, 1)
			if err := d.run(d.startCtx, d.callCtx, r.provider, s, pd); err != nil && !errors.Is(err, errStaleStep) {
				d.Log.Error("could not store the result of a step; it is repeated when its run expires", "application", s.application, "provider", provider, "error", err)
			}
		})
	}
	if r.dueCount > 0 && (r.wait > 0 || len(r.steps) == 0) {
		// The rate limit may be raised meanwhile.
		_ = d.sleep(d.startCtx, d.Clock.Now().Add(min(max(r.wait, lockedInterval), localPollInterval)))
	}
	return r.dueCount, nil
}

// postponeBroken postpones a step whose start failed twice in a row, so that it does not delay the
// others. It returns any other error.
func (d *dispatcher) postponeBroken(pd *providerDispatch, provider string, err error) error {
	broken, ok := errors.AsType[brokenStep](err)
	if !ok {
		return err
	}
	again := pd.broken.application == broken.application && pd.broken.ordinal == broken.ordinal
	if pd.broken = broken; !again {
		return err
	}
	d.Log.Error("a step cannot be started; it is postponed", "application", broken.application, "provider", provider, "error", broken.err)
	return d.Store.Write(d.startCtx, func(tx store.Tx) error {
		now := d.Clock.Now()
		return tx.PostponeStep(broken.application, broken.ordinal, now, now.Add(brokenStepDelay))
	})
}

func newProviderDispatch(concurrentCalls int) *providerDispatch {
	return &providerDispatch{calls: make(chan struct{}, concurrentCalls), started: make(chan struct{}, startedPerCall*concurrentCalls), freed: make(chan struct{}, 1)}
}

// Startable returns how many steps may be started. concurrentCalls is the limit of calls in progress. latency is
// that of recent calls, zero if there were none. calls is the number of calls in progress, started that of all
// steps in progress.
//
// A step that waits for its slot, or for the transaction of its result, is not in a call. So steps are started
// in advance: as many as can be called within usualStartAhead. More would wait for the end of a call and miss
// their slots. None is started in advance while more than three quarters of concurrentCalls are in progress. The
// slots of one transaction are close together, so it starts at most as many steps as can be called within
// slotDuration.
func Startable(concurrentCalls int, latency time.Duration, calls, started int) int {
	limit, atOnce := concurrentCalls, concurrentCalls
	if latency > 0 && 4*calls <= 3*concurrentCalls {
		limit = min(startedPerCall*concurrentCalls, concurrentCalls+int(time.Duration(concurrentCalls)*usualStartAhead/latency))
		atOnce = max(concurrentCalls, int(time.Duration(concurrentCalls)*slotDuration/latency))
	}
	n := min(atOnce, max(0, limit-started))
	if started >= 2*concurrentCalls && n < concurrentCalls/2 {
		return 0 // a larger transaction follows soon, and until then there are enough steps to call
	}
	return n
}

// observe averages the latency of calls. A concurrent observation may be lost.
func (pd *providerDispatch) observe(latency time.Duration) {
	pd.latency.Store(max(1, (7*pd.latency.Load()+int64(latency))/8))
}

// acquire waits until steps may be started, and returns how many; 0 when ctx ends.
func (pd *providerDispatch) acquire(ctx context.Context) int {
	for ctx.Err() == nil {
		n := Startable(cap(pd.calls), time.Duration(pd.latency.Load()), len(pd.calls), len(pd.started))
		for range n {
			pd.started <- struct{}{} // does not block: nobody else adds
		}
		if n > 0 {
			return n
		}
		select {
		case <-pd.freed:
		case <-ctx.Done():
		}
	}
	return 0
}

// release removes elements of calls or started.
func (pd *providerDispatch) release(of chan struct{}, n int) {
	for range n {
		<-of
	}
	select {
	case pd.freed <- struct{}{}:
	default:
	}
}
