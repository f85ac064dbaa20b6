// Package provider is a test double of a provider: an HTTP service that records
// grants, with a rate limit and faults. The permission centre is tested against
// it. A response may be lost after the grant was recorded.
//
//	POST   /grants          {"ip", "permission", "pod"}: 200, or 202 and a ticket if DecideAfter is set
//	GET    /tickets/{id}    200 {"state": "pending"|"granted"|"denied"}
//	DELETE /grants          ?ip=&permission=&pod=: 200, or 404 if the grant does not exist
//	PUT    /v1/records/{ip} and DELETE: the same as a CMDB; DELETE is always 200
//	GET    /stats           Stats
//	PUT    /faults          Faults
package provider

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Faults are the faults of the double; the zero value has none.
type Faults struct {
	// Status, if not 0, is the status of every response; nothing is recorded.
	Status int `json:"status,omitempty"`
	// RetryAfter is the Retry-After header of error responses, in seconds.
	RetryAfter int `json:"retryAfter,omitempty"`
	// Lose is the share of calls that are recorded but whose response is lost.
	Lose float64 `json:"lose,omitempty"`
	// Delay is the delay of each response in milliseconds.
	Delay int `json:"delayMillis,omitempty"`
	// DecideAfter, in milliseconds: grants are answered 202 with a ticket, which is granted after
	// this time, or at the first poll after DecideAfter is 0 again.
	DecideAfter int `json:"decideAfterMillis,omitempty"`
	// Limit is the number of calls per second; more are answered 429.
	Limit int `json:"limit,omitempty"`
}

// Entry is a recorded grant.
type Entry struct {
	IP         string `json:"ip"`
	Permission string `json:"permission"`
	Pod        string `json:"pod"`
}

// Stats are the recorded grants and the counters.
type Stats struct {
	// Current are the grants that exist.
	Current []Entry `json:"held"`
	// Granted and Revoked count changes. Duplicates counts grants of an
	// entry that exists under another key, Repeats those under the same key.
	Granted    int `json:"granted"`
	Revoked    int `json:"revoked"`
	Duplicates int `json:"duplicates"`
	Repeats    int `json:"repeats"`
	// Calls counts all calls, Rejected those above the limit.
	Calls    int `json:"calls"`
	Rejected int `json:"rejected"`
}

// OfPod returns the grants of a pod.
func (b Stats) OfPod(pod string) []Entry {
	var all []Entry
	for _, e := range b.Current {
		if e.Pod == pod {
			all = append(all, e)
		}
	}
	return all
}

// Double is the http.Handler of the double.
type Double struct {
	mux *http.ServeMux
	now func() time.Time

	mu      sync.Mutex
	faults  Faults
	granted map[Entry]string // idempotency key by entry
	tickets map[string]ticket
	stats   Stats
	recent  []time.Time
	perKey  map[string]int
	held    chan struct{} // closed when Hold ends
}

type ticket struct {
	entry   Entry
	key     string
	decided time.Time
}

// New creates a double.
func New(now func() time.Time) *Double {
	d := &Double{mux: http.NewServeMux(), now: now, granted: map[Entry]string{}, tickets: map[string]ticket{}, perKey: map[string]int{}}
	d.mux.HandleFunc("POST /grants", d.handle(d.grant))
	d.mux.HandleFunc("GET /tickets/{id}", d.handle(d.poll))
	d.mux.HandleFunc("DELETE /grants", d.handle(d.revoke))
	d.mux.HandleFunc("PUT /v1/records/{ip}", d.handle(d.grant))
	d.mux.HandleFunc("DELETE /v1/records/{ip}", d.handle(d.revoke))
	d.mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, d.Stats()) })
	d.mux.HandleFunc("PUT /faults", func(w http.ResponseWriter, r *http.Request) {
		var f Faults
		if err := json.NewDecoder(r.Body).Decode(&f); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		d.SetFaults(f)
	})
	return d
}

// ServeHTTP implements http.Handler.
func (d *Double) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.mux.ServeHTTP(w, r) }

// SetFaults replaces the faults.
func (d *Double) SetFaults(f Faults) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = f
}

// Hold records calls but delays their responses until release is called.
func (d *Double) Hold() (release func()) {
	held := make(chan struct{})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held = held
	return sync.OnceFunc(func() { close(held) })
}

// Stats returns a copy of the grants and counters.
func (d *Double) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := d.stats
	b.Current = make([]Entry, 0, len(d.granted))
	for e := range d.granted {
		b.Current = append(b.Current, e)
	}
	slices.SortFunc(b.Current, func(a, b Entry) int {
		return slices.Compare([]string{a.IP, a.Permission, a.Pod}, []string{b.IP, b.Permission, b.Pod})
	})
	return b
}

// CallsOf counts the calls with an idempotency key.
func (d *Double) CallsOf(key string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.perKey[key]
}

// handle counts the call and applies the faults.
func (d *Double) handle(do func(r *http.Request) (int, any)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		f, held := d.faults, d.held
		over := d.count(r.Header.Get("Idempotency-Key"))
		status, body := 0, any(nil)
		switch {
		case f.Limit > 0 && over:
			d.stats.Rejected++
			status = http.StatusTooManyRequests
		case f.Status != 0:
			status = f.Status
		default:
			status, body = do(r)
		}
		lost := f.Lose > 0 && rand.Float64() < f.Lose
		d.mu.Unlock()
		if held != nil {
			select {
			case <-held:
			case <-r.Context().Done():
			}
		}
		if f.Delay > 0 {
			select {
			case <-time.After(time.Duration(f.Delay) * time.Millisecond):
			case <-r.Context().Done():
			}
		}
		if lost {
			panic(http.ErrAbortHandler)
		}
		if f.RetryAfter > 0 && status >= 400 {
			w.Header().Set("Retry-After", fmt.Sprint(f.RetryAfter))
		}
		answer(w, status, body)
	}
}

// count counts the call and reports whether it is above the limit.
func (d *Double) count(key string) bool {
	now := d.now()
	d.stats.Calls++
	d.perKey[key]++
	d.recent = append(d.recent, now)
	for now.Sub(d.recent[0]) >= time.Second {
		d.recent = d.recent[1:]
	}
	return len(d.recent) > d.faults.Limit
}

// grant records a grant; parameter wrong denies it.
func (d *Double) grant(r *http.Request) (int, any) {
	var body struct {
		Entry
		PodUID string `json:"podUID"`
		Wrong  bool   `json:"wrong"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return http.StatusBadRequest, map[string]any{"error": "the body is not JSON"}
	}
	if ip := r.PathValue("ip"); ip != "" {
		body.Entry = Entry{IP: ip, Permission: "cmdb", Pod: body.PodUID}
	}
	if body.Wrong {
		return http.StatusUnprocessableEntity, map[string]any{"error": "there is no such module"}
	}
	key := r.Header.Get("Idempotency-Key")
	if d.faults.DecideAfter > 0 {
		t := ticket{body.Entry, key, d.now().Add(time.Duration(d.faults.DecideAfter) * time.Millisecond)}
		if known, ok := d.tickets[key]; ok {
			t = known
		}
		d.tickets[key] = t
		return http.StatusAccepted, map[string]any{"ticket": key, "state": "pending"}
	}
	d.record(body.Entry, key)
	return http.StatusOK, map[string]any{"state": "granted"}
}

func (d *Double) record(e Entry, key string) {
	switch under, ok := d.granted[e]; {
	case ok && under == key:
		d.stats.Repeats++
	case ok:
		d.stats.Duplicates++
	default:
		d.stats.Granted++
		d.granted[e] = key
	}
}

func (d *Double) poll(r *http.Request) (int, any) {
	t, ok := d.tickets[r.PathValue("id")]
	switch {
	case !ok:
		return http.StatusNotFound, map[string]any{"state": "unknown"}
	case d.faults.DecideAfter > 0 && d.now().Before(t.decided):
		return http.StatusOK, map[string]any{"state": "pending"}
	default:
		d.record(t.entry, t.key)
		return http.StatusOK, map[string]any{"state": "granted"}
	}
}

// noGrant is the error in the response to a revocation of a missing grant.
const noGrant = "there is no such grant"

func (d *Double) revoke(r *http.Request) (int, any) {
	e := Entry{IP: r.URL.Query().Get("ip"), Permission: r.URL.Query().Get("permission"), Pod: r.URL.Query().Get("pod")}
	if ip := r.PathValue("ip"); ip != "" {
		e = Entry{IP: ip, Permission: "cmdb", Pod: r.URL.Query().Get("podUID")}
	}
	for key, t := range d.tickets {
		if t.entry == e {
			delete(d.tickets, key)
		}
	}
	if _, ok := d.granted[e]; !ok {
		if r.PathValue("ip") != "" {
			return http.StatusOK, map[string]any{} // as a CMDB must
		}
		return http.StatusNotFound, map[string]any{"error": noGrant}
	}
	delete(d.granted, e)
	d.stats.Revoked++
	return http.StatusOK, map[string]any{}
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
