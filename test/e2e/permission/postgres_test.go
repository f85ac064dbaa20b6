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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/test/database"
	"github.com/breakwater-dev/breakwater/test/e2e/disruption"
	"github.com/breakwater-dev/breakwater/test/provider"
	"github.com/breakwater-dev/breakwater/test/provider/setup"
)

// centreSays has the centre's Deployment changed, and waits until that runs.
func centreSays(ctx context.Context, commands ...[]string) error {
	for _, args := range append(commands, []string{"rollout", "restart", "deployment", "permission-centre"},
		[]string{"rollout", "status", "deployment", "permission-centre", "--timeout=180s"}) {
		if err := setup.Kubectl(ctx, append([]string{"-n", setup.System}, args...)...); err != nil {
			return err
		}
	}
	return bed.Register(ctx, setup.WebObjects()...)
}

// withPostgres gives the centre a PostgreSQL and two replicas, as its manifest
// says, and takes them away after the test.
func withPostgres(t *testing.T) {
	t.Helper()
	node, err := bed.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: "type!=kwok"})
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
		if err := centreSays(context.Background(), []string{"delete", "secret", "permission-centre-store", "--ignore-not-found"},
			[]string{"scale", "deployment", "permission-centre", "--replicas=1"}); err != nil {
			t.Error(err)
		}
	})
	if err := centreSays(t.Context(), []string{"create", "secret", "generic", "permission-centre-store", "--from-literal=store=" + database.PostgresAt(t, host)},
		[]string{"scale", "deployment", "permission-centre", "--replicas=2"}); err != nil {
		t.Fatal(err)
	}
}

// Two replicas of the centre share the queue; one is killed while fifty
// applications are on their way: each is granted, once.
func TestTwoReplicasOnPostgreSQLShareTheQueueAndOneIsKilled(t *testing.T) {
	withPostgres(t)
	faults(t, provider.Faults{Delay: 150})
	const pods = 50
	// Nobody reports the pods of this cluster: what no pod has would be taken back.
	const cluster = "shared"
	before := books(t)
	first := before.Calls
	request := func(n int) api.ApplicationRequest {
		namespace := "shared"
		if n >= pods {
			namespace = "earlier"
		}
		return api.ApplicationRequest{Cluster: cluster, Namespace: namespace, Pod: fmt.Sprintf("web-%d", n), PodUID: fmt.Sprintf("shared-%d-%d", first, n),
			PodIPs: []string{fmt.Sprintf("10.99.0.%d", n+1)}, ServiceAccount: "default", Set: "web"}
	}
	replicas, err := disruption.Component("permission-centre").Pods(t.Context(), bed.Kube)
	if err != nil || len(replicas) != 2 {
		t.Fatalf("%d replicas: %v", len(replicas), err)
	}
	ask := func(ctx context.Context, n int) error {
		status, raw, err := setup.Do(ctx, http.MethodPost, bed.Centre+"/v1/applications", bed.Token, request(n))
		if err == nil && status >= http.StatusBadRequest {
			err = fmt.Errorf("%d %s", status, raw)
		}
		return err
	}
	// A replica learns within two seconds of a provider that was registered at
	// the other: both are at work when each has done something of these.
	asked := pods
	until(t, soon, "both replicas call the provider", func() error {
		asked++
		if err := ask(t.Context(), asked-1); err != nil {
			return err
		}
		for i := range replicas {
			if calls(t, &replicas[i]) == 0 {
				return fmt.Errorf("%s has not, the queue is not shared", replicas[i].Name)
			}
		}
		return nil
	})
	before = books(t)
	var asking sync.WaitGroup
	for n := range pods {
		asking.Go(func() {
			// Again, as the init-action-server does: the replica may be the killed one.
			var last error
			if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, soon, true, func(ctx context.Context) (bool, error) {
				last = ask(ctx, n)
				return last == nil, nil
			}); err != nil {
				t.Errorf("application %d is not taken: %v", n, last)
			}
		})
	}
	until(t, soon, "some are granted", func() error {
		if n := books(t).Granted - before.Granted; n < 5 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	if now := books(t); now.Granted-before.Granted >= pods {
		t.Errorf("all are granted before one was killed")
	}
	how, err := disruption.Kill(t.Context(), bed.Kube, &replicas[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %s", replicas[0].Name, how)
	asking.Wait()
	query := url.Values{"cluster": {cluster}, "namespace": {"shared"}, "state": {string(api.Granted)}}
	until(t, 3*time.Minute, "all are granted", func() error {
		_, raw, err := setup.Do(t.Context(), http.MethodGet, bed.Centre+"/v1/applications?"+query.Encode(), bed.Token, nil)
		if err != nil {
			return err
		}
		var list api.ApplicationList
		if err := json.Unmarshal(raw, &list); err != nil || len(list.Items) != pods {
			return fmt.Errorf("%d of %d: %w", len(list.Items), pods, err)
		}
		return nil
	})
	after := books(t)
	for n := range pods {
		if held := after.OfPod(request(n).PodUID); len(held) != 1 {
			t.Errorf("pod %d: the provider has %v", n, held)
		}
	}
	if after.Duplicates != before.Duplicates {
		t.Errorf("%d grants were given twice", after.Duplicates-before.Duplicates)
	}
	for n := range asked {
		revoke := api.RevokeRequest{Cluster: cluster, PodUID: request(n).PodUID}
		if status, raw, err := setup.Do(t.Context(), http.MethodPost, bed.Centre+"/v1/applications/revoke", bed.Token, revoke); err != nil || status != http.StatusOK {
			t.Errorf("revoke: %d %s %v", status, raw, err)
		}
	}
	until(t, 3*time.Minute, "all are taken back", func() error {
		now, left := books(t), 0
		for n := range asked {
			left += len(now.OfPod(request(n).PodUID))
		}
		if left > 0 {
			return fmt.Errorf("%d are left", left)
		}
		return nil
	})
}

// calls counts the calls to providers in a replica's log.
func calls(t *testing.T, p *corev1.Pod) int {
	t.Helper()
	raw, err := bed.Kube.CoreV1().Pods(p.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(raw), `"provider called"`)
}
