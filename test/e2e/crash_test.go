//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/test/e2e/faultinjection"
)

// kill kills each running pod of a target. It waits until a pod runs, because a
// function may be scaled to zero.
func (e *environment) kill(t *testing.T, p target) {
	t.Helper()
	await(t, rolloutTimeout, "a pod of "+p.String()+" runs and is killed", func(ctx context.Context) error {
		pods, err := e.pods(ctx, p)
		if err != nil {
			return err
		}
		killed := 0
		for i := range pods {
			if pods[i].Status.Phase != corev1.PodRunning {
				continue
			}
			how, err := faultinjection.Kill(ctx, e.kube, &pods[i])
			if err != nil {
				return err
			}
			killed++
			t.Logf("%s %s: %s", time.Now().Format("15:04:05.000"), pods[i].Name, how)
		}
		if killed == 0 {
			return fmt.Errorf("%d pods, none running", len(pods))
		}
		return nil
	})
}
