package replicas

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
)

func TestRequestsAtOnceHaveAConnectionEach(t *testing.T) {
	const n = 8
	var connections atomic.Int32
	var arrived sync.WaitGroup
	arrived.Add(n)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived.Done()
		arrived.Wait()
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	err := Reach(n, func() error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		if err != nil {
			return err
		}
		response, err := server.Client().Do(request)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, response.Body)
		return errors.Join(err, response.Body.Close())
	})
	if err != nil || connections.Load() < n {
		t.Errorf("%d connections, %v", connections.Load(), err)
	}
}

func TestAnErrorOfARequestIsReturned(t *testing.T) {
	var requests atomic.Int32
	wrong := errors.New("wrong")
	err := Reach(3, func() error {
		if requests.Add(1) == 2 {
			return wrong
		}
		return nil
	})
	if !errors.Is(err, wrong) || requests.Load() != 3 {
		t.Errorf("%d requests, %v", requests.Load(), err)
	}
}
