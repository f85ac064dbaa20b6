// Package provider is a double of those who grant: an HTTP service with books
// of its own, a rate limit and faults, against which the permission centre is
// tested. What it is asked and what it did are two things: an answer may be
// lost after it was booked.
//
//	POST   /grants          {"ip", "permission", "pod"}: 200; 202 and a ticket when it decides later
//	GET    /tickets/{id}    200 {"state": "pending"|"granted"|"denied"}
//	DELETE /grants          ?ip=&permission=&pod=: 200, 404 when there is none
//	PUT    /v1/records/{ip} and DELETE: the same as a CMDB
//	GET    /books           what it has, and what it counted
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

// Faults of the double; the zero value has none.
type Faults struct {
	// Status, when it is not 0, answers every call, and nothing is booked.
	Status int `json:"status,omitempty"`
	// RetryAfter is that header of an answer of 429 or Status, in seconds.
	RetryAfter int `json:"retryAfter,omitempty"`
	// Lose is the share of calls that are booked and whose connection is then cut.
	Lose float64 `json:"lose,omitempty"`
	// Delay before an answer, in milliseconds.
	Delay int `json:"delayMillis,omitempty"`
	// DecideAfter, in milliseconds: grants are answered 202 with a ticket.
	DecideAfter int `json:"decideAfterMillis,omitempty"`
	// Limit is how many calls a second it takes; more are answered 429.
	Limit int `json:"limit,omitempty"`
}

// Entry is a grant in the books.
type Entry struct {
	IP         string `json:"ip"`
	Permission string `json:"permission"`
	Pod        string `json:"pod"`
}

// Books are what the double has and counted.
type Books struct {
	// Held are the grants that are there now.
	Held []Entry `json:"held"`
	// Granted and Revoked count bookings, Doubles grants of what was held
	// under another key, Repeats grants of what was held under the same.
	Granted int `json:"granted"`
	Revoked int `json:"revoked"`
	Doubles int `json:"doubles"`
	Repeats int `json:"repeats"`
	// Calls counts all, Refused those above the limit, and Busiest how many
	// came within the busiest second.
	Calls   int `json:"calls"`
	Refused int `json:"refused"`
	Busiest int `json:"busiest"`
}

// Of are the grants of a pod.
func (b Books) Of(pod string) []Entry {
	var all []Entry
	for _, e := range b.Held {
		if e.Pod == pod {
			all = append(all, e)
		}
	}
	return all
}

// Double is an http.Handler.
type Double struct {
	mux *http.ServeMux
	now func() time.Time

	mu      sync.Mutex
	faults  Faults
	held    map[Entry]string // to the key it was granted under
	tickets map[string]ticket
	books   Books
	recent  []time.Time
	perKey  map[string]int
}

type ticket struct {
	entry   Entry
	key     string
	decided time.Time
}

// New makes a double that goes by a clock.
func New(now func() time.Time) *Double {
	d := &Double{mux: http.NewServeMux(), now: now, held: map[Entry]string{}, tickets: map[string]ticket{}, perKey: map[string]int{}}
	d.mux.HandleFunc("POST /grants", d.call(d.grant))
	d.mux.HandleFunc("GET /tickets/{id}", d.call(d.poll))
	d.mux.HandleFunc("DELETE /grants", d.call(d.revoke))
	d.mux.HandleFunc("PUT /v1/records/{ip}", d.call(d.grant))
	d.mux.HandleFunc("DELETE /v1/records/{ip}", d.call(d.revoke))
	d.mux.HandleFunc("GET /books", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, d.Books()) })
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

// ServeHTTP answers.
func (d *Double) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.mux.ServeHTTP(w, r) }

// SetFaults replaces the faults.
func (d *Double) SetFaults(f Faults) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = f
}

// Books are a copy.
func (d *Double) Books() Books {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := d.books
	b.Held = make([]Entry, 0, len(d.held))
	for e := range d.held {
		b.Held = append(b.Held, e)
	}
	slices.SortFunc(b.Held, func(a, b Entry) int {
		return slices.Compare([]string{a.IP, a.Permission, a.Pod}, []string{b.IP, b.Permission, b.Pod})
	})
	return b
}

// CallsOf counts the calls under one key.
func (d *Double) CallsOf(key string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.perKey[key]
}

// call counts, and plays the faults.
func (d *Double) call(do func(r *http.Request) (int, any)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		f := d.faults
		over := d.count(r.Header.Get("Idempotency-Key"))
		status, body := 0, any(nil)
		switch {
		case f.Limit > 0 && over:
			d.books.Refused++
			status = http.StatusTooManyRequests
		case f.Status != 0:
			status = f.Status
		default:
			status, body = do(r)
		}
		lost := f.Lose > 0 && rand.Float64() < f.Lose
		d.mu.Unlock()
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

// count keeps the calls of the last second, and says whether they are above the limit.
func (d *Double) count(key string) bool {
	now := d.now()
	d.books.Calls++
	d.perKey[key]++
	d.recent = append(d.recent, now)
	for now.Sub(d.recent[0]) >= time.Second {
		d.recent = d.recent[1:]
	}
	d.books.Busiest = max(d.books.Busiest, len(d.recent))
	return len(d.recent) > d.faults.Limit
}

// grant books; what the parameters say is wrong is refused.
func (d *Double) grant(r *http.Request) (int, any) {
	var body struct {
		Entry
		PodUID string `json:"podUID"`
		Wrong  bool   `json:"wrong"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return http.StatusBadRequest, map[string]any{"error": "no JSON"}
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
	d.book(body.Entry, key)
	return http.StatusOK, map[string]any{"state": "granted"}
}

func (d *Double) book(e Entry, key string) {
	switch under, ok := d.held[e]; {
	case ok && under == key:
		d.books.Repeats++
	case ok:
		d.books.Doubles++
	default:
		d.books.Granted++
		d.held[e] = key
	}
}

func (d *Double) poll(r *http.Request) (int, any) {
	t, ok := d.tickets[r.PathValue("id")]
	switch {
	case !ok:
		return http.StatusNotFound, map[string]any{"state": "unknown"}
	case d.now().Before(t.decided):
		return http.StatusOK, map[string]any{"state": "pending"}
	default:
		d.book(t.entry, t.key)
		return http.StatusOK, map[string]any{"state": "granted"}
	}
}

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
	if _, ok := d.held[e]; !ok {
		return http.StatusNotFound, map[string]any{"error": "there is no such grant"}
	}
	delete(d.held, e)
	d.books.Revoked++
	return http.StatusOK, map[string]any{}
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
