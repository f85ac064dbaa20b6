package lifecycle

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// RequestOutcome is the outcome of a request for an application.
type RequestOutcome string

// The outcomes.
const (
	RequestCreated    RequestOutcome = "Created"
	RequestNewAttempt RequestOutcome = "NewAttempt"
	RequestUnchanged  RequestOutcome = "Unchanged"
)

// ID returns the id of an application: the same for the same pod, addresses (in
// any order) and set.
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

// Request creates an application, begins a new attempt of it, or returns it
// unchanged. user is the requesting user.
func (e *Engine) Request(ctx context.Context, r api.ApplicationRequest, user string) (store.Application, []store.Grant, RequestOutcome, error) {
	q, err := e.request(ctx, r, user)
	if err != nil {
		return store.Application{}, nil, RequestUnchanged, err
	}
	if q.t != nil {
		return q.t.app, q.t.grants, RequestCreated, nil
	}
	return e.requestExisting(ctx, q.id, user, true)
}

// RequestToAPI is Request with the API type of the application.
func (e *Engine) RequestToAPI(ctx context.Context, r api.ApplicationRequest, user string) (api.Application, RequestOutcome, error) {
	q, err := e.request(ctx, r, user)
	if err != nil {
		return api.Application{}, RequestUnchanged, err
	}
	if q.t != nil {
		shown := toAPI(q.t.app, q.t.grants)
		shown.Leaked = q.leaked
		return shown, RequestCreated, nil
	}
	app, grants, outcome, err := e.requestExisting(ctx, q.id, user, true)
	if err != nil {
		return api.Application{}, outcome, err
	}
	shown, err := e.ToAPI(ctx, app, grants)
	return shown, outcome, err
}

// requestExisting handles a request for an existing application. podExists: the
// request confirms that the pod exists.
func (e *Engine) requestExisting(ctx context.Context, id, user string, podExists bool) (store.Application, []store.Grant, RequestOutcome, error) {
	outcome := RequestUnchanged
	app, grants, err := e.updateAlone(ctx, id, user, func(t *txn) error {
		scope := NextAttempt(t.app.State, callActive(t.grants), podExists)
		switch scope {
		case AttemptNone:
			return errUnchanged
		case AttemptRejected:
			if t.app.State == api.Leaked && podExists { // it is worth a retry only if the pod has not ended
				if err := checkNotEnded(t.Tx, t.app.Request); err != nil {
					return err
				}
			}
			return rejection(t.app.State, t.grants, podExists)
		case AttemptRemaining, AttemptAll, AttemptCurrentSet:
		}
		if err := checkNotEnded(t.Tx, t.app.Request); err != nil {
			return err
		}
		members, err := readMembers(t.objects, t.app.Request)
		if err != nil {
			return err
		}
		outcome = RequestNewAttempt
		return t.beginAttempt(scope, members)
	})
	if errors.Is(err, errUnchanged) || errors.Is(err, ErrRevokeRequested) {
		app, grants, loadErr := e.load(ctx, id)
		return app, grants, RequestUnchanged, errors.Join(onlyRevokeRequested(err), loadErr)
	}
	return app, grants, outcome, err
}

// errUnchanged rolls back a transaction that changes nothing.
var errUnchanged = errors.New("unchanged")

func onlyRevokeRequested(err error) error {
	if errors.Is(err, ErrRevokeRequested) {
		return err
	}
	return nil
}

// readMembers reads a set with its permissions and providers. The pod must be
// allowed to request the set, and have the addresses that the providers grant to.
func readMembers(o *objects, r api.ApplicationRequest) ([]member, error) {
	set, err := requiredObject[api.PermissionSet](o, store.KindSet, r.Set)
	if err != nil {
		return nil, err
	}
	if !podAllowed(set.Pods, r) {
		return nil, NotAllowed{fmt.Sprintf("permission set %s does not allow pods of namespace %s and ServiceAccount %s in cluster %s; ask its owner %s to add them to field pods of the set",
			r.Set, r.Namespace, r.ServiceAccount, r.Cluster, set.Owner)}
	}
	members := make([]member, len(set.Permissions))
	for i, name := range set.Permissions {
		m := &members[i]
		if m.permission, err = requiredObject[api.Permission](o, store.KindPermission, name); err != nil {
			return nil, err
		}
		if m.provider, err = requiredObject[api.Provider](o, store.KindProvider, m.permission.Provider); err != nil {
			return nil, err
		}
	}
	return members, checkNodeScope(r, members)
}

// podAllowed reports whether a pod may request a set. A set without patterns allows none.
func podAllowed(patterns []api.PodPattern, r api.ApplicationRequest) bool {
	matches := func(pattern, value string) bool {
		ok, err := path.Match(pattern, value)
		return pattern == "" || ok && err == nil
	}
	return slices.ContainsFunc(patterns, func(p api.PodPattern) bool {
		return matches(p.Cluster, r.Cluster) && matches(p.Namespace, r.Namespace) && matches(p.ServiceAccount, r.ServiceAccount)
	})
}

// NotAllowed is returned if the pod may not request the set.
type NotAllowed struct{ Message string }

func (n NotAllowed) Error() string { return n.Message }

// NotRegistered is returned if the set, or a permission or provider of it, does
// not exist.
type NotRegistered struct{ Message string }

func (n NotRegistered) Error() string { return n.Message }

// checkNodeScope checks that the request has the addresses that the providers
// grant to.
func checkNodeScope(r api.ApplicationRequest, members []member) error {
	for _, m := range members {
		switch {
		case r.HostNetwork && !m.provider.NodeScoped:
			return InvalidRequest{"hostNetwork", fmt.Sprintf("must be false: a pod with hostNetwork has the address of its node, and provider %s of permission %s is not nodeScoped",
				m.provider.Name, m.permission.Name)}
		case m.provider.NodeScoped && len(r.NodeIPs) == 0:
			return InvalidRequest{"nodeIPs", fmt.Sprintf("required: provider %s of permission %s is nodeScoped", m.provider.Name, m.permission.Name)}
		}
	}
	return nil
}

// grantIPs returns the addresses that a provider grants to.
func grantIPs(r api.ApplicationRequest, p api.Provider) []string {
	if p.NodeScoped {
		return r.NodeIPs
	}
	return r.PodIPs
}

// load reads an application and its grants.
func (e *Engine) load(ctx context.Context, id string) (store.Application, []store.Grant, error) {
	v := e.Store.View(ctx)
	app, err := v.Application(id)
	if err != nil {
		return app, nil, err
	}
	grants, err := v.Grants(id)
	return app, grants, err
}

// reportReuse reports a pod that got an address with leaked grants of another
// pod.
func (e *Engine) reportReuse(r api.ApplicationRequest, leaked []api.LeakedGrant) {
	for _, l := range leaked {
		e.Metrics.LeakedGrantAtNewPod(l.Permission)
		e.Log.Warn("new pod has an address with a leaked grant", "ip", l.IP, "pod", r.Namespace+"/"+r.Pod, "cluster", r.Cluster,
			"permission", l.Permission, "owner", l.Owner, "leakedBy", l.Namespace+"/"+l.Pod, "application", l.Application)
	}
}

// Leaked lists the leaked grants of other pods at the addresses of a pod.
func (e *Engine) Leaked(ctx context.Context, r api.ApplicationRequest) ([]api.LeakedGrant, error) {
	leaks, err := e.Store.View(ctx).LeakedAt(r.PodIPs)
	return leakedTo(r, leaks), err
}
