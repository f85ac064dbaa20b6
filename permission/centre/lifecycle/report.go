package lifecycle

import (
	"context"
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

// ValidateReport validates a report.
func ValidateReport(r api.PodReport, now time.Time) error {
	switch {
	case r.ClusterUID == "" || len(r.ClusterUID) > maxClusterUID:
		return InvalidRequest{"clusterUID", fmt.Sprintf("required: the UID of namespace kube-system of the cluster, at most %d bytes", maxClusterUID)}
	case r.Observed.IsZero():
		return InvalidRequest{"observed", "required: the time when the pods were listed"}
	case r.Observed.After(now.Add(maxClockSkew)):
		return InvalidRequest{"observed", "must not be in the future"}
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
// missing in the list of existing pods.
func Unlisted(a store.Application, existing map[string][]string, observed time.Time) bool {
	if began := observed.Add(-reportGracePeriod); a.Created.After(began) || a.AttemptBegan.After(began) {
		return false
	}
	ips, exists := existing[a.Request.PodUID]
	return !exists || len(ips) > 0 && !slices.Equal(ips, a.Request.PodIPs)
}

// Report revokes the applications of pods that do not exist. If they are too many, it
// revokes none until an admin confirms their number.
func (e *Engine) Report(ctx context.Context, cluster string, r api.PodReport, user string) (api.PodReportResult, error) {
	if err := ValidateReport(r, e.Clock.Now()); err != nil {
		return api.PodReportResult{}, err
	}
	checked, unlisted, err := e.unlisted(ctx, cluster, r)
	if err != nil {
		return api.PodReportResult{}, err
	}
	result := api.PodReportResult{Checked: checked}
	unconfirmed, err := e.acceptPage(ctx, cluster, r, checked, len(unlisted))
	if err != nil {
		return result, err
	}
	if unconfirmed {
		result.Held, result.Applications = len(unlisted), unlisted[:min(len(unlisted), maxReportIDs)]
		e.Log.Warn("a report of existing pods would revoke too many applications; check the cluster, then confirm it with POST /v1/clusters/{cluster}/pods/confirm",
			"cluster", cluster, "held", result.Held, "checked", result.Checked, "listed", len(r.Pods), "first", result.Applications[0])
		return result, nil
	}
	for _, id := range unlisted {
		_, _, began, err := e.Revoke(ctx, id, user)
		if err != nil {
			return result, fmt.Errorf("revoke %s: %w", id, err)
		}
		if began {
			result.Revoked++
			if len(result.Applications) < maxReportIDs {
				result.Applications = append(result.Applications, id)
			}
		}
	}
	return result, nil
}

// unlisted returns the ids of the applications in the range of a page whose pods are not
// listed, and the number of all applications in the range whose revocation was not requested.
func (e *Engine) unlisted(ctx context.Context, cluster string, r api.PodReport) (checked int, ids []string, err error) {
	pods := map[string][]string{}
	for _, p := range r.Pods {
		pods[p.UID] = slices.Compact(slices.Sorted(slices.Values(p.IPs)))
	}
	filter := store.Filter{Cluster: cluster, States: unrevokedStates, UIDAbove: r.After, UIDUpTo: r.Through}
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
