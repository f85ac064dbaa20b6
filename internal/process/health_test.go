package process

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/test/builder"
)

// The connection of a probe is unauthenticated. On the port with the limit of such connections, a flood
// would close it, and the kubelet would restart the process.
func TestProbesUseNoPortWithALimitOfConnections(t *testing.T) {
	for _, file := range []string{"../../config/core/650-openapi.yaml", "../../config/permission/600-init-action-server.yaml"} {
		c := builder.Manifests[appsv1.Deployment](t, file)[0].Spec.Template.Spec.Containers[0]
		for _, p := range []*corev1.Probe{c.ReadinessProbe, c.StartupProbe, c.LivenessProbe} {
			ofHealth := func(port corev1.ContainerPort) bool {
				return port.Name == p.HTTPGet.Port.String() && fmt.Sprint(":", port.ContainerPort) == healthAddress
			}
			if !slices.ContainsFunc(c.Ports, ofHealth) || p.HTTPGet.Path != HealthPath || p.HTTPGet.Scheme != "" {
				t.Errorf("%s: a probe of %v", file, p.HTTPGet)
			}
		}
	}
}

func TestAProcessWithALimitOfConnectionsServesHealthApart(t *testing.T) {
	for _, tc := range []struct {
		limit     int
		profiling bool
		want      int
	}{
		{0, false, 0}, {0, true, 1}, {1, false, 1}, {1, true, 2},
	} {
		if got := len(servers(tc.limit, tc.profiling)); got != tc.want {
			t.Errorf("limit %d, profiling %t: %d servers, want %d", tc.limit, tc.profiling, got, tc.want)
		}
	}
}

func TestHealthIsServedUntilTheProcessEnds(t *testing.T) {
	servesUntilEnd(t, healthServer(), HealthPath)
}

// servesUntilEnd verifies that a server serves a path with status 200 until its context ends, and returns the body.
func servesUntilEnd(t *testing.T, server *http.Server, path string) []byte {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- serveUntilEnd(ctx, server, listener) }()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+listener.Addr().String()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("status %d, %d bytes, %v", answer.StatusCode, len(body), err)
	}
	if err := answer.Body.Close(); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	return body
}
