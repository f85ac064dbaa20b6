//go:build e2e

package e2e

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// failingProbe is a probe that never succeeds.
func failingProbe() *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/false"}}},
		PeriodSeconds: 1,
	}
}

// leadersEventsMetrics: a controller holds a Lease, records Events and exports
// metrics.
func leadersEventsMetrics(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.setChecks(t, double.CheckRule{Match: batch(1, double.Post), Then: failed()})
	n.create(t, builder.Deployment("web", 1, builder.Simulated))
	c := n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuspend)
	n.awaitEvent(t, "web", v1alpha1.ReasonCheckFailed, c.Name)

	pods, err := n.kube.CoreV1().Pods(system).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=controller"})
	if err != nil || len(pods.Items) == 0 {
		t.Fatalf("%d pods of the controller (%v)", len(pods.Items), err)
	}
	leases, err := n.kube.CoordinationV1().Leases(system).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	held := 0
	for i := range leases.Items {
		holder := ptr.Deref(leases.Items[i].Spec.HolderIdentity, "")
		for j := range pods.Items {
			if strings.HasPrefix(holder, pods.Items[j].Name) && strings.HasPrefix(leases.Items[i].Name, "controller") {
				held++
			}
		}
	}
	if held == 0 {
		t.Errorf("no pod of the controller holds a Lease: %+v", leases.Items)
	}
	await(t, shortTimeout, "the controller exports its metrics", func(ctx context.Context) error {
		for i := range pods.Items {
			printed, err := scrape(ctx, pods.Items[i].Status.PodIP)
			if err != nil {
				return err
			}
			if strings.Contains(printed, "breakwater_pods_finished_total") {
				return nil
			}
		}
		return errors.New("metric breakwater_pods_finished_total is missing")
	})
}

// scrape reads the metrics of a pod.
func scrape(ctx context.Context, ip string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+ip+":9090/metrics", nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }() // the body was read
	body, err := io.ReadAll(response.Body)
	return string(body), err
}
