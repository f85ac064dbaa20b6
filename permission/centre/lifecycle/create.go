package lifecycle

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// maxRequestRounds bounds how often a request is repeated because other pods had its addresses.
const maxRequestRounds = 10

// request is a request for an application that is created if it does not exist.
type request struct {
	api.ApplicationRequest
	ctx      context.Context
	id, user string
	requestResult
}

type requestResult struct {
	err error
	// t has created the application; nil if it did not.
	t *txn
	// leaked are the leaked grants at the addresses of a created application.
	leaked []api.LeakedGrant
	// exists: the application existed.
	exists bool
	// former are applications of other pods at the addresses, which are revoked first.
	former []store.ApplicationAt
}

// distinct returns each of the strings once, in order.
func distinct(all []string) []string { return slices.Compact(slices.Sorted(slices.Values(all))) }

// request creates an application unless it exists. Concurrent requests share a transaction.
func (e *Engine) request(ctx context.Context, r api.ApplicationRequest, user string) (*request, error) {
	r.PodIPs, r.NodeIPs = distinct(r.PodIPs), distinct(r.NodeIPs)
	q := &request{ApplicationRequest: r, ctx: ctx, id: ID(r), user: user}
	for range maxRequestRounds {
		if err := e.requests.Do(ctx, e.groupLimits(), q, e.processRequests); err != nil {
			return q, err
		}
		if q.err != nil || q.t != nil || q.exists {
			return q, q.err
		}
		if err := e.revokeFormerPods(ctx, r, q.former, user); err != nil {
			return q, err
		}
	}
	return q, fmt.Errorf("other pods requested permissions for the addresses of pod %s/%s at the same time", r.Namespace, r.Pod)
}

// processRequests processes requests in one transaction. If it fails, each request gets its own
// transaction, so that a request fails only because of itself.
func (e *Engine) processRequests(ctx context.Context, all []*request) (again bool) {
	var c *creator
	err := e.Store.Write(ctx, func(tx store.Tx) error {
		if err := tx.LimitLockWait(lockWait); err != nil {
			return err
		}
		c = &creator{e: e, tx: tx, objects: newObjects(tx.View), ended: map[string]map[string]bool{}, atAddresses: map[string][]store.ApplicationAt{}, ids: map[string]bool{}, pods: map[string]string{}}
		return c.run(all)
	})
	for _, q := range all {
		if err != nil {
			q.requestResult = requestResult{err: err}
		} else if q.t != nil {
			e.committed(q.t)
			e.reportReuse(q.ApplicationRequest, q.leaked)
		}
	}
	return processAgain(err, len(all))
}

// creator creates applications in one transaction.
type creator struct {
	e       *Engine
	tx      store.Tx
	objects *objects
	// existing are the ids of applications that exist.
	existing map[string]bool
	// ended are the pods that have ended, by cluster.
	ended map[string]map[string]bool
	// atAddresses are, by cluster, the applications at the requested addresses that are in a state
	// before revocation or belong to a requesting pod.
	atAddresses map[string][]store.ApplicationAt
	// ids are those of the applications that the transaction creates, and pods the UIDs of
	// their pods by address.
	ids     map[string]bool
	pods    map[string]string
	changes []*store.Changes
}

func (c *creator) run(all []*request) error {
	var active []*request
	for _, q := range all {
		if q.requestResult = (requestResult{err: q.ctx.Err()}); q.err == nil {
			active = append(active, q)
		}
	}
	if len(active) == 0 {
		return nil
	}
	if err := c.read(active); err != nil {
		return err
	}
	var ips []string
	for _, q := range active {
		if q.err = c.create(q); q.t != nil {
			ips = append(ips, q.PodIPs...)
		}
	}
	if len(c.changes) == 0 {
		return nil
	}
	leaks, err := c.tx.LeakedAt(ips)
	if err != nil {
		return err
	}
	for _, q := range active {
		if q.t != nil {
			q.leaked = leakedTo(q.ApplicationRequest, leaks)
		}
	}
	return c.tx.Apply(c.changes)
}

// addressName is the name of an address of a cluster for store.LockNames.
func addressName(cluster, ip string) string { return cluster + "/address/" + ip }

// read locks the pods and their addresses, and reads what the requests need. So a pod does not
// end meanwhile, and of the first requests of two pods for an address, the later one finds the
// application of the earlier one.
func (c *creator) read(all []*request) (err error) {
	var ids, names []string
	byCluster := map[string][]*request{}
	for _, q := range all {
		ids, names = append(ids, q.id), append(names, store.PodName(q.Cluster, q.PodUID))
		byCluster[q.Cluster] = append(byCluster[q.Cluster], q)
		if q.HostNetwork {
			continue
		}
		for _, ip := range q.PodIPs {
			names = append(names, addressName(q.Cluster, ip))
		}
	}
	slices.Sort(names)
	if err := c.tx.LockNames(slices.Compact(names)); err != nil {
		return err
	}
	if c.existing, err = c.tx.Existing(ids); err != nil {
		return err
	}
	for cluster, requests := range byCluster {
		var ips, uids []string
		for _, q := range requests {
			ips, uids = append(ips, q.PodIPs...), append(uids, q.PodUID)
		}
		if c.ended[cluster], err = c.tx.EndedPods(cluster, uids); err != nil {
			return err
		}
		if c.atAddresses[cluster], err = c.tx.ApplicationsAt(cluster, ips, statesBeforeRevocation, uids); err != nil {
			return err
		}
	}
	return nil
}

// create creates the application of a request, or sets why it is not created. A panic fails
// this request alone.
func (c *creator) create(q *request) (err error) {
	defer func() {
		if p := recover(); p != nil {
			q.t, err = nil, fmt.Errorf("panic in a request: %v\n%s", p, debug.Stack())
		}
	}()
	if q.exists = c.existing[q.id]; q.exists || c.conflicts(q) {
		return nil
	}
	ended := c.ended[q.Cluster][q.PodUID]
	if !ended {
		if q.former = applicationsOfFormerPods(q.ApplicationRequest, c.atAddresses[q.Cluster]); len(q.former) > 0 {
			return nil
		}
	}
	members, err := readMembers(c.objects, q.ApplicationRequest)
	if err != nil {
		return err
	}
	if ended {
		return ErrRevokeRequested
	}
	t := c.e.newTxn(c.tx, c.objects, q.user)
	t.app = store.Application{ID: q.id, Request: q.ApplicationRequest, State: api.Requested, Reason: ReasonRequested, Attempt: 1, Created: t.now, Updated: t.now}
	t.changes.Create(t.app)
	t.changes.AddHistory(api.HistoryEntry{Time: t.now, To: api.Requested, Attempt: 1, Reason: ReasonRequested, Who: q.user})
	if err := t.run(func(t *txn) error {
		t.createGrants(members, 0)
		return t.advance()
	}); err != nil {
		return err
	}
	q.t, c.changes, c.ids[q.id] = t, append(c.changes, &t.changes), true
	if !q.HostNetwork {
		for _, ip := range q.PodIPs {
			c.pods[addressName(q.Cluster, ip)] = q.PodUID
		}
	}
	return nil
}

// conflicts reports whether the transaction creates the same application, or one of another
// pod at the same address. The request is repeated when they are written.
func (c *creator) conflicts(q *request) bool {
	if c.ids[q.id] {
		return true
	}
	return !q.HostNetwork && slices.ContainsFunc(q.PodIPs, func(ip string) bool {
		uid, used := c.pods[addressName(q.Cluster, ip)]
		return used && uid != q.PodUID
	})
}
