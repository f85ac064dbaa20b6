//go:build controlplane

package change

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

func TestAReleaseWhosePodsAreRefusedSaysWhy(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.deny(t, corev1.Resource("pods"), "CREATE", "false", "run", "probe", "--image=busybox")
	w := f.create(t, workload.Deployment, builder.Deployment("web", replicas, builder.Simulated))
	w.awaitCondition(t, apis.ConditionSucceeded, v1alpha1.ReasonRolloutStuck, "Deployment reports ReplicaFailure: pods")
	w.awaitCondition(t, apis.ConditionSucceeded, v1alpha1.ReasonRolloutStuck, "denied by the test")
	w.awaitEvent(t, v1alpha1.ReasonRolloutStuck)
}
