package process_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/breakwater-dev/breakwater/internal/drain"
	"github.com/breakwater-dev/breakwater/internal/process"
	"github.com/breakwater-dev/breakwater/test/pipenetwork"
)

func TestATerminatingProcessCompletesItsRequests(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + listener.Addr().String()
	ctx, stop := context.WithCancel(t.Context())
	begun, backgroundEnded := make(chan struct{}), make(chan struct{})
	var handled, drained atomic.Bool
	program := process.Program{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			close(begun)
			<-ctx.Done() // stop is called during the request
			if r.Context().Err() != nil {
				t.Error("the request was canceled")
			}
			<-backgroundEnded
			handled.Store(true)
			_, _ = io.WriteString(w, "complete")
		}),
		Background: []func(context.Context) error{func(ctx context.Context) error {
			<-ctx.Done()
			close(backgroundEnded)
			return nil
		}},
		AfterDrain: func(context.Context) {
			drained.Store(true)
			if !handled.Load() {
				t.Error("AfterDrain ran before the end of a request")
			}
		},
	}
	ended, answered := make(chan error), make(chan string)
	go func() { ended <- process.Serve(ctx, listener, "test", program) }()
	go func() { answered <- get(t, url+"/") }()
	<-begun
	if got := get(t, url+process.HealthPath); got != "" {
		t.Errorf("health is %q", got)
	}
	stop()
	if got := <-answered; got != "complete" {
		t.Errorf("answer is %q", got)
	}
	<-backgroundEnded
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !drained.Load() {
		t.Error("AfterDrain did not run")
	}
}

func TestAFailingBackgroundFunctionEndsTheProcess(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	fails := func(context.Context) error { return io.ErrUnexpectedEOF }
	program := process.Program{Handler: http.NotFoundHandler(), Background: []func(context.Context) error{fails}}
	if err := process.Serve(t.Context(), listener, "test", program); err != io.ErrUnexpectedEOF { //nolint:errorlint // must not be wrapped
		t.Errorf("got %v", err)
	}
}

func get(t *testing.T, url string) string {
	response, err := http.Get(url) //nolint:gosec,noctx // our own address
	if err != nil {
		t.Error(err)
		return ""
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("%s: %d, %v", url, response.StatusCode, err)
	}
	return string(body)
}

func TestAFurtherUnauthenticatedConnectionClosesTheOldest(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- process.Serve(ctx, listener, "test", process.Program{Handler: http.NotFoundHandler(), MaxUnauthenticated: 2})
	}()
	var open []net.Conn
	for range 3 {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		open = append(open, c)
	}
	if _, err := open[0].Read(make([]byte, 1)); err != io.EOF { //nolint:errorlint // of a connection
		t.Errorf("the oldest connection: %v, want that the server closed it", err)
	}
	for i, c := range open[1:] {
		if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if answer, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 200") {
			t.Errorf("connection %d: %q, %v", i+1, answer, err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Clients learn only some time after SIGTERM that the process is no longer an endpoint of its Service.
func TestATerminatingEndpointOfAServiceAcceptsConnectionsUntilItIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network pipenetwork.Network
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		program := process.Program{
			Endpoint: true,
			Handler:  http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "complete") }),
		}
		listener := network.Listen()
		go func() { ended <- process.Serve(ctx, listener, "test", program) }()
		const pod, kubelet = "192.0.2.1", "192.0.2.2"
		withOpenConnection := network.Client(pod)
		withOpenConnection.Transport.(*http.Transport).DisableKeepAlives = false
		send := func(client *http.Client, userAgent string) (status int, closed bool) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://test/", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("User-Agent", userAgent)
			response, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = response.Body.Close() }()
			_, _ = io.Copy(io.Discard, response.Body)
			return response.StatusCode, response.Close
		}
		probe := func() int {
			status, _ := send(network.Client(kubelet), "kube-probe/1.34")
			return status
		}
		if got := probe(); got != http.StatusOK {
			t.Errorf("probe before termination: %d", got)
		}
		send(withOpenConnection, "")
		stop()
		synctest.Wait()
		if got := probe(); got != http.StatusServiceUnavailable {
			t.Errorf("probe after SIGTERM: %d", got)
		}
		for range 2 {
			time.Sleep(drain.QuietPeriod - time.Second)
			if got, _ := send(network.Client(pod), ""); got != http.StatusOK {
				t.Errorf("a request on a new connection: %d", got)
			}
		}
		if got, closed := send(withOpenConnection, ""); got != http.StatusOK || !closed {
			t.Errorf("a request on an open connection, which must then be closed: %d, closed %t", got, closed)
		}
		last := time.Now()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if took := time.Since(last); took < drain.QuietPeriod || took > drain.QuietPeriod+time.Second {
			t.Errorf("the process ended %s after the last request", took)
		}
	})
}

// A pod without a token chooses the Host of its requests.
func TestTheHostsOfRequestsAddNoSeries(t *testing.T) {
	reader, former := sdkmetric.NewManualReader(), otel.GetMeterProvider()
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	t.Cleanup(func() { otel.SetMeterProvider(former) })
	synctest.Test(t, func(t *testing.T) {
		var network pipenetwork.Network
		listener := network.Listen()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- process.Serve(ctx, listener, "test", process.Program{Handler: http.NotFoundHandler()})
		}()
		client := network.Client("192.0.2.1")
		for i := range 3 {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://test/", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = strconv.Itoa(i) + ".example"
			response, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	var metrics metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &metrics); err != nil {
		t.Fatal(err)
	}
	for _, scope := range metrics.ScopeMetrics {
		for _, m := range scope.Metrics {
			if strings.Contains(fmt.Sprintf("%+v", m), ".example") {
				t.Errorf("%s has the hosts", m.Name)
			}
		}
	}
}
