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

	"github.com/breakwater-dev/breakwater/permission/podbreaker"
	names "github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/test/provider"
	"github.com/breakwater-dev/breakwater/test/provider/setup"
)

// entry is what the record has for a pod.
func entry(t *testing.T, p *corev1.Pod) (string, bool) {
	t.Helper()
	cm, err := bed.Kube.CoreV1().ConfigMaps(setup.System).Get(t.Context(), names.BreakerName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	raw, ok := cm.Data[podbreaker.Key(p.Namespace, p.Name)]
	return raw, ok
}

// Wrong parameters: exactly three applications, each told; then the breaker is
// open until somebody who may resets it.
func TestDeniedIsAskedForThreeTimesThenNotUntilItIsReset(t *testing.T) {
	n := newNamespace(t, enabled)
	n.applied(t, podWith("wrong", "wrong", "Always", "sleep 1000"))
	p := n.get(t, "wrong")
	message := n.untilReason(t, "wrong", names.ReasonBreakerOpenDenied)
	for _, words := range []string{"permissions were denied 3 times; no new attempt begins until the breaker is reset", "there is no such module", "ask " + setup.Owner} {
		if !strings.Contains(message, words) {
			t.Errorf("%q is not in %q", words, message)
		}
	}
	n.untilEvent(t, "wrong", names.ReasonBreakerOpenDenied)
	attempts := func() int {
		all := applications(t, p)
		if len(all) != 1 {
			t.Fatalf("%d applications: %+v", len(all), all)
		}
		return all[0].Attempt
	}
	// The container is restarted meanwhile, and holds.
	restarts := n.get(t, "wrong").Status.InitContainerStatuses[0].RestartCount
	if got := attempts(); got != 3 || restarts < 2 {
		t.Errorf("%d applications after %d restarts", got, restarts)
	}
	if raw, ok := entry(t, p); !ok || !strings.Contains(raw, `"denied":3`) {
		t.Errorf("the record has %q", raw)
	}
	n.run(t, "create", "serviceaccount", "nobody")
	nobody, err := bed.TokenOf(t.Context(), n.name, "nobody", nil, "")
	if err != nil {
		t.Fatal(err)
	}
	if status, told := reset(t, p, nobody); status != http.StatusForbidden {
		t.Errorf("a reset by nobody: %d %s", status, told)
	}
	if status, _ := reset(t, p, ""); status != http.StatusUnauthorized {
		t.Errorf("a reset without a token: %d", status)
	}
	n.run(t, "create", "serviceaccount", "editor")
	n.run(t, "create", "rolebinding", "editor", "--clusterrole=edit", "--serviceaccount="+n.name+":editor")
	editor, err := bed.TokenOf(t.Context(), n.name, "editor", nil, "")
	if err != nil {
		t.Fatal(err)
	}
	until(t, soon, "roles are aggregated", func() error {
		if status, told := reset(t, p, editor); status != http.StatusOK {
			return fmt.Errorf("%d %s", status, told)
		}
		return nil
	})
	until(t, soon, "it is asked for again after the reset", func() error {
		if got := attempts(); got < 4 {
			return fmt.Errorf("%d attempts", got)
		}
		return nil
	})
	n.untilEvent(t, "wrong", names.ReasonBreakerClosed)
	n.run(t, "delete", "pod", "wrong", "--timeout=60s")
	until(t, 2*time.Minute, "the entry goes with the pod", func() error {
		if raw, ok := entry(t, p); ok {
			return fmt.Errorf("the record has %s", raw)
		}
		return nil
	})
}

// A provider that is down: three attempts, then one an interval; when it is back
// the pod recovers alone.
func TestAPodRecoversAloneWhenItsProviderIsBack(t *testing.T) {
	n := newNamespace(t, enabled)
	faults(t, provider.Faults{Status: http.StatusServiceUnavailable})
	n.applied(t, podWith("web", "web", "Always", "sleep 1000"))
	p := n.get(t, "web")
	if message := n.untilReason(t, "web", names.ReasonBreakerOpenFailed); !strings.Contains(message, "the next attempt begins at") {
		t.Error(message)
	}
	faults(t, provider.Faults{})
	n.run(t, "wait", "--for=condition=Ready", "pod/web", "--timeout=90s")
	if len(held(t, p)) != 1 {
		t.Errorf("held %v", held(t, p))
	}
	until(t, soon, "success leaves no entry", func() error {
		if raw, ok := entry(t, p); ok {
			return fmt.Errorf("the record has %s", raw)
		}
		return nil
	})
}

// With restartPolicy Never a pod is lost when its init container fails: only a
// denial does that.
func TestAPodThatIsNeverRestartedEndsOnlyWhenItIsDenied(t *testing.T) {
	n := newNamespace(t, enabled)
	n.applied(t, podWith("never", "wrong", "Never", "true"))
	until(t, soon, "the pod has failed", func() error {
		if p := n.get(t, "never"); p.Status.Phase != corev1.PodFailed {
			return fmt.Errorf("phase %s", p.Status.Phase)
		}
		return nil
	})
	p := n.get(t, "never")
	ended := p.Status.InitContainerStatuses[0].State.Terminated
	if ended == nil || ended.ExitCode != 1 || !strings.Contains(ended.Message, "there is no such module") {
		t.Errorf("its last words: %+v", ended)
	}
	if all := applications(t, p); len(all) != 1 || all[0].Attempt != 1 {
		t.Errorf("applications %+v", all)
	}
}
