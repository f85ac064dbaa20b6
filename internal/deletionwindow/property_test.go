package deletionwindow

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"github.com/breakwater-dev/breakwater/internal/checkedclock"
)

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("rapid.nofailfile", "true") // the seed repeats the run
	os.Exit(m.Run())
}

// passed is an admitted pod with its true times. A repeated admission admits it
// again.
type passed struct {
	uid   types.UID
	n     int64
	times []time.Time
	// forgiven: a person closed the breaker after the admission.
	forgiven bool
}

// replica is a webhook with its own clock. It decides from its cache until the
// API server reports a conflict.
type replica struct {
	skew   time.Duration
	cached int
}

// model is an API server with one flow control, its webhooks, and the true
// times of all admissions.
type model struct {
	t        *rapid.T
	rand     *rand.Rand
	now      time.Time
	terms    Policy
	h        State
	versions []struct {
		terms Policy
		h     State
	}
	replicas []*replica
	all      []*passed
	last     int
}

func (m *model) store(terms Policy, h State) {
	m.terms, m.h = terms, h
	m.versions = append(m.versions, struct {
		terms Policy
		h     State
	}{terms, h})
}

func newModel(t *rapid.T) *model {
	m := &model{t: t, now: zero.Add(time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "begin")))}
	terms := Policy{Skew: DefaultSkew}
	interval := 10 * time.Second
	for i := range rapid.IntRange(1, 3).Draw(t, "rules") {
		interval = interval * time.Duration(rapid.IntRange(1+min(i, 1), 40).Draw(t, "times")) // each interval is longer than the previous one
		terms.Rules = append(terms.Rules, rule(interval, rapid.Int64Range(0, 6).Draw(t, "limit")))
	}
	m.store(terms, State{})
	m.rand = rand.New(rand.NewPCG(1, 0))
	for range rapid.IntRange(1, 3).Draw(t, "replicas") {
		r := &replica{}
		m.replicas = append(m.replicas, r)
		m.setClock(r)
	}
	return m
}

func (m *model) upTo(n int) int { return m.rand.IntN(n + 1) }

func (m *model) time(limit time.Duration) time.Duration {
	return time.Duration(m.rand.Int64N(int64(limit) + 1))
}

// skew returns the skew of a clock, often the maximum.
func (m *model) skew() time.Duration {
	return []time.Duration{-DefaultSkew, DefaultSkew, m.time(2*DefaultSkew) - DefaultSkew}[m.upTo(2)]
}

// leaderClock returns the clock of the leader, which may be wrong by hours.
func (m *model) leaderClock() *checkedclock.Clock {
	skew := m.skew() + []time.Duration{0, -m.time(2 * time.Hour), m.time(2 * time.Hour)}[m.upTo(2)]
	return &checkedclock.Clock{
		PassiveClock: testingclock.NewFakePassiveClock(m.now.Add(skew)), Client: &http.Client{Transport: apiServerClock(m.now)}, Skew: DefaultSkew,
	}
}

// apiServerClock answers requests with this time.
type apiServerClock time.Time

func (c apiServerClock) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{Header: http.Header{"Date": {time.Time(c).UTC().Format(http.TimeFormat)}}, Body: http.NoBody}, nil
}

func (m *model) setClock(r *replica) {
	r.skew = m.skew()
}

// decide is a replica's decision of a request: a small group commit.
func (m *model) decide(r *replica, uid types.UID, n int64) (allowed bool) {
	for {
		seen := m.versions[r.cached]
		local := m.now.Add(r.skew)
		now := CountTime(seen.h, local)
		_, _, full := seen.terms.Exceeded(seen.h, local, n)
		d := Deletion{UID: uid, Count: n, IsNamespace: n > 1}
		again := seen.terms.IsCounted(seen.h, now, d)
		fresh := r.cached == len(m.versions)-1
		switch {
		case full && !again:
			if fresh {
				return false // confirmed by a live read
			}
		case fresh:
			m.store(seen.terms, seen.terms.Add(seen.h, now, d))
			r.cached = len(m.versions) - 1
			return true
		}
		r.cached = len(m.versions) - 1 // a conflict, or a live read
	}
}

// request is one admission; its response may be lost after the write.
func (m *model) request(r *replica) {
	p := &passed{n: 1}
	if repeat := m.upTo(9); repeat < 2 && len(m.all) > repeat {
		p = m.all[len(m.all)-1-repeat]
	} else {
		m.last++
		p.uid = types.UID(fmt.Sprint(m.last))
		if m.upTo(9) == 0 {
			p.n = int64(1 + m.upTo(3))
		}
	}
	if !m.decide(r, p.uid, p.n) {
		return
	}
	if m.upTo(9) == 0 {
		return // counted without a deletion, which is safe
	}
	again := len(p.times) > 0
	if !again {
		m.all = append(m.all, p)
	}
	p.times, p.forgiven = append(p.times, m.now), false
	m.check(again)
}

// check checks the windows that end now; earlier windows were checked before. A
// repeated admission was admitted with an earlier limit.
func (m *model) check(again bool) {
	for i, r := range m.terms.Rules {
		for _, v := range m.versions {
			if again {
				r.Limit = max(r.Limit, v.terms.Rules[i].Limit)
			}
		}
		var n int64
		for _, p := range m.all {
			if !p.forgiven && m.now.Sub(p.times[len(p.times)-1]) < r.Interval {
				n += p.n
			}
		}
		if n > r.Limit {
			m.t.Fatalf("%d deletions in a window of %s, limit %d\n%+v", n, r.Text, r.Limit, m.h)
		}
	}
	if len(m.h.Cells) > maxCells {
		m.t.Fatalf("%d cells", len(m.h.Cells))
	}
}

// close closes the breaker as a person does, whose clock also has a skew.
func (m *model) close() {
	terms := m.terms
	terms.ClosedTime = m.now.Add(m.skew()).Truncate(time.Second)
	m.store(terms, m.h)
}

// forgive excludes the admissions before the close, including those that a
// replica with a slow clock makes later.
func (m *model) forgive() {
	for _, p := range m.all {
		if !m.terms.ClosedTime.IsZero() && p.times[len(p.times)-1].Before(m.terms.ClosedTime.Add(time.Second+m.terms.Skew)) {
			p.forgiven = true
		}
	}
}

// edge returns a time near the expiry of an admission.
func (m *model) edge() {
	if len(m.all) == 0 {
		return
	}
	p, r := m.all[len(m.all)-1-m.upTo(min(9, len(m.all)-1))], m.terms.Rules[m.upTo(len(m.terms.Rules)-1)]
	width := time.Duration(r.CellSeconds()) * time.Second
	when := p.times[len(p.times)-1].Add(r.Interval - 2*time.Second + m.time(width+5*m.terms.Skew))
	if when.After(m.now) {
		m.now = when
	}
}

// run executes steps. A step is a seed; 0 does nothing, so that shrinking
// removes one step and keeps the others.
func (m *model) run(steps []uint64) {
	for _, seed := range steps {
		if seed == 0 {
			continue
		}
		m.rand = rand.New(rand.NewPCG(seed, 0))
		m.step(m.replicas[m.upTo(len(m.replicas)-1)])
	}
}

func (m *model) step(r *replica) {
	switch m.upTo(29) {
	case 0:
		m.now = m.now.Add(m.time(m.terms.Rules[len(m.terms.Rules)-1].Interval))
	case 1, 2, 3:
		m.edge()
	case 4, 5, 6:
		m.now = m.now.Add(m.time(10 * time.Second))
	case 7, 8:
		m.now = m.now.Add(m.time(m.terms.Rules[0].Interval / 4))
	case 9: // a clock changes
		m.setClock(r)
	case 10: // a restart: the state of the process is lost
		r.cached += m.upTo(len(m.versions) - 1 - r.cached)
		m.setClock(r)
	case 11: // a limit changes
		terms := m.terms
		terms.Rules = slices.Clone(terms.Rules)
		terms.Rules[m.upTo(len(terms.Rules)-1)].Limit = int64(m.upTo(6))
		m.store(terms, m.h)
	case 12:
		if m.upTo(3) == 0 {
			m.close()
		}
	case 13: // the committed time is far ahead, which no step above causes
		h := m.h
		if wrong := m.now.Add(m.time(2 * m.terms.Rules[0].Interval)); wrong.After(h.CommittedTime) {
			h.CommittedTime = wrong
			m.store(m.terms, h)
		}
	case 14, 15: // the leader, whose clock may be wrong by hours, reconciles
		leader := m.leaderClock()
		if h, changed := m.terms.CorrectCommitted(m.h, leader.Now()); changed && leader.Check(m.t.Context()) == nil {
			m.store(m.terms, h)
		}
	default:
		m.forgive()
		m.request(r)
	}
}

// steps generates enough steps to fill and empty windows many times.
func steps(t *rapid.T) []uint64 {
	return rapid.SliceOfN(rapid.Uint64(), 200, 400).Draw(t, "steps")
}

func TestNoWindowExceedsTheLimitOfARule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		m.run(steps(t))
	})
}

func TestAllDeletionsAreAllowedAgainAfterTheWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		m.run(steps(t))
		if h, changed := m.terms.CorrectCommitted(m.h, m.now.Add(m.replicas[0].skew)); changed {
			m.store(m.terms, h)
		}
		longest := m.terms.Rules[len(m.terms.Rules)-1]
		// The end of a cell, and the change from a slow to a fast clock.
		m.now = m.now.Add(m.terms.effectiveInterval(longest) + time.Duration(longest.CellSeconds()+1)*time.Second + 4*m.terms.Skew)
		for _, r := range m.replicas {
			for _, u := range m.terms.Usages(m.h, m.now.Add(r.skew)) {
				if u.Used != 0 || u.Remaining != u.Rule.Limit {
					t.Fatalf("%+v\n%+v", u, m.h)
				}
			}
		}
	})
}
