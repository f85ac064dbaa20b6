package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

const (
	// reportGracePeriod protects attempts that began shortly before the pods
	// were listed. maxReportAge is the maximum age of a list.
	reportGracePeriod = 2 * time.Minute
	maxReportAge      = time.Hour
	// maxReportPods bounds the pods of a page, maxReportIDs the ids in the
	// result.
	maxReportPods = 5000
	maxReportIDs  = 100
	// maxClockSkew is how far the clock of the reporter may be ahead.
	maxClockSkew = time.Minute
)

// ValidatePodReport validates a page of a report of existing pods.
func ValidatePodReport(r api.PodReport, now time.Time) error {
	switch {
	case r.ClusterUID == "" || len(r.ClusterUID) > maxClusterUID:
		return InvalidRequest{"clusterUID", fmt.Sprintf("required: the UID of namespace kube-system of the cluster, at most %d bytes", maxClusterUID)}
	case r.Observed.IsZero():
		return InvalidRequest{"observed", "required: the time when the pods were listed"}
	case r.Observed.After(now.Add(maxClockSkew)):
		return InvalidRequest{"observed", "must not be more than 1 min in the future"}
	case now.Sub(r.Observed) > maxReportAge:
		return InvalidRequest{"observed", "must not be older than 1 h; list the pods again"}
	case len(r.Pods) == 0 && !r.Empty:
		return InvalidRequest{"pods", "has no items; set empty to true if the range has no pods"}
	case len(r.Pods) > 0 && r.Empty:
		return InvalidRequest{"empty", "must be false if pods has items"}
	case len(r.Pods) > maxReportPods:
		return InvalidRequest{"pods", fmt.Sprintf("has %d items; must have at most %d", len(r.Pods), maxReportPods)}
	case r.Through != "" && r.Through <= r.After:
		return InvalidRequest{"through", "must be greater than after"}
	}
	for i, p := range r.Pods {
		if p.UID == "" || p.UID <= r.After || r.Through != "" && p.UID > r.Through {
			return InvalidRequest{fmt.Sprintf("pods[%d].uid", i), "must be greater than after and at most through"}
		}
	}
	return nil
}

// Unlisted reports whether the pod of an application, or its addresses, are
// missing in the list of existing pods. The addresses of a pod with hostNetwork are those of its
// node, which can get another one, and its grants are for the node.
func Unlisted(a store.Application, existing map[string][]string, observed time.Time) bool {
	if began := observed.Add(-reportGracePeriod); a.Created.After(began) || a.AttemptBegan.After(began) {
		return false
	}
	ips, exists := existing[a.Request.PodUID]
	return !exists || !a.Request.HostNetwork && len(ips) > 0 && !slices.Equal(ips, a.Request.PodIPs)
}

// ApplyPodReport revokes the applications of pods that do not exist. If they are too many, it
// revokes none until an admin confirms their number.
func (e *Engine) ApplyPodReport(ctx context.Context, cluster string, r api.PodReport, user string) (api.PodReportResult, error) {
	if err := ValidatePodReport(r, e.Clock.Now()); err != nil {
		return api.PodReportResult{}, err
	}
	checked, unlisted, err := e.unlisted(ctx, cluster, r)
	if err != nil {
		return api.PodReportResult{}, err
	}
	result := api.PodReportResult{Checked: checked}
	page, err := e.decidePage(ctx, cluster, r, checked, len(unlisted))
	if err != nil {
		return result, err
	}
	if page.Unconfirmed {
		result.Held, result.Applications = len(unlisted), unlisted[:min(len(unlisted), maxReportIDs)]
		e.Log.Warn("a report of existing pods would revoke too many applications; check the cluster, then confirm it with POST /v1/clusters/{cluster}/pods/confirm",
			"cluster", cluster, "held", result.Held, "checked", result.Checked, "listed", len(r.Pods), "first", result.Applications[0])
		return result, nil
	}
	for part := range slices.Chunk(unlisted, groupSize) {
		ids, err := e.revokeUnlisted(ctx, cluster, part, page.UsesConfirmation, user)
		result.Revoked += len(ids)
		result.Applications = append(result.Applications, ids[:min(len(ids), maxReportIDs-len(result.Applications))]...)
		if err != nil {
			return result, err
		}
	}
	return result, nil
}

// revokeUnlisted begins the revocation of applications in one transaction, and returns the ids of those
// whose revocation was not requested before. The transaction uses up as many confirmed revocations, so
// that a report that ends early uses up no more than it revokes.
func (e *Engine) revokeUnlisted(ctx context.Context, cluster string, ids []string, usesConfirmation bool, user string) (revoked []string, err error) {
	all := make([]*update, len(ids))
	for i, id := range ids {
		all[i] = &update{ctx: ctx, id: id, user: user, change: requestRevocation}
	}
	err = e.Store.Write(ctx, func(tx store.Tx) error {
		revoked = nil
		if err := tx.LimitLockWait(lockWait); err != nil {
			return err
		}
		c, err := tx.LockCluster(cluster)
		if err != nil {
			return err
		}
		if usesConfirmation && c.Confirmed < len(ids) {
			return fmt.Errorf("another report of cluster %s has used its confirmation; report again", cluster)
		}
		if err := e.updateAll(tx, all); err != nil {
			return err
		}
		for _, u := range all {
			if u.err == nil {
				revoked = append(revoked, u.id)
			}
		}
		if !usesConfirmation {
			return nil
		}
		c.Confirmed -= len(revoked)
		return tx.UpdateCluster(c)
	})
	if err != nil {
		return nil, fmt.Errorf("revoke applications of pods that do not exist: %w", err)
	}
	for _, u := range all {
		switch {
		case u.err == nil:
			e.committed(u.txn)
		case !errors.Is(u.err, errUnchanged):
			err = errors.Join(err, fmt.Errorf("revoke %s: %w", u.id, u.err))
		}
	}
	return revoked, err
}

// unlisted returns the ids of the applications in the range of a page whose pods are not
// listed, and the number of all applications in the range whose revocation was not requested.
func (e *Engine) unlisted(ctx context.Context, cluster string, r api.PodReport) (checked int, ids []string, err error) {
	pods := map[string][]string{}
	for _, p := range r.Pods {
		pods[p.UID] = distinct(p.IPs)
	}
	filter := store.Filter{Cluster: cluster, States: statesBeforeRevocation, UIDAbove: r.After, UIDUpTo: r.Through}
	page := store.Page{Limit: 500}
	for {
		apps, err := e.Store.View(ctx).Applications(filter, page)
		if err != nil {
			return checked, ids, err
		}
		for _, a := range apps {
			page.After = a.ID
			checked++
			if Unlisted(a, pods, r.Observed) {
				ids = append(ids, a.ID)
			}
		}
		if len(apps) < page.Limit {
			return checked, ids, nil
		}
	}
}
