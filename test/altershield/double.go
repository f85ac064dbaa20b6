package altershield

import (
	"context"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// callbackTimeout is the server's: it does not wait longer for an answer, and
// does not care for it.
const callbackTimeout = 6 * time.Second

// Options are what a double is told at its making.
type Options struct {
	// CallbackURL is where verdicts go. Empty: nothing is called back.
	CallbackURL string
	// Tokens are the tokens by platform. Default {"breakwater": "secret"}.
	Tokens map[string]string
	// HeaderPrefix begins the signature headers. Default X-AlterShield-.
	HeaderPrefix string
	// Signature is Enforce, unless it is Skip.
	Signature Signature
	// Scene is the one change scene that exists; empty: all do.
	Scene string
	// Generation1Scene is the scene of generation 1, which exists beside Scene:
	// only orders of that one can be checked synchronously. Empty: none.
	Generation1Scene string
	// CheckTimeout is the scene's, for both stages. 0: checks never time out.
	CheckTimeout time.Duration
	// Rules judge a check whose script leaves the verdict open. They see what
	// the server's rules see, and no more.
	Rules func(RuleInput) []Rule
	// Clock is the time of everything but the network. Default the machine's.
	Clock clock.Clock
	// HTTP sends the callbacks. Default a client of its own.
	HTTP *http.Client
}

// RuleInput is what the server's rules see of a check. The locations are not
// among it.
type RuleInput struct {
	Stage                      Stage
	Apps                       []string
	StartTime                  time.Time
	FinishTime                 time.Time
	BatchNo                    int64
	TotalBatchNum              int64
	TotalBatchNumInChangePhase int64
	ExtInfo                    map[string]any
}

// Double is the server. NewDouble makes it; Close ends it.
type Double struct {
	options Options
	mux     *http.ServeMux
	// ids begins every id, so that a restarted double does not give one out again.
	ids string

	// ctx ends what is under way at Close and Reset.
	ctx    context.Context
	cancel context.CancelFunc

	mu       sync.Mutex
	script   Script
	progress *progress
	orders   map[orderKey]*order
	nodes    map[string]*node
	nodeList []*node
	log      journal
	lastID   int64
	// file is where Persist keeps the state, or nil; sends counts callbacks.
	file    *os.File
	sends   int
	pending int
	idle    chan struct{} // closed while nothing is pending
}

type orderKey struct{ platform, bizExecOrderID string }

// NewDouble returns a double that passes every check at once.
func NewDouble(options Options) *Double {
	if options.HeaderPrefix == "" {
		options.HeaderPrefix = "X-AlterShield-"
	}
	if options.Tokens == nil {
		options.Tokens = map[string]string{"breakwater": "secret"}
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.HTTP == nil {
		options.HTTP = &http.Client{Timeout: callbackTimeout}
	}
	d := &Double{
		options: options,
		ids:     strconv.FormatInt(options.Clock.Now().UnixMilli(), 36),
	}
	d.clear()
	d.routes()
	return d
}

// Handler is the server's HTTP interface and, under /double/, the double's own.
func (d *Double) Handler() http.Handler { return d.mux }

// SetScript replaces the script; the counts of nth and times begin again.
func (d *Double) SetScript(s Script) error {
	if err := s.validate(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.script, d.progress = s, newProgress(s)
	d.keep(record{Script: &s})
	return nil
}

// Reset forgets orders, nodes, log and script, and stops what is under way.
func (d *Double) Reset() {
	d.Close()
	d.clear()
}

// Close stops checks and callbacks that are under way and waits for their end.
// Slow calls end, too: close the double before a server that waits for them.
func (d *Double) Close() {
	d.mu.Lock()
	d.cancel()
	d.mu.Unlock()
	_ = d.Idle(context.Background()) // a background context does not end
}

// Idle returns when no check or callback is under way any more.
func (d *Double) Idle(ctx context.Context) error {
	for {
		d.mu.Lock()
		idle, pending := d.idle, d.pending
		d.mu.Unlock()
		if pending == 0 {
			return nil
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (d *Double) clear() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.script = Script{}
	d.progress = newProgress(d.script)
	d.orders, d.nodes, d.nodeList = map[orderKey]*order{}, map[string]*node{}, nil
	d.log = journal{}
	d.forget()
}

// background runs f and counts it as under way until it returns. d.mu is held.
func (d *Double) background(f func(ctx context.Context)) {
	if d.pending == 0 {
		d.idle = make(chan struct{})
	}
	d.pending++
	ctx := d.ctx
	go func() {
		f(ctx)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.pending--
		if d.pending == 0 {
			close(d.idle)
		}
	}()
}

// wait returns false when the double was closed meanwhile.
func (d *Double) wait(ctx context.Context, duration time.Duration) bool {
	if duration <= 0 {
		return ctx.Err() == nil
	}
	timer := d.options.Clock.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}

// newID returns an id that this server has not given out. d.mu is held.
func (d *Double) newID(of string) string {
	d.lastID++
	return of + "-" + d.ids + "-" + strconv.FormatInt(d.lastID, 10)
}
