//go:build e2e

package permission

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
	"github.com/breakwater-dev/breakwater/permission/podbreaker"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/test/provider"
	"github.com/breakwater-dev/breakwater/test/provider/setup"
)

// breakerEntry returns the entry of a pod in the breaker ConfigMap.
func breakerEntry(t *testing.T, p *corev1.Pod) (string, bool) {
	t.Helper()
	cm, err := testCluster.Kube.CoreV1().ConfigMaps(setup.System).Get(t.Context(), podmeta.BreakerName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	raw, ok := cm.Data[podbreaker.Key(p.Namespace, p.Name)]
	return raw, ok
}

// With invalid parameters there are exactly three attempts. Then the breaker is open
// until an authorized user resets it.
func TestAfterThreeDenialsNoAttemptBeginsUntilAReset(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, enabled)
	n.mustApply(t, podWith("wrong", "wrong", "Always", "sleep 1000"))
	p := n.get(t, "wrong")
	message := n.waitForReason(t, "wrong", podmeta.ReasonBreakerOpenDenied)
	for _, text := range []string{"permissions were denied 3 times; no new attempt begins until the breaker is reset", "there is no such module", "ask " + setup.Owner} {
		if !strings.Contains(message, text) {
			t.Errorf("%q is not in %q", text, message)
		}
	}
	n.waitForEvent(t, "wrong", podmeta.ReasonBreakerOpenDenied)
	attempts := func() int {
		all := applications(t, p)
		if len(all) != 1 {
			t.Fatalf("%d applications: %+v", len(all), all)
		}
		return all[0].Attempt
	}
	// The container restarts and waits for the breaker. An attempt would begin at once, or after backoff-duration.
	eventually(t, 2*time.Minute, "the container waits after its third restart", func() error {
		s := n.get(t, "wrong").Status.InitContainerStatuses[0]
		if s.RestartCount < 3 || s.State.Running == nil || time.Since(s.State.Running.StartedAt.Time) < 10*time.Second {
			return fmt.Errorf("%d attempts, %d restarts, state %+v", attempts(), s.RestartCount, s.State)
		}
		return nil
	})
	if got := attempts(); got != 3 {
		t.Errorf("%d attempts, want 3", got)
	}
	if raw, ok := breakerEntry(t, p); !ok || !strings.Contains(raw, `"denied":3`) {
		t.Errorf("breaker entry %q", raw)
	}
	n.run(t, "create", "serviceaccount", "nobody")
	nobody, err := testCluster.TokenOf(t.Context(), n.name, "nobody", nil, protocol.TokenAudience)
	if err != nil {
		t.Fatal(err)
	}
	if status, body := resetBreaker(t, p, nobody); status != http.StatusForbidden {
		t.Errorf("reset by an unauthorized user: %d %s", status, body)
	}
	if status, _ := resetBreaker(t, p, ""); status != http.StatusUnauthorized {
		t.Errorf("reset without a token: %d", status)
	}
	n.run(t, "create", "serviceaccount", "editor")
	n.run(t, "create", "rolebinding", "editor", "--clusterrole=edit", "--serviceaccount="+n.name+":editor")
	editor, err := testCluster.TokenOf(t.Context(), n.name, "editor", nil, protocol.TokenAudience)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, shortTimeout, "roles are aggregated", func() error {
		if status, body := resetBreaker(t, p, editor); status != http.StatusOK {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	})
	eventually(t, shortTimeout, "a new attempt begins after the reset", func() error {
		if got := attempts(); got < 4 {
			return fmt.Errorf("%d attempts", got)
		}
		return nil
	})
	n.waitForEvent(t, "wrong", podmeta.ReasonBreakerClosed)
	n.run(t, "delete", "pod", "wrong", "--timeout=60s")
	eventually(t, 2*time.Minute, "the entry is removed after the deletion of the pod", func() error {
		if raw, ok := breakerEntry(t, p); ok {
			return fmt.Errorf("breaker entry %s", raw)
		}
		return nil
	})
}

// While the provider is down there are three attempts, then one per interval. The pod
// recovers when the provider is up.
func TestAPodRecoversWithoutAResetAfterAnOutageOfItsProvider(t *testing.T) {
	n := newNamespace(t, enabled)
	// Revocations for the pods of earlier tests fail during the outage, too. With another provider, they
	// do not open the breaker that the centre has for this one.
	const outage = "outage"
	own := setup.Provider()
	own.Name = outage
	register(t, own, outage, outage)
	setFaults(t, provider.Faults{Status: http.StatusServiceUnavailable})
	n.mustApply(t, podWith("web", outage, "Always", "sleep 1000"))
	p := n.get(t, "web")
	if message := n.waitForReason(t, "web", podmeta.ReasonBreakerOpenFailed); !strings.Contains(message, "the next attempt begins at") {
		t.Error(message)
	}
	setFaults(t, provider.Faults{})
	n.run(t, "wait", "--for=condition=Ready", "pod/web", "--timeout=90s")
	if len(grantsOf(t, p)) != 1 {
		t.Errorf("grants %v", grantsOf(t, p))
	}
	eventually(t, shortTimeout, "the entry is removed after success", func() error {
		if raw, ok := breakerEntry(t, p); ok {
			return fmt.Errorf("breaker entry %s", raw)
		}
		return nil
	})
}

// With restartPolicy Never a pod fails when its init container fails, so only a denial
// may make it fail.
func TestAPodWithRestartPolicyNeverFailsOnlyWhenItIsDenied(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, enabled)
	n.mustApply(t, podWith("never", "wrong", "Never", "true"))
	eventually(t, shortTimeout, "the pod has failed", func() error {
		if p := n.get(t, "never"); p.Status.Phase != corev1.PodFailed {
			return fmt.Errorf("phase %s", p.Status.Phase)
		}
		return nil
	})
	p := n.get(t, "never")
	ended := p.Status.InitContainerStatuses[0].State.Terminated
	if ended == nil || ended.ExitCode != 1 || !strings.Contains(ended.Message, "there is no such module") {
		t.Errorf("termination state %+v", ended)
	}
	if all := applications(t, p); len(all) != 1 || all[0].Attempt != 1 {
		t.Errorf("applications %+v", all)
	}
}
