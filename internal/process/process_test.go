package process_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/breakwater-dev/breakwater/internal/process"
)

// runOutsideCluster sets the environment of a process outside a cluster, on any port.
func runOutsideCluster(t *testing.T) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "kubeconfig")
	const content = `{"apiVersion":"v1","kind":"Config","current-context":"c",
		"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
		"clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],"users":[{"name":"u","user":{}}]}`
	if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", config)
	t.Setenv("PORT", "0")
}

func TestAProcessServesWithoutTheAPIServer(t *testing.T) {
	runOutsideCluster(t) // with an unreachable API server
	ctx, stop := context.WithCancel(t.Context())
	err := process.Run(ctx, "test", func(_ context.Context, c process.Clients) (process.Program, error) {
		if c.Kube == nil || c.Change == nil || c.Config.UserAgent != "test" {
			t.Errorf("clients are %+v", c)
		}
		serving := func(context.Context) error { stop(); return nil }
		return process.Program{Handler: http.NotFoundHandler(), Background: []func(context.Context) error{serving}}, nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestTheRateLimitOfTheKubernetesClientsIsConfigured(t *testing.T) {
	runOutsideCluster(t)
	for _, tc := range []struct {
		qps, burst, replicas string
		want                 float32
		wantBurst            int
		wantReplicas         int
		fails                bool
	}{
		{"", "", "", 200, 400, 1, false}, {"50", "60", "3", 50, 60, 3, false},
		{"0", "", "", 0, 0, 0, true}, {"", "many", "", 0, 0, 0, true}, {"", "", "3x", 0, 0, 0, true},
	} {
		t.Setenv("KUBE_API_QPS", tc.qps)
		t.Setenv("KUBE_API_BURST", tc.burst)
		t.Setenv("RATE_LIMIT_REPLICAS", tc.replicas)
		c, err := process.NewClients(os.Getenv("KUBECONFIG"), "test")
		if (err != nil) != tc.fails || (err == nil && (c.Config.QPS != tc.want || c.Config.Burst != tc.wantBurst || c.RateLimitReplicas != tc.wantReplicas)) {
			t.Errorf("%q, %q and %q: %+v, %v", tc.qps, tc.burst, tc.replicas, c, err)
		}
	}
}

func TestAnErrorOfBuildEndsTheProcess(t *testing.T) {
	runOutsideCluster(t)
	broken := errors.New("broken")
	err := process.Run(t.Context(), "test", func(context.Context, process.Clients) (process.Program, error) {
		return process.Program{}, broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
