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

// A budget that comes while pods are being deleted cannot bring them back. But from
// when it says that it guards, it lets through exactly what it says.
func TestABudgetCreatedDuringDeletionsIsEnforcedOnceGuarding(t *testing.T) {
	const pods, least, spare, together = 300, 100, 50, 10
	n, c := newNamespace(t), connect(t)
	bare(t, c, n.name, pods)
	n.run(t, "wait", "--for=condition=Ready", "pods", "-l", "app=web", "--timeout=120s")
	names := living(t, c, n.name)
	if len(names) != pods {
		t.Fatalf("%d pods are there", len(names))
	}
	// As fast as leaves the budget the time to come into force.
	pace, ctx := flowcontrol.NewTokenBucketRateLimiter(20, 1), t.Context()
	guards, ended, s := make(chan struct{}), make(chan struct{}), &tally{}
	var wg sync.WaitGroup
	jobs := make(chan string)
	for range together {
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
				// However long the budget takes, something is left to be guarded.
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
	n.until(t, "the deletion is under way", func() error {
		if left := len(living(t, c, n.name)); left > pods-20 {
			return fmt.Errorf("%d pods are left", left)
		}
		return nil
	})
	n.apply(t, budgetOf(fmt.Sprintf("minAvailable: %d", least)))
	n.run(t, "wait", "--for=condition=Guarding", "pub/web", "--timeout=60s")
	close(guards)
	guarding := len(living(t, c, n.name))
	if guarding <= least {
		t.Fatalf("the budget came too late to show anything: %d pods are left", guarding)
	}
	t.Logf("%d pods were left when it guarded", guarding)
	select {
	case <-ended:
	case <-time.After(2 * time.Minute):
		t.Fatal("the deletion does not end")
	}
	if len(s.others) > 0 || len(s.outages) > 0 || s.passed+s.refused != pods {
		t.Errorf("passed %d, refused %d, no answer %d, others %v", s.passed, s.refused, len(s.outages), s.others)
	}
	// What was refused is asked for again, all at once: there is no room.
	again := storm(t, c, n.name, living(t, c, n.name), 50)
	untilBudget(t, c, n.name, soon, func(b *v1alpha1.PodUnavailableBudget) error {
		if b.Status.CurrentAvailable != least || len(b.Status.DeletedPods) > 0 {
			return fmt.Errorf("%d are available, charged %v", b.Status.CurrentAvailable, b.Status.DeletedPods)
		}
		return nil
	})
	if left := len(living(t, c, n.name)); left != least {
		t.Errorf("%d are left, of which %d have to be; %d passed again", left, least, again.passed)
	}
}
