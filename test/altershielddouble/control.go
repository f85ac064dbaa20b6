package altershielddouble

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
)

// Node is a node as /double/nodes shows it.
type Node struct {
	ID        string         `json:"id"`
	Order     string         `json:"order"`
	Step      string         `json:"step"`
	State     State          `json:"state"`
	BatchNo   int64          `json:"batchNo"`
	Locations []string       `json:"locations,omitempty"`
	ExtInfo   map[string]any `json:"extInfo,omitempty"`
	// Passed maps each judged stage to whether it passed.
	Passed map[Stage]bool `json:"passed"`
}

// Order is an order as /double/orders shows it.
type Order struct {
	ID       string `json:"id"`
	Order    string `json:"order"`
	Platform string `json:"platform"`
	State    string `json:"state"`
}

// Log returns the calls and callbacks since the last Reset.
func (d *Double) Log() Log {
	d.mu.Lock()
	defer d.mu.Unlock()
	return Log{
		Calls:     append([]CallEntry{}, d.log.Calls...),
		Callbacks: append([]CallbackEntry{}, d.log.Callbacks...),
		Dropped:   d.log.Dropped,
	}
}

// Nodes returns all nodes in order of creation.
func (d *Double) Nodes() []Node {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]Node, 0, len(d.nodeList))
	for _, n := range d.nodeList {
		passed := map[Stage]bool{}
		for stage, pass := range n.passed {
			passed[stage] = pass
		}
		out = append(out, Node{
			ID: n.id, Order: n.order.biz, Step: n.step, State: n.state, BatchNo: n.batchNo,
			Locations: slices.Clone(n.locations), ExtInfo: n.extInfo, Passed: passed,
		})
	}
	return out
}

// Orders returns all orders, by bizExecOrderId.
func (d *Double) Orders() []Order {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]Order, 0, len(d.orders))
	for _, o := range d.orders {
		out = append(out, Order{ID: o.id, Order: o.biz, Platform: o.platform, State: o.state})
	}
	slices.SortFunc(out, func(a, b Order) int { return strings.Compare(a.Order+"\x00"+a.Platform, b.Order+"\x00"+b.Platform) })
	return out
}

// control adds the control interface under /double/.
func (d *Double) control() {
	d.mux.HandleFunc("GET /double/health", func(w http.ResponseWriter, _ *http.Request) {
		// Serving sets K_REVISION. So a test sees which Revision of a Knative Service answers.
		writeJSON(w, http.StatusOK, map[string]string{"status": "ok", "revision": os.Getenv("K_REVISION")})
	})
	d.mux.HandleFunc("GET /double/log", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, http.StatusOK, d.Log().filter(r.URL.Query().Get("order")))
	})
	d.mux.HandleFunc("GET /double/nodes", func(w http.ResponseWriter, r *http.Request) {
		part := r.URL.Query().Get("order")
		writeJSON(w, http.StatusOK, slices.DeleteFunc(d.Nodes(), func(n Node) bool { return !strings.Contains(n.Order, part) }))
	})
	d.mux.HandleFunc("GET /double/orders", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, d.Orders())
	})
	d.mux.HandleFunc("GET /double/script", func(w http.ResponseWriter, _ *http.Request) {
		d.mu.Lock()
		script := d.script
		d.mu.Unlock()
		writeJSON(w, http.StatusOK, script)
	})
	d.mux.HandleFunc("PUT /double/script", d.putScript)
	d.mux.HandleFunc("DELETE /double", func(w http.ResponseWriter, _ *http.Request) {
		d.Reset()
		w.WriteHeader(http.StatusNoContent)
	})
}

func (d *Double) putScript(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		err = d.LoadScript(raw)
	}
	if err != nil {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// filter returns the entries whose order id contains part.
func (l Log) filter(part string) Log {
	l.Calls = slices.DeleteFunc(l.Calls, func(e CallEntry) bool { return !strings.Contains(e.Order, part) })
	l.Callbacks = slices.DeleteFunc(l.Callbacks, func(e CallbackEntry) bool { return !strings.Contains(e.Order, part) })
	return l
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the caller has closed the connection
}
