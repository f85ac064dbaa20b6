package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/breakwater-dev/breakwater/test/pipenetwork"
)

// The clients of a process limit the time of a request. That of a watch is the time until the API server ends it.
func TestTheWatchesOfAStandaloneSenderOutliveTheTimeoutOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cm := configMap("default")
		cm.APIVersion, cm.Kind = "v1", "ConfigMap"
		server := watchServer{objects: map[string]any{"configmaps": cm, "brokers": broker("default", "")}, watches: map[string]int{}, end: make(chan struct{})}
		var network pipenetwork.Network
		api := &http.Server{Handler: &server} //nolint:gosec // of a test
		listener := network.Listen()
		go func() { _ = api.Serve(listener) }()
		ctx, stop := context.WithCancel(t.Context())
		config := &rest.Config{Host: "http://api", Transport: network.Client("192.0.2.1").Transport, Timeout: 10 * time.Second}
		sender, follow, err := NewStandaloneSender(ctx, config)
		if err != nil {
			t.Fatal(err)
		}
		var running sync.WaitGroup
		for _, run := range []func(context.Context) error{follow, sender.Run} {
			running.Go(func() {
				if err := run(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(2 * config.Timeout)
		synctest.Wait()
		if want := map[string]int{"configmaps": 1, "brokers": 1}; !maps.Equal(server.watches, want) {
			t.Errorf("watches %v, want %v", server.watches, want)
		}
		close(server.end) // Knative's informer leaks a goroutine if its context ends a watch
		synctest.Wait()
		stop()
		running.Wait()
		_ = api.Close()
	})
}

// watchServer is an API server with one object of each resource, which never changes.
type watchServer struct {
	objects map[string]any
	// watches is the number of watches by resource.
	mu      sync.Mutex
	watches map[string]int
	// end ends the watches.
	end chan struct{}
}

func (s *watchServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	resource := path.Base(r.URL.Path)
	object, err := json.Marshal(s.objects[resource])
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	var meta struct{ APIVersion, Kind string }
	_ = json.Unmarshal(object, &meta)
	w.Header().Set("Content-Type", "application/json")
	if !r.URL.Query().Has("watch") {
		_, _ = fmt.Fprintf(w, `{"apiVersion":%q,"kind":"%sList","metadata":{"resourceVersion":"1"},"items":[%s]}`, meta.APIVersion, meta.Kind, object)
		return
	}
	s.mu.Lock()
	s.watches[resource]++
	s.mu.Unlock()
	if r.URL.Query().Has("sendInitialEvents") {
		_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":%s}
{"type":"BOOKMARK","object":{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}}
`, object, meta.APIVersion, meta.Kind)
	}
	_ = http.NewResponseController(w).Flush()
	select {
	case <-s.end:
	case <-r.Context().Done():
	}
}
