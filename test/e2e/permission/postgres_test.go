//go:build e2e

package permission

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/test/database"
	"github.com/breakwater-dev/breakwater/test/e2e/faultinjection"
	"github.com/breakwater-dev/breakwater/test/provider"
	"github.com/breakwater-dev/breakwater/test/provider/setup"
)

// changeCentre runs kubectl commands, restarts the centre and waits for the rollout.
func changeCentre(ctx context.Context, commands ...[]string) error {
	for _, args := range append(commands, []string{"rollout", "restart", "deployment", "permission-centre"},
		[]string{"rollout", "status", "deployment", "permission-centre", "--timeout=180s"}) {
		if err := setup.Kubectl(ctx, append([]string{"-n", setup.System}, args...)...); err != nil {
			return err
		}
	}
	return testCluster.Register(ctx, setup.WebObjects()...)
}

// withPostgres configures the centre with PostgreSQL and two replicas, as its manifest
// documents, and restores it after the test.
func withPostgres(t *testing.T) {
	t.Helper()
	node, err := testCluster.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: "type!=kwok"})
	if err != nil || len(node.Items) != 1 {
		t.Fatalf("%d nodes: %v", len(node.Items), err)
	}
	var host string
	for _, a := range node.Items[0].Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			host = a.Address
		}
	}
	t.Cleanup(func() {
		if err := changeCentre(context.Background(), []string{"delete", "secret", "permission-centre-store", "--ignore-not-found"},
			[]string{"scale", "deployment", "permission-centre", "--replicas=1"}); err != nil {
			t.Error(err)
		}
	})
	if err := changeCentre(t.Context(), []string{"create", "secret", "generic", "permission-centre-store", "--from-literal=store=" + database.PostgresAt(t, host)},
		[]string{"scale", "deployment", "permission-centre", "--replicas=2"}); err != nil {
		t.Fatal(err)
	}
}

// Two replicas of the centre share the queue. One is killed while 200 applications are
// pending. Each is granted once.
func TestTwoReplicasOnPostgreSQLShareTheQueueAndOneIsKilled(t *testing.T) {
	withPostgres(t)
	setFaults(t, provider.Faults{Delay: 150})
	// More applications than both replicas together call the provider for at a time.
	const pods = 200
	// The pods of this cluster are not reported, so their grants are not revoked.
	const cluster = "shared"
	before := providerRecords(t)
	first := before.Calls
	request := func(n int) api.ApplicationRequest {
		namespace := "shared"
		if n >= pods {
			namespace = "earlier"
		}
		return api.ApplicationRequest{Cluster: cluster, Namespace: namespace, Pod: fmt.Sprintf("web-%d", n), PodUID: fmt.Sprintf("shared-%d-%d", first, n),
			PodIPs: []string{fmt.Sprintf("10.99.%d.%d", n/250, n%250+1)}, ServiceAccount: "default", Set: "web"}
	}
	replicas, err := faultinjection.Component("permission-centre").Pods(t.Context(), testCluster.Kube)
	if err != nil || len(replicas) != 2 {
		t.Fatalf("%d replicas: %v", len(replicas), err)
	}
	ask := func(ctx context.Context, n int) error {
		status, raw, err := testCluster.Do(ctx, http.MethodPost, testCluster.Centre+"/v1/applications", testCluster.Token, request(n))
		if err == nil && status >= http.StatusBadRequest {
			err = fmt.Errorf("%d %s", status, raw)
		}
		return err
	}
	// Both replicas work when each has called the provider. A replica calls it at once for
	// each request that it receives; concurrent requests use separate connections.
	requested := pods
	eventually(t, shortTimeout, "both replicas call the provider", func() error {
		var asking errgroup.Group
		for range 8 {
			n := requested
			requested++
			asking.Go(func() error { return ask(t.Context(), n) })
		}
		if err := asking.Wait(); err != nil {
			return err
		}
		for i := range replicas {
			if calls(t, &replicas[i]) == 0 {
				return fmt.Errorf("%s made no call", replicas[i].Name)
			}
		}
		return nil
	})
	// The calls last several times this delay, so the kill comes before their end. It is below the
	// provider's timeout of 10 s.
	setFaults(t, provider.Faults{Delay: 5000})
	before = providerRecords(t)
	var asking sync.WaitGroup
	for n := range pods {
		asking.Go(func() {
			// Retry as the init-action-server does, because the replica may be killed.
			var last error
			if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, shortTimeout, true, func(ctx context.Context) (bool, error) {
				last = ask(ctx, n)
				return last == nil, nil
			}); err != nil {
				t.Errorf("application %d is not accepted: %v", n, last)
			}
		})
	}
	eventually(t, shortTimeout, "some applications are granted", func() error {
		if n := providerRecords(t).Granted - before.Granted; n < 5 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	if now := providerRecords(t); now.Granted-before.Granted >= pods {
		t.Errorf("all applications are granted before the kill")
	}
	how, err := faultinjection.Kill(t.Context(), testCluster.Kube, &replicas[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %s", replicas[0].Name, how)
	setFaults(t, provider.Faults{Delay: 1000})
	asking.Wait()
	query := url.Values{"cluster": {cluster}, "namespace": {"shared"}, "state": {string(api.Granted)}, "limit": {"500"}}
	eventually(t, 3*time.Minute, "all applications are granted", func() error {
		_, raw, err := testCluster.Do(t.Context(), http.MethodGet, testCluster.Centre+"/v1/applications?"+query.Encode(), testCluster.Token, nil)
		if err != nil {
			return err
		}
		var list api.ApplicationList
		if err := json.Unmarshal(raw, &list); err != nil || len(list.Items) != pods {
			return fmt.Errorf("%d of %d: %w", len(list.Items), pods, err)
		}
		return nil
	})
	after := providerRecords(t)
	for n := range pods {
		if held := after.OfPod(request(n).PodUID); len(held) != 1 {
			t.Errorf("pod %d: the provider has grants %v", n, held)
		}
	}
	if after.Duplicates != before.Duplicates {
		t.Errorf("%d duplicate grants", after.Duplicates-before.Duplicates)
	}
	for n := range requested {
		revoke := api.RevokeRequest{Cluster: cluster, PodUID: request(n).PodUID}
		if status, raw, err := testCluster.Do(t.Context(), http.MethodPost, testCluster.Centre+"/v1/applications/revoke", testCluster.Token, revoke); err != nil || status != http.StatusOK {
			t.Errorf("revoke: %d %s %v", status, raw, err)
		}
	}
	eventually(t, 3*time.Minute, "all grants are revoked", func() error {
		now, left := providerRecords(t), 0
		for n := range requested {
			left += len(now.OfPod(request(n).PodUID))
		}
		if left > 0 {
			return fmt.Errorf("%d grants are left", left)
		}
		return nil
	})
}

// calls counts the calls to providers in a replica's log.
func calls(t *testing.T, p *corev1.Pod) int {
	t.Helper()
	raw, err := testCluster.Kube.CoreV1().Pods(p.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(raw), `"provider called"`)
}
