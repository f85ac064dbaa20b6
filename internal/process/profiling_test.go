package process

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

func TestProfilesAreServedIfTheConfigMapEnablesThem(t *testing.T) {
	for value, want := range map[string]bool{"enabled": true, "disabled": false, "": false} {
		folder := t.TempDir()
		if value != "" {
			if err := os.WriteFile(filepath.Join(folder, "runtime-profiling"), []byte(value), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if config, err := observabilityConfig(folder); err != nil || config.Runtime.ProfilingEnabled() != want {
			t.Errorf("runtime-profiling %q: %+v, %v", value, config, err)
		}
	}
	if config, err := observabilityConfig(filepath.Join(t.TempDir(), "missing")); err != nil || config.Runtime.ProfilingEnabled() {
		t.Errorf("without the ConfigMap: %+v, %v", config, err)
	}
	invalid := t.TempDir()
	if err := os.WriteFile(filepath.Join(invalid, "runtime-profiling"), []byte("yes"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := observabilityConfig(invalid); err == nil {
		t.Error("an invalid value is accepted")
	}
}

func TestProfilesAreServedUntilTheProcessEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- serveProfiles(ctx, listener) }()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+listener.Addr().String()+"/debug/pprof/heap", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	profile, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK || len(profile) == 0 {
		t.Errorf("status %d, %d bytes, %v", answer.StatusCode, len(profile), err)
	}
	if err := answer.Body.Close(); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
