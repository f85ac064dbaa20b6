package altershielddouble

import (
	"context"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// callbackTimeout is the server's timeout for the answer to a callback.
const callbackTimeout = 6 * time.Second

// Options configure a double.
type Options struct {
	// CallbackURL is the URL for callbacks. Empty: no callbacks.
	CallbackURL string
	// Tokens are the tokens by platform. Default {"breakwater": "secret"}.
	Tokens map[string]string
	// HeaderPrefix is the prefix of the signature headers. Default
	// X-AlterShield-.
	HeaderPrefix string
	// Signature is Enforce or Skip. Default Enforce.
	Signature Signature
	// Scene is the only change scene that exists. Empty: all exist.
	Scene string
	// Generation1Scene is an additional scene of generation 1. Only its orders
	// can be checked synchronously. Empty: none.
	Generation1Scene string
	// CheckTimeout is the check timeout of both stages. 0: checks never time
	// out.
	CheckTimeout time.Duration
	// Empty: no platform and no scene exists until the admin API creates it.
	// A scene of the admin API has its own callback URL and check timeouts.
	Empty bool
	// SceneCache is how long calls do not know a new scene of the admin API. It
	// is up to 10s in the published server.
	SceneCache time.Duration
	// Rules judge a check if the script sets no verdict. They have the same
	// input as the server's rules.
	Rules func(RuleInput) []Rule
	// Clock is the clock for everything except the network. Default the system
	// clock.
	Clock clock.Clock
	// HTTP sends the callbacks. Default a new client.
	HTTP *http.Client
}

// RuleInput is the input of the server's rules. It does not include the
// locations.
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

// Double is the server double. Create it with NewDouble and stop it with Close.
type Double struct {
	options Options
	mux     *http.ServeMux
	// ids is part of every id, so that a restarted double does not reuse ids.
	ids string

	// ctx is canceled by Close and Reset to stop checks and callbacks.
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
	admin    admin
	// file is the state file of Persist, or nil; sends counts callbacks.
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
	if options.Empty {
		options.Tokens = map[string]string{}
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

// Handler returns the HTTP interface of the server, and the control interface
// under /double/.
func (d *Double) Handler() http.Handler { return d.mux }

// SetScript replaces the script and resets the counts of nth and times.
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

// Reset deletes orders, nodes, log, script and metadata, and stops running checks and
// callbacks.
func (d *Double) Reset() {
	d.Close()
	d.clear()
}

// Close stops running checks and callbacks and waits for their end. It also
// ends slow calls, so close the double before its HTTP server.
func (d *Double) Close() {
	d.mu.Lock()
	d.cancel()
	d.mu.Unlock()
	_ = d.Idle(context.Background()) // a background context does not end
}

// Idle waits until no check or callback is running.
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
	d.admin = newAdmin()
	d.forget()
}

// background runs f in a goroutine that Idle waits for. d.mu is held.
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

// wait waits for the duration. It returns false if the double was closed
// meanwhile.
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

// waitUntil waits until a time. It returns false if the double was closed meanwhile.
func (d *Double) waitUntil(ctx context.Context, at time.Time) bool {
	for {
		rest := at.Sub(d.options.Clock.Now())
		if rest <= 0 {
			return ctx.Err() == nil
		}
		timer := d.options.Clock.NewTimer(rest)
		if !d.options.Clock.Now().Before(at) { // a test moved the clock before the timer was made
			timer.Stop()
			continue
		}
		select {
		case <-timer.C():
			return true
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
}

// newID returns an unused id. d.mu is held.
func (d *Double) newID(of string) string {
	d.lastID++
	return of + "-" + d.ids + "-" + strconv.FormatInt(d.lastID, 10)
}
