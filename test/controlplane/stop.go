package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// StopPoint is a request at which a component is stopped.
type StopPoint struct {
	// Reached reports whether a request with this body is the one.
	Reached func(kind Request, body []byte) bool
	// Executed: the API server executes the request, and the component does not get the answer.
	// Otherwise the API server does not get the request.
	Executed bool
}

// StopAt stops a component of Run at a request. From then on, it sends nothing except what gives
// up its Leases. The returned function waits until its controllers have ended. The caller runs
// the component again, because others of the package need it.
func (p *ControlPlane) StopAt(t *testing.T, component string, point StopPoint) (awaitEnd func(context.Context) error) {
	t.Helper()
	x := p.processes[component]
	if x == nil {
		t.Fatalf("no component %s runs", component)
	}
	x.stopAt(&point)
	t.Cleanup(func() { x.stopAt(nil) })
	return func(ctx context.Context) error {
		select {
		case <-x.ended:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("%s has not ended: %w", component, ctx.Err())
		}
	}
}

// process is a component in this process.
type process struct {
	end context.CancelFunc
	// ended is closed when the controllers have ended and the Leases are given up.
	ended chan struct{}

	mu      sync.Mutex
	point   *StopPoint
	stopped bool
}

// errStopped is the answer to a request of a stopped component.
var errStopped = errors.New("the component is stopped")

func (x *process) stopAt(point *StopPoint) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.point = point
}

// guard stops the component at its point.
func (x *process) guard(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) { return x.send(r, next) })
	})
}

func (x *process) send(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	kind, _ := parse(r)
	x.mu.Lock()
	point, stopped := x.point, x.stopped
	x.mu.Unlock()
	if stopped && kind.Resource != "leases" {
		return nil, errStopped
	}
	if stopped || point == nil || !point.Reached(kind, bodyOf(r)) {
		return next.RoundTrip(r)
	}
	if point.Executed {
		response, err := next.RoundTrip(r)
		if err != nil || response.StatusCode >= http.StatusBadRequest {
			return response, err
		}
		_ = response.Body.Close()
	}
	x.mu.Lock()
	x.stopped = true
	x.mu.Unlock()
	x.end()
	return nil, errStopped
}

// bodyOf returns the body of a request, and leaves it to be sent.
func bodyOf(r *http.Request) []byte {
	if r.GetBody == nil {
		return nil
	}
	body, err := r.GetBody()
	if err != nil {
		return nil
	}
	raw, _ := io.ReadAll(body)
	return raw
}
