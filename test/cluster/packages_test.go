// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestOnlyMissingPackagesAreInstalled(t *testing.T) {
	got := missingPackages(func(path string) bool { return path != "/usr/sbin/runc" && path != "/bin/busybox" })
	if !slices.Equal(got, []string{"runc", "busybox-static"}) {
		t.Error(got)
	}
}

func TestTheIndexIsFetchedWhenAptDoesNotKnowAPackage(t *testing.T) {
	for tc, c := range map[string]struct {
		script string
		want   string
	}{
		"known":   {"", "install"},
		"unknown": {`[ "$1" = update ] && touch "$0.index"; [ -e "$0.index" ]`, "install update install"},
	} {
		calls := filepath.Join(t.TempDir(), "calls")
		fakeCommand(t, "apt-get", `echo "$1" >> `+calls+"\n"+c.script)
		if err := install(context.Background(), []string{"runc"}); err != nil {
			t.Errorf("%s: %v", tc, err)
		}
		data, _ := os.ReadFile(calls)
		if got := strings.Join(strings.Fields(string(data)), " "); got != c.want {
			t.Errorf("%s: got %q, want %q", tc, got, c.want)
		}
	}
}
