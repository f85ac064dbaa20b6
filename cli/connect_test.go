package cli

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/breakwater-dev/breakwater/altershield/setup"
	"github.com/breakwater-dev/breakwater/internal/settings"
)

// connected returns a cluster that uses a server; keys and values follow.
func connected(keys ...string) connectInput {
	in := connectInput{
		config: &corev1.ConfigMap{Data: map[string]string{"_example": "x"}}, secret: &corev1.Secret{},
		settings: settings.Default(), callback: "http://callback.example.com", cluster: "0c1f-6a8f",
	}
	for i := 0; i < len(keys); i += 2 {
		in.config.Data[keys[i]] = keys[i+1]
	}
	return in
}

func TestConnectTakesSettingsOfFlagsOrOfTheClusterOrTheDefaults(t *testing.T) {
	const server = "https://server"
	for name, tc := range map[string]struct {
		flags connectFlags
		in    connectInput
		want  map[string]string
		err   string
	}{
		"defaults": {connectFlags{server: server + "/"}, connected(), map[string]string{
			"base-url": server, "platform": "breakwater", "tenant-code": "default", "cluster-name": "0c1f-6a8f", "change-scene-key": "breakwater.0c1f_6a8f.rollout",
		}, ""},
		"flags": {
			connectFlags{server: server, platform: "p", tenant: "t", cluster: "hangzhou-1", scene: "s", releaseCheck: true, releaseScene: "r"}, connected(),
			map[string]string{"base-url": server, "platform": "p", "tenant-code": "t", "cluster-name": "hangzhou-1", "change-scene-key": "s", "release-check-scene-key": "r"}, "",
		},
		"the cluster": {
			connectFlags{server: server, releaseCheck: true},
			connected("base-url", server, "platform", "p", "tenant-code", "t", "cluster-name", "c", "change-scene-key", "s", "release-check-scene-key", "r"),
			map[string]string{"base-url": server, "platform": "p", "tenant-code": "t", "cluster-name": "c", "change-scene-key": "s", "release-check-scene-key": "r"}, "",
		},
		"no release check": {connectFlags{server: server}, connected("release-check-scene-key", "r"), map[string]string{
			"base-url": server, "platform": "breakwater", "tenant-code": "default", "cluster-name": "0c1f-6a8f", "change-scene-key": "breakwater.0c1f_6a8f.rollout",
		}, ""},
		"another server":   {connectFlags{server: server}, connected("base-url", "https://user:secret@other"), nil, `key base-url of ConfigMap config-altershield is "https://user:xxxxx@other"`},
		"another platform": {connectFlags{server: server, platform: "p"}, connected("platform", "q"), nil, `key platform of ConfigMap config-altershield is "q", and would be "p"`},
		"a replacement": {connectFlags{server: server, platform: "p", replace: true}, connected("base-url", "https://other", "platform", "q"), map[string]string{
			"base-url": server, "platform": "p", "tenant-code": "default", "cluster-name": "0c1f-6a8f", "change-scene-key": "breakwater.0c1f_6a8f.rollout",
		}, ""},
		"a dash in a scene":             {connectFlags{server: server, scene: "a-b"}, connected(), nil, `--scene is "a-b"`},
		"a dot at the end of a scene":   {connectFlags{server: server, scene: "a."}, connected(), nil, `--scene is "a."`},
		"a digit at the start":          {connectFlags{server: server, scene: "1a"}, connected(), nil, `--scene is "1a"`},
		"a long scene":                  {connectFlags{server: server, releaseCheck: true, releaseScene: strings.Repeat("x", 201)}, connected(), nil, "--release-check-scene has 201 bytes"},
		"one scene for both":            {connectFlags{server: server, scene: "s", releaseCheck: true, releaseScene: "s"}, connected(), nil, "--release-check-scene is the scene of rollouts"},
		"a callback with a path":        {connectFlags{server: server, callback: "https://callback/x"}, connected(), nil, "--callback has the path /x"},
		"a callback without a protocol": {connectFlags{server: server, callback: "callback.example.com"}, connected(), nil, "--callback is no http or https URL"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.flags.connection(tc.in)
			if (err == nil) != (tc.err == "") || err != nil && !strings.HasPrefix(err.Error(), tc.err) {
				t.Fatalf("error is %v, want %q", err, tc.err)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tc.want, got.values); diff != "" {
				t.Error("(-want +got)", diff)
			}
			var keys []string
			for _, s := range got.desired.Scenes {
				keys = append(keys, s.Key)
			}
			if want := slices.DeleteFunc([]string{tc.want["change-scene-key"], tc.want["release-check-scene-key"]}, func(s string) bool { return s == "" }); !slices.Equal(keys, want) {
				t.Errorf("scenes are %q, want %q", keys, want)
			}
		})
	}
}

func TestTheConfigurationOfConnectIsCheckedAsTheFunctionsDo(t *testing.T) {
	for name, tc := range map[string]struct {
		flags connectFlags
		in    connectInput
		err   string
	}{
		"valid":          {connectFlags{}, connected(), ""},
		"a platform":     {connectFlags{platform: strings.Repeat("p", 33)}, connected(), "config-altershield platform: has 33 bytes"},
		"an older key":   {connectFlags{}, connected("qps", "many"), "config-altershield qps: is"},
		"a mistyped key": {connectFlags{}, connected("base-ulr", "x"), "config-altershield base-ulr: is not a known key"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.flags.server = "https://server"
			s, err := tc.flags.connection(tc.in)
			if err == nil {
				_, err = s.config(tc.in, tokenDecision{generate: true})
			}
			if (err == nil) != (tc.err == "") || err != nil && !strings.HasPrefix(err.Error(), tc.err) {
				t.Errorf("error is %v, want %q", err, tc.err)
			}
		})
	}
}

func TestTheTokenOfConnectIsGivenStoredOrGenerated(t *testing.T) {
	long := strings.Repeat("x", 33)
	for name, tc := range map[string]struct {
		given, stored   string
		exists, replace bool
		want            tokenDecision
		err             string
	}{
		"a new platform":                  {"", "", false, false, tokenDecision{generate: true, store: true}, ""},
		"a platform of others":            {"", "", true, false, tokenDecision{}, "--token-file is missing: platform p exists"},
		"a stored token, a new platform":  {"", "a\n", false, false, tokenDecision{value: "a"}, ""},
		"a stored token":                  {"", "a", true, false, tokenDecision{value: "a"}, ""},
		"a given token":                   {"a", "", true, false, tokenDecision{value: "a", store: true}, ""},
		"a given token that is stored":    {"a", "a", true, false, tokenDecision{value: "a"}, ""},
		"another token":                   {"b", "a", true, false, tokenDecision{}, "--token-file has another token than Secret altershield-token"},
		"a replaced token":                {"b", "a", true, true, tokenDecision{value: "b", previous: "a", store: true}, ""},
		"a given token that is too long":  {long, "", false, false, tokenDecision{}, "--token-file has 33 bytes"},
		"a stored token that is too long": {"", long, false, false, tokenDecision{}, "key token of Secret altershield-token has 33 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			in := connected()
			in.given, in.secret.Data = tc.given, map[string][]byte{"token": []byte(tc.stored)}
			got, err := decideToken(in, "p", tc.exists, tc.replace)
			if (err == nil) != (tc.err == "") || err != nil && !strings.HasPrefix(err.Error(), tc.err) {
				t.Errorf("error is %v, want %q", err, tc.err)
			}
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestTheLimitsOfConnectAreShorterThanBreakwaterWaits(t *testing.T) {
	for name, tc := range map[string]struct {
		flags connectFlags
		kept  time.Duration
		err   string
	}{
		"the default":         {connectFlags{}, 0, ""},
		"a limit":             {connectFlags{pre: 119 * time.Second}, 0, ""},
		"a PRE limit":         {connectFlags{pre: 2 * time.Minute}, 0, "--pre-check-timeout is 2m0s at the server, and Breakwater waits 2m0s"},
		"a POST limit":        {connectFlags{post: time.Hour}, 0, "--post-check-timeout is 1h0m0s"},
		"a limit that stays":  {connectFlags{}, time.Hour, "--pre-check-timeout is 1h0m0s"},
		"a shorter one stays": {connectFlags{}, time.Second, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tc.flags.server = "https://server"
			s, err := tc.flags.connection(connected())
			if err != nil {
				t.Fatal(err)
			}
			observed := setup.Observed{Scenes: map[string]*setup.ObservedScene{}}
			if tc.kept > 0 {
				observed.Scenes[s.desired.Scenes[0].Key] = &setup.ObservedScene{Released: true, Steps: []setup.SceneStep{{Pre: tc.kept, Post: tc.kept}}}
			}
			if err := s.checkLimits(observed, settings.Default()); (err == nil) != (tc.err == "") || err != nil && !strings.HasPrefix(err.Error(), tc.err) {
				t.Errorf("error is %v, want %q", err, tc.err)
			}
		})
	}
}

func TestConnectNamesTheFixOfAFlagBeforeItConnects(t *testing.T) {
	for args, want := range map[string]string{
		"":                                 "--server is missing: write, for example, --server https://",
		"--server altershield.example.com": "--server is no http or https URL",
		"--server https://user:secret@altershield.example.com": "--server has a user name, a query or a fragment: remove it",
		"--server http://altershield.example.com":              "--server has no TLS, so the token could be read on the network: use https, or pass --allow-http",
		"--server https://x --release-check-scene s":           "--release-check-scene has an effect only with --release-check",
		"--server https://x --pre-check-timeout 10ms":          "--pre-check-timeout is 10ms: use at least 1s",
	} {
		var out bytes.Buffer
		code := Run(t.Context(), "test", append([]string{"connect"}, strings.Fields(args)...), genericiooptions.IOStreams{Out: &out, ErrOut: &out})
		if code != 1 || !strings.Contains(out.String(), want) || strings.Contains(out.String(), "secret") {
			t.Errorf("connect %s: code %d, %s", args, code, out.String())
		}
	}
}

func TestATokenFileHasOneWord(t *testing.T) {
	for content, want := range map[string]string{"a\n": "a", " a \r\n": "a", "": "", "a b": "", "a\nb": ""} {
		file := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, from := range []string{file, "-"} {
			a := &app{IOStreams: genericiooptions.IOStreams{In: strings.NewReader(content)}}
			got, err := a.readToken(from)
			if got != want || (err == nil) != (want != "") {
				t.Errorf("%q: got %q, %v", content, got, err)
			}
		}
	}
}

func TestAGeneratedTokenFitsTheServer(t *testing.T) {
	seen := map[string]bool{}
	for range 10 {
		token, err := generateToken()
		if err != nil || len(token) != maxToken {
			t.Fatalf("%d bytes, %v", len(token), err)
		}
		seen[token] = true
	}
	if len(slices.Collect(maps.Keys(seen))) != 10 {
		t.Error("tokens repeat")
	}
}
