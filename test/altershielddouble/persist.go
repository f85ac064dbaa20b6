package altershielddouble

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// maxLine is the maximum size of a record in bytes.
const maxLine = 16 << 20

// record is one line of the file: one change of the state.
type record struct {
	Script *Script      `json:"script,omitempty"`
	Admin  *admin       `json:"admin,omitempty"`
	Order  *orderRecord `json:"order,omitempty"`
	Node   *nodeRecord  `json:"node,omitempty"`
	Call   *CallEntry   `json:"call,omitempty"`
	// Sending is the intent to send a callback, Sent its result.
	Sending *sending `json:"sending,omitempty"`
	Sent    *sending `json:"sent,omitempty"`
}

type sending struct {
	N     int           `json:"n"`
	Entry CallbackEntry `json:"entry"`
}

type orderRecord struct {
	ID, Biz, Platform, Scene, State string
	Namespace, Workload             string
	Apps                            []string
	Emergency                       bool
}

type nodeRecord struct {
	ID, Biz, Platform, Step string
	State                   State
	Emergency               bool
	BatchNo, Total, InPhase int64
	Start, Finish           time.Time
	Locations               []string
	ExtInfo                 map[string]any
	Passed                  map[Stage]bool
	Due                     Stage
}

// Persist stores the state in a file, as the server does in its database. It
// first restores the state of the file and restarts checks that were running. A
// callback that was being sent when the process died is not sent again; its log
// entry has status 0. Call it once, before serving.
//
// The file survives the process but not a crash of the machine: it is not
// synced.
func (d *Double) Persist(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open state: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.replay(f); err != nil {
		return errors.Join(fmt.Errorf("read the state %s: %w", path, err), f.Close())
	}
	d.file = f
	for _, n := range d.nodeList {
		if n.due == "" {
			continue
		}
		c := d.newCheck(n, n.due)
		close(c.answered) // the caller was answered or will retry
		d.background(func(ctx context.Context) { d.run(ctx, c) })
	}
	return nil
}

// replay restores the state of the file. It ignores an incomplete last line: the
// double was killed before it answered that call. d.mu is held.
func (d *Double) replay(from io.Reader) error {
	open := map[int]CallbackEntry{}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var r record
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			continue
		}
		switch {
		case r.Script != nil:
			d.script, d.progress = *r.Script, newProgress(*r.Script)
		case r.Admin != nil:
			d.admin = *r.Admin
		case r.Order != nil:
			d.restoreOrder(*r.Order)
		case r.Node != nil:
			d.restoreNode(*r.Node)
		case r.Call != nil:
			d.log.addCall(*r.Call)
		case r.Sending != nil:
			open[r.Sending.N] = r.Sending.Entry
			d.sends = max(d.sends, r.Sending.N)
		case r.Sent != nil:
			delete(open, r.Sent.N)
			d.log.addCallback(r.Sent.Entry)
		}
	}
	for _, e := range open {
		e.Error = "the double ended before the answer came"
		d.log.addCallback(e)
	}
	return lines.Err()
}

func (d *Double) restoreOrder(r orderRecord) {
	key := orderKey{r.Platform, r.Biz}
	o := d.orders[key]
	if o == nil {
		o = &order{}
		d.orders[key] = o
	}
	*o = order{
		id: r.ID, biz: r.Biz, platform: r.Platform, scene: r.Scene, apps: r.Apps, emergency: r.Emergency, state: r.State,
		namespace: r.Namespace, workload: r.Workload,
	}
}

func (d *Double) restoreNode(r nodeRecord) {
	n := d.nodes[r.ID]
	if n == nil {
		n = &node{}
		d.nodes[r.ID] = n
		d.nodeList = append(d.nodeList, n)
	}
	*n = node{
		id: r.ID, order: d.orders[orderKey{r.Platform, r.Biz}], step: r.Step, state: r.State, emergency: r.Emergency,
		batchNo: r.BatchNo, total: r.Total, inPhase: r.InPhase, start: r.Start, finish: r.Finish,
		locations: r.Locations, extInfo: r.ExtInfo, passed: r.Passed, due: r.Due,
	}
	if n.passed == nil {
		n.passed = map[Stage]bool{}
	}
}

// keepOrder and keepNode record the current state of an order or a node. d.mu
// is held.
func (d *Double) keepOrder(o *order) {
	if o == nil {
		return
	}
	d.keep(record{Order: &orderRecord{
		ID: o.id, Biz: o.biz, Platform: o.platform, Scene: o.scene, State: o.state, Apps: o.apps, Emergency: o.emergency,
		Namespace: o.namespace, Workload: o.workload,
	}})
}

func (d *Double) keepNode(n *node) {
	if n == nil {
		return
	}
	d.keep(record{Node: &nodeRecord{
		ID: n.id, Biz: n.order.biz, Platform: n.order.platform, Step: n.step, State: n.state, Emergency: n.emergency,
		BatchNo: n.batchNo, Total: n.total, InPhase: n.inPhase, Start: n.start, Finish: n.finish,
		Locations: n.locations, ExtInfo: n.extInfo, Passed: n.passed, Due: n.due,
	}})
}

// keep appends a record. It panics on an error, because the double must not
// continue without its file. d.mu is held.
func (d *Double) keep(r record) {
	if d.file == nil {
		return
	}
	raw, err := json.Marshal(r)
	if err == nil {
		_, err = d.file.Write(append(raw, '\n'))
	}
	if err != nil && !errors.Is(err, fs.ErrClosed) {
		panic(fmt.Errorf("write the state: %w", err))
	}
}

// forget truncates the file. d.mu is held.
func (d *Double) forget() {
	if d.file == nil {
		return
	}
	if err := d.file.Truncate(0); err != nil {
		panic(fmt.Errorf("truncate the state: %w", err))
	}
}
