package podpermission

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

const (
	// reportPage is the maximum number of pods in a page of a report.
	reportPage = 5000
	// listPage is how many pods one list call requests.
	listPage = 500
)

// PodReportReceiver receives reports of existing pods.
type PodReportReceiver interface {
	ReportPods(ctx context.Context, cluster string, r api.PodReport) (api.PodReportResult, error)
}

// sendPodReport reports the existing pods to the centre, which revokes the grants of all
// others. It lists the pods from the API server, not from a cache, because a pod
// that is missing in the report loses its permissions.
func (c *periodicTasks) sendPodReport(ctx context.Context, now time.Time) (revoked, unconfirmed int, err error) {
	system, err := c.namespaces.Get(metav1.NamespaceSystem)
	if err != nil {
		return 0, 0, fmt.Errorf("read the UID of the cluster: %w", err)
	}
	var live []api.LivePod
	options := metav1.ListOptions{LabelSelector: podmeta.Label + "=" + podmeta.LabelRequired, Limit: listPage}
	for {
		list, err := c.kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return 0, 0, fmt.Errorf("list pods: %w", err)
		}
		for i := range list.Items {
			p := &list.Items[i]
			if !workload.PodEnded(p) {
				live = append(live, api.LivePod{UID: string(p.UID), IPs: podmeta.IPs(p)})
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
	}
	for _, page := range pages(live, now) {
		page.ClusterUID = string(system.UID)
		result, err := c.podReportReceiver.ReportPods(ctx, c.settings().Cluster, page)
		if err != nil {
			return revoked, unconfirmed, fmt.Errorf("report existing pods: %w", err)
		}
		revoked, unconfirmed = revoked+result.Revoked, unconfirmed+result.Held
	}
	return revoked, unconfirmed, nil
}

// pages splits a report into pages. Each page covers a range of UIDs; together they
// cover every UID.
func pages(live []api.LivePod, observed time.Time) []api.PodReport {
	slices.SortFunc(live, func(a, b api.LivePod) int { return cmp.Compare(a.UID, b.UID) })
	var all []api.PodReport
	after := ""
	for {
		n := min(len(live), reportPage)
		page := api.PodReport{Observed: observed, After: after, Pods: live[:n], Empty: n == 0}
		if page.Pods == nil {
			page.Pods = []api.LivePod{}
		}
		if live = live[n:]; len(live) > 0 {
			page.Through = page.Pods[n-1].UID
			after = page.Through
		}
		if all = append(all, page); len(live) == 0 {
			return all
		}
	}
}
