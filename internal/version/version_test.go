package version

import (
	"bytes"
	"runtime"
	"runtime/debug"
	"testing"
)

func TestTheVersionOfAReleaseReplacesThatOfTheGoCommand(t *testing.T) {
	recorded := &debug.BuildInfo{
		Main:     debug.Module{Version: "v0.0.0-20261124120000-8c44ad1"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "8c44ad1"}},
	}
	for name, tc := range map[string]struct {
		version, revision string
		build             *debug.BuildInfo
		want              Info
	}{
		"a release":                    {"v0.1.0", "1b2c", recorded, Info{Version: "v0.1.0", Revision: "1b2c"}},
		"a build of a repository":      {"", "", recorded, Info{Version: "v0.0.0-20261124120000-8c44ad1", Revision: "8c44ad1"}},
		"a build outside a repository": {"", "", &debug.BuildInfo{}, Info{Version: "(devel)"}},
		"no information":               {"", "", nil, Info{Version: "(devel)"}},
	} {
		tc.want.Go = runtime.Version()
		if got := describe(tc.version, tc.revision, tc.build); got != tc.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tc.want)
		}
	}
}

func TestAProgramIsAskedForItsVersionByItsOnlyArgument(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want bool
	}{
		{[]string{"-version"}, true}, {[]string{"--version"}, true}, {[]string{"version"}, true},
		{nil, false}, {[]string{"export"}, false}, {[]string{"-version", "-kubeconfig=x"}, false},
	} {
		if got := asked(tc.args); got != tc.want {
			t.Errorf("%q: got %v", tc.args, got)
		}
	}
}

func TestTheVersionIsOneLine(t *testing.T) {
	for want, info := range map[string]Info{
		"breakwater v0.1.0, commit 1b2c, go1.26.3\n": {Version: "v0.1.0", Revision: "1b2c", Go: "go1.26.3"},
		"breakwater (devel), go1.26.3\n":             {Version: "(devel)", Go: "go1.26.3"},
	} {
		var out bytes.Buffer
		write(&out, info)
		if out.String() != want {
			t.Errorf("got %q, want %q", out.String(), want)
		}
	}
}
