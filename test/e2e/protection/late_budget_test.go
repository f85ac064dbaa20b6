//go:build e2e

package protection

import (
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// A budget created during deletions cannot restore pods. With condition
// Guarding it allows exactly the configured number.
func TestABudgetCreatedDuringDeletionsIsEnforcedOnceGuarding(t *testing.T) {
	const pods, least, spare, concurrency = 300, 100, 50, 10
	n, c := newNamespace(t), connect(t)
	createBarePods(t, c, n.name, pods)
	n.awaitReady(t, 5*time.Minute)
	names := runningPods(t, c, n.name)
	if len(names) != pods {
		t.Fatalf("%d pods exist", len(names))
	}
	// The rate leaves the budget enough time to become effective.
	pace, ctx := flowcontrol.NewTokenBucketRateLimiter(20, 1), t.Context()
	guards, ended, s := make(chan struct{}), make(chan struct{}), &stormResult{}
	var wg sync.WaitGroup
	jobs := make(chan string)
	for range concurrency {
		wg.Go(func() {
			for name := range jobs {
				s.count(name, c.kube.CoreV1().Pods(n.name).Delete(ctx, name, metav1.DeleteOptions{}))
			}
		})
	}
	go func() {
		defer close(ended)
		for i, name := range names {
			if i == pods-least-spare {
				// Wait for the budget, so that pods to protect remain.
				select {
				case <-guards:
				case <-ctx.Done():
				}
			}
			if err := pace.Wait(ctx); err != nil {
				break
			}
			jobs <- name
		}
		close(jobs)
		wg.Wait()
	}()
	n.await(t, "pods are being deleted", func() error {
		if left := len(runningPods(t, c, n.name)); left > pods-20 {
			return fmt.Errorf("%d pods remain", left)
		}
		return nil
	})
	n.apply(t, budgetManifest(fmt.Sprintf("minAvailable: %d", least)))
	n.awaitGuarding(t, 5*time.Minute)
	close(guards)
	guarding := len(runningPods(t, c, n.name))
	if guarding <= least {
		t.Fatalf("the budget became effective too late: %d pods remain", guarding)
	}
	t.Logf("%d pods existed at condition Guarding", guarding)
	select {
	case <-ended:
	case <-time.After(2 * time.Minute):
		t.Fatal("the deletions did not end")
	}
	if len(s.others) > 0 || len(s.unanswered) > 0 || s.passed+s.denied != pods {
		t.Errorf("%d passed, %d denied, %d unanswered, others %v", s.passed, s.denied, len(s.unanswered), s.others)
	}
	// All denied deletions are repeated at once and denied again.
	again := storm(t, c, n.name, runningPods(t, c, n.name), 50)
	awaitBudget(t, c, n.name, shortTimeout, func(b *v1alpha1.PodUnavailableBudget) error {
		if b.Status.CurrentAvailable != least || len(b.Status.DeletedPods) > 0 {
			return fmt.Errorf("%d pods are available, charged %v", b.Status.CurrentAvailable, b.Status.DeletedPods)
		}
		return nil
	})
	if left := len(runningPods(t, c, n.name)); left != least {
		t.Errorf("%d pods remain, want %d; %d repeated deletions passed", left, least, again.passed)
	}
}
