package server

import (
	"path/filepath"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/breakwater-dev/breakwater/events/delivery"
	"github.com/breakwater-dev/breakwater/internal/drain"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// deployments returns the manifests of the webhooks' Deployments.
func deployments(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../config/*/420-webhook-deployment.yaml")
	if err != nil || len(files) != 3 {
		t.Fatalf("%q, %v", files, err)
	}
	return files
}

func TestNoWebhookIsKilledWhileItDrains(t *testing.T) {
	for _, file := range deployments(t) {
		builder.CheckGracePeriod(t, file, drain.MaxWait+readTimeout+delivery.DefaultDrainTime)
	}
}

// The requests of users wait for those of the webhook, which the API server does not limit either.
func TestNoWebhookLimitsItsRequestsToTheAPIServer(t *testing.T) {
	for _, file := range deployments(t) {
		d := builder.Manifests[appsv1.Deployment](t, file)[0]
		got := map[string]int{}
		for _, e := range d.Spec.Template.Spec.Containers[0].Env {
			got[e.Name], _ = strconv.Atoi(e.Value)
		}
		if qps, burst := got["KUBE_API_QPS"], got["KUBE_API_BURST"]; qps < 5000 || burst < qps {
			t.Errorf("%s: %d requests per second and a burst of %d, want at least 5000", file, qps, burst)
		}
	}
}

// Fail-closed webhooks without a replica deny what would make room for one.
func TestNoPodThatRequestsWaitForWaitsForRoomBehindApplications(t *testing.T) {
	classes, err := filepath.Glob("../../config/*/010-priorityclass.yaml")
	if err != nil || len(classes) != 3 {
		t.Fatalf("%q, %v", classes, err)
	}
	for _, file := range classes {
		class := builder.Manifests[schedulingv1.PriorityClass](t, file)[0]
		for _, pattern := range []string{"420-webhook-deployment", "500-controller", "600-init-action-server", "650-centre"} {
			files, err := filepath.Glob(filepath.Join(filepath.Dir(file), pattern+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				d := builder.Manifests[appsv1.Deployment](t, f)[0]
				if got := d.Spec.Template.Spec.PriorityClassName; got != class.Name {
					t.Errorf("%s: priorityClassName %q, want %q", f, got, class.Name)
				}
			}
		}
	}
}
