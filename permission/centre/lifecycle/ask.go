package lifecycle

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// Asked says what became of a request.
type Asked string

// What an application that was asked for is.
const (
	AskedNew   Asked = "new"
	AskedAgain Asked = "again" // a new attempt
	AskedSame  Asked = "same"
)

// ID of the application that a request is for: the same for the same pod,
// addresses (in any order) and set.
func ID(r api.ApplicationRequest) string {
	ips := slices.Sorted(slices.Values(r.PodIPs))
	sum := sha256.Sum256([]byte(strings.Join(append([]string{r.Cluster, r.PodUID, r.Set}, ips...), "\x00")))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:15]))
}

// member is a permission of a set with its provider.
type member struct {
	permission api.Permission
	provider   api.Provider
}

// Ask begins an application, or an attempt of it, or finds it.
func (e *Engine) Ask(ctx context.Context, r api.ApplicationRequest, who string) (store.Application, []store.Grant, Asked, error) {
	r.PodIPs = slices.Compact(slices.Sorted(slices.Values(r.PodIPs)))
	id, asked := ID(r), AskedSame
	if _, err := e.Store.View(ctx).Application(id); err == nil {
		return e.askAgain(ctx, id, who, true)
	} else if !errors.Is(err, store.ErrNotFound) {
		return store.Application{}, nil, asked, err
	}
	err := e.Store.Write(ctx, func(tx store.Tx) error {
		members, err := e.members(tx.View, r)
		if err != nil {
			return err
		}
		if err := fits(r, members); err != nil {
			return err
		}
		now := e.Clock.Now().UTC()
		created, err := tx.CreateApplication(store.Application{ID: id, Request: r, State: api.Requested, Reason: ReasonRequested,
			Attempt: 1, Created: now, Updated: now})
		if err != nil || !created {
			return err
		}
		asked = AskedNew
		if err := tx.AddHistory(id, api.HistoryEntry{Time: now, To: api.Requested, Attempt: 1, Reason: ReasonRequested, Who: who}); err != nil {
			return err
		}
		// The first job in the same transaction: no application is forgotten.
		t := &txn{Tx: tx, e: e, ctx: ctx, now: now, who: who}
		if t.app, err = tx.LockApplication(id); err != nil {
			return err
		}
		if err := t.fill(members, store.Grant{}); err != nil {
			return err
		}
		if err := t.advance(); err != nil {
			return err
		}
		return t.settle()
	})
	if err != nil {
		return store.Application{}, nil, asked, err
	}
	if asked == AskedNew {
		e.Watchers.Changed(id)
		e.reportReuse(ctx, r)
		return e.load(ctx, id, asked)
	}
	return e.askAgain(ctx, id, who, true)
}

// askAgain is for an application that there is; lives says that its pod does.
func (e *Engine) askAgain(ctx context.Context, id, who string, lives bool) (store.Application, []store.Grant, Asked, error) {
	asked := AskedSame
	app, grants, err := e.change(ctx, id, who, func(t *txn) error {
		attempt := Again(t.app.State, busy(t.grants), lives)
		switch attempt {
		case AttemptSame:
			return errNothing
		case AttemptRefused:
			return ErrGoing
		case AttemptRest, AttemptAll, AttemptAnew:
		}
		members, err := e.members(t.View, t.app.Request)
		if err != nil {
			return err
		}
		asked = AskedAgain
		return t.again(attempt, members)
	})
	if errors.Is(err, errNothing) || errors.Is(err, ErrGoing) {
		app, grants, _, loadErr := e.load(ctx, id, AskedSame)
		return app, grants, AskedSame, errors.Join(onlyGoing(err), loadErr)
	}
	return app, grants, asked, err
}

// errNothing undoes a transaction that changes nothing.
var errNothing = errors.New("nothing to change")

func onlyGoing(err error) error {
	if errors.Is(err, ErrGoing) {
		return err
	}
	return nil
}

// members reads a set with all that belongs to it, for a pod that may have it.
func (e *Engine) members(v store.View, r api.ApplicationRequest) ([]member, error) {
	var set api.PermissionSet
	if err := read(v, store.KindSet, r.Set, &set); err != nil {
		return nil, err
	}
	if !allowed(set.Pods, r) {
		return nil, NotAllowed{fmt.Sprintf("set %s is not for pods of namespace %s and ServiceAccount %s in cluster %s; ask %s",
			r.Set, r.Namespace, r.ServiceAccount, r.Cluster, set.Owner)}
	}
	members := make([]member, len(set.Permissions))
	for i, name := range set.Permissions {
		m := &members[i]
		if err := read(v, store.KindPermission, name, &m.permission); err != nil {
			return nil, err
		}
		if err := read(v, store.KindProvider, m.permission.Provider, &m.provider); err != nil {
			return nil, err
		}
	}
	return members, nil
}

func read(v store.View, kind store.Kind, name string, to any) error {
	o, err := v.Object(kind, name)
	if errors.Is(err, store.ErrNotFound) {
		return NoSet{fmt.Sprintf("%s %s does not exist", kind, name)}
	} else if err != nil {
		return err
	}
	return json.Unmarshal(o.Body, to)
}

// allowed says whether a set is for a pod.
func allowed(patterns []api.PodPattern, r api.ApplicationRequest) bool {
	matches := func(pattern, value string) bool {
		ok, err := path.Match(pattern, value)
		return pattern == "" || ok && err == nil
	}
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p api.PodPattern) bool {
		return matches(p.Cluster, r.Cluster) && matches(p.Namespace, r.Namespace) && matches(p.ServiceAccount, r.ServiceAccount)
	})
}

// NotAllowed says that the pod may not have the set.
type NotAllowed struct{ Message string }

func (n NotAllowed) Error() string { return n.Message }

// NoSet says that the set, or something that it needs, is not registered.
type NoSet struct{ Message string }

func (n NoSet) Error() string { return n.Message }

// fits says whether a pod may have what the set grants.
func fits(r api.ApplicationRequest, members []member) error {
	for _, m := range members {
		switch {
		case r.HostNetwork && !m.provider.NodeScoped:
			return Refusal{"hostNetwork", fmt.Sprintf("a pod with hostNetwork has its node's address, and provider %s of permission %s does not grant to nodes",
				m.provider.Name, m.permission.Name)}
		case m.provider.NodeScoped && len(r.NodeIPs) == 0:
			return Refusal{"nodeIPs", fmt.Sprintf("needed: provider %s of permission %s grants to nodes", m.provider.Name, m.permission.Name)}
		}
	}
	return nil
}

// addresses that a provider grants to.
func addresses(r api.ApplicationRequest, p api.Provider) []string {
	if p.NodeScoped {
		return r.NodeIPs
	}
	return r.PodIPs
}

// load reads an application as it is.
func (e *Engine) load(ctx context.Context, id string, asked Asked) (store.Application, []store.Grant, Asked, error) {
	v := e.Store.View(ctx)
	app, err := v.Application(id)
	if err != nil {
		return app, nil, asked, err
	}
	grants, err := v.Grants(id)
	return app, grants, asked, err
}

// reportReuse says that a pod got an address that still holds what another
// pod's grants left there.
func (e *Engine) reportReuse(ctx context.Context, r api.ApplicationRequest) {
	leaked, err := e.Leaked(ctx, r)
	if err != nil {
		e.Log.Error("look for leaks at the pod's addresses", "pod", r.Namespace+"/"+r.Pod, "error", err)
		return
	}
	for _, l := range leaked {
		e.Metrics.Reused(l.Permission)
		e.Log.Warn("an address with a leaked grant has a new pod", "ip", l.IP, "pod", r.Namespace+"/"+r.Pod, "cluster", r.Cluster,
			"permission", l.Permission, "owner", l.Owner, "leakedBy", l.Namespace+"/"+l.Pod, "application", l.Application)
	}
}

// Leaked lists what other pods left behind at a pod's addresses.
func (e *Engine) Leaked(ctx context.Context, r api.ApplicationRequest) ([]api.LeakedGrant, error) {
	var all []api.LeakedGrant
	for _, ip := range r.PodIPs {
		leaked, err := e.Store.View(ctx).LeakedAt(r.Cluster, ip, r.PodUID, 20)
		if err != nil {
			return nil, err
		}
		all = append(all, leaked...)
	}
	return all, nil
}
