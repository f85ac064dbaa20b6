package centre

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/internal/drain"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// The centre stops listening at SIGTERM. Clients learn only some time later that it is no longer an endpoint of its Service.
func TestATerminatingReplicaAcceptsConnectionsUntilItsClientsHaveLearnedOfIt(t *testing.T) {
	const path = "../../config/permission/650-centre.yaml"
	container := builder.Manifests[appsv1.Deployment](t, path)[0].Spec.Template.Spec.Containers[0]
	if container.Lifecycle == nil || container.Lifecycle.PreStop == nil || container.Lifecycle.PreStop.Sleep == nil {
		t.Fatal("a terminating replica refuses connections at once")
	}
	wait := time.Duration(container.Lifecycle.PreStop.Sleep.Seconds) * time.Second
	if wait < drain.QuietPeriod {
		t.Errorf("a terminating replica refuses connections after %s, want %s", wait, drain.QuietPeriod)
	}
	i := slices.IndexFunc(container.Env, func(e corev1.EnvVar) bool { return e.Name == "DRAIN_TIMEOUT" })
	if i < 0 {
		t.Fatal("no DRAIN_TIMEOUT")
	}
	timeout, err := time.ParseDuration(container.Env[i].Value)
	if err != nil {
		t.Fatal(err)
	}
	builder.CheckGracePeriod(t, path, wait+timeout)
}
