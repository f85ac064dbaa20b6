package process

import (
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
	if profile := servesUntilEnd(t, profilingServer(), "/debug/pprof/heap"); len(profile) == 0 {
		t.Error("the profile is empty")
	}
}
