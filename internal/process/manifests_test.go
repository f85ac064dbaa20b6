package process

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/breakwater-dev/breakwater/internal/drain"
	"github.com/breakwater-dev/breakwater/test/builder"
)

func TestAPodIsNotKilledWhileItDrains(t *testing.T) {
	const request = 20 * time.Second // of both processes
	for _, file := range []string{"core/650-openapi.yaml", "permission/600-init-action-server.yaml"} {
		spec := builder.Manifests[appsv1.Deployment](t, "../../config/"+file)[0].Spec.Template.Spec
		grace, want := time.Duration(*spec.TerminationGracePeriodSeconds)*time.Second, drain.Timeout+request+flushTimeout
		if grace <= want {
			t.Errorf("%s: the pod is killed after %s, want more than %s", file, grace, want)
		}
	}
}
