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
	// reportGrace spares what began about when the pods were listed, and
	// reportAge is how old a list may be.
	reportGrace = 2 * time.Minute
	reportAge   = time.Hour
	// reportPods bounds a page, reportIDs the ids that it is answered with.
	reportPods = 5000
	reportIDs  = 100
	// clockSkew is by how much another's clock may be ahead.
	clockSkew = time.Minute
)

// CheckReport says what is wrong with a report.
func CheckReport(r api.PodReport, now time.Time) error {
	switch {
	case r.Observed.IsZero():
		return Refusal{"observed", "needed: when the pods were listed"}
	case r.Observed.After(now.Add(clockSkew)):
		return Refusal{"observed", "is in the future"}
	case now.Sub(r.Observed) > reportAge:
		return Refusal{"observed", "is older than 1 h; list the pods again"}
	case len(r.Pods) == 0 && !r.Empty:
		return Refusal{"pods", "no pod is named; set empty to true when no pod of the range lives"}
	case len(r.Pods) > 0 && r.Empty:
		return Refusal{"empty", "pods are named; set empty to false"}
	case len(r.Pods) > reportPods:
		return Refusal{"pods", fmt.Sprintf("%d pods; a page has at most %d", len(r.Pods), reportPods)}
	case r.Through != "" && r.Through <= r.After:
		return Refusal{"through", "must be above after"}
	}
	for i, p := range r.Pods {
		if p.UID == "" || p.UID <= r.After || r.Through != "" && p.UID > r.Through {
			return Refusal{fmt.Sprintf("pods[%d].uid", i), "must be above after and up to through"}
		}
	}
	return nil
}

// Gone says whether an application's pod, or its addresses, are not among
// those that live.
func Gone(a store.Application, living map[string][]string, observed time.Time) bool {
	if began := observed.Add(-reportGrace); a.Created.After(began) || a.Asked.After(began) {
		return false
	}
	ips, lives := living[a.Request.PodUID]
	return !lives || len(ips) > 0 && !slices.Equal(ips, a.Request.PodIPs)
}

// Report revokes what is held by pods that do not live any more.
func (e *Engine) Report(ctx context.Context, cluster string, r api.PodReport, who string) (api.PodReportResult, error) {
	var result api.PodReportResult
	if err := CheckReport(r, e.Clock.Now()); err != nil {
		return result, err
	}
	pods := map[string][]string{}
	for _, p := range r.Pods {
		pods[p.UID] = slices.Compact(slices.Sorted(slices.Values(p.IPs)))
	}
	filter := store.Filter{Cluster: cluster, States: living, UIDAbove: r.After, UIDUpTo: r.Through}
	page := store.Page{Limit: 500}
	for {
		apps, err := e.Store.View(ctx).Applications(filter, page)
		if err != nil {
			return result, err
		}
		for _, a := range apps {
			page.After = a.ID
			result.Checked++
			if !Gone(a, pods, r.Observed) {
				continue
			}
			_, _, begun, err := e.Revoke(ctx, a.ID, who)
			if err != nil {
				return result, fmt.Errorf("revoke %s: %w", a.ID, err)
			}
			if begun {
				result.Revoked++
				if len(result.Applications) < reportIDs {
					result.Applications = append(result.Applications, a.ID)
				}
			}
		}
		if len(apps) < page.Limit {
			return result, nil
		}
	}
}
