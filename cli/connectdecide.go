package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/altershield/setup"
	"github.com/breakwater-dev/breakwater/internal/settings"
)

// Limits of the server.
const (
	// maxToken is the length of its column for tokens.
	maxToken = 32
	maxScene = 200
)

// callbackPath is the path of function callback.
const callbackPath = "/openapi/altershield/callback"

// connectInput is what the cluster has.
type connectInput struct {
	config *corev1.ConfigMap
	secret *corev1.Secret
	// settings are those of the OpsConfigInfos.
	settings settings.Settings
	// callback is the URL of the Knative Service callback, and cluster the UID of namespace
	// kube-system. They are read only if they are needed.
	callback, cluster string
	// given is the token of --token-file.
	given string
}

// connection has the values of ConfigMap config-altershield, and what they need at the server.
type connection struct {
	values  map[string]string
	desired setup.Desired
}

// check checks what needs neither the cluster nor the server. The errors do not repeat the URL, which
// may contain a password.
func (f connectFlags) check() error {
	u, err := url.Parse(f.server)
	switch {
	case f.server == "":
		return errors.New("--server is missing: write, for example, --server https://altershield.example.com")
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("--server is no http or https URL: write, for example, --server https://altershield.example.com")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("--server has a user name, a query or a fragment: remove it")
	case u.Scheme == "http" && !f.allowHTTP:
		return errors.New("--server has no TLS, so the token could be read on the network: use https, or pass --allow-http if the network is trusted")
	case f.releaseScene != "" && !f.releaseCheck:
		return errors.New("--release-check-scene has an effect only with --release-check: pass it")
	}
	for _, limit := range []struct {
		flag  string
		value time.Duration
	}{{"--pre-check-timeout", f.pre}, {"--post-check-timeout", f.post}} {
		if limit.value != 0 && limit.value < time.Second {
			return fmt.Errorf("%s is %s: use at least 1s", limit.flag, limit.value)
		}
	}
	return nil
}

// connection returns the connection: its values are those of the flags, or else of the cluster, or else
// the defaults. It returns an error if that would replace a value without --replace.
func (f connectFlags) connection(in connectInput) (connection, error) {
	current := func(key string) string { return strings.TrimSpace(in.config.Data[key]) }
	cluster := cmp.Or(f.cluster, current("cluster-name"), in.cluster)
	values := map[string]string{
		"base-url":         strings.TrimRight(f.server, "/"),
		"platform":         cmp.Or(f.platform, current("platform"), "breakwater"),
		"tenant-code":      cmp.Or(f.tenant, current("tenant-code"), "default"),
		"cluster-name":     cluster,
		"change-scene-key": cmp.Or(f.scene, current("change-scene-key"), sceneKey(cluster, "rollout")),
	}
	if f.releaseCheck {
		values["release-check-scene-key"] = cmp.Or(f.releaseScene, current("release-check-scene-key"), sceneKey(cluster, "release"))
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if was := current(key); was != "" && was != values[key] && !f.replace {
			return connection{}, fmt.Errorf("key %s of ConfigMap config-altershield is %q, and would be %q; the orders of releases in progress use the old value: wait for their end and pass --replace, or keep %q", key, redacted(was), values[key], redacted(was))
		}
	}
	callback, err := callbackURL(cmp.Or(f.callback, in.callback))
	if err != nil {
		return connection{}, err
	}
	s := connection{values: values, desired: setup.Desired{
		Platform: values["platform"], Owner: cmp.Or(current("creator"), altershield.DefaultCreator), Tenant: values["tenant-code"],
		TargetType: cmp.Or(current("effective-target-type"), altershield.DefaultEffectiveTargetType), Replace: f.replace,
		Scenes: []setup.Scene{{
			Key: values["change-scene-key"], Name: "Rollouts of " + cluster, Generation: setup.Generation2, Callback: callback, Pre: f.pre, Post: f.post,
		}},
	}}
	if key := values["release-check-scene-key"]; key != "" {
		s.desired.Scenes = append(s.desired.Scenes, setup.Scene{Key: key, Name: "Release checks of " + cluster, Generation: setup.Generation1})
	}
	return s, checkSceneKeys(s.desired.Scenes)
}

// sceneKey returns the default key of a scene. The server accepts letters, digits, dots and
// underscores.
func sceneKey(cluster, suffix string) string {
	return "breakwater." + strings.Map(func(r rune) rune {
		if validInSceneKey(r) {
			return r
		}
		return '_'
	}, cluster) + "." + suffix
}

func validInSceneKey(r rune) bool {
	return r == '.' || r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
}

func checkSceneKeys(scenes []setup.Scene) error {
	for _, s := range scenes {
		flag := "--scene"
		if s.Generation == setup.Generation1 {
			flag = "--release-check-scene"
		}
		switch {
		case len(s.Key) > maxScene:
			return fmt.Errorf("%s has %d bytes, the server accepts at most %d: shorten it", flag, len(s.Key), maxScene)
		case strings.ContainsFunc(s.Key, func(r rune) bool { return !validInSceneKey(r) }),
			strings.Trim(s.Key[:1], "._0123456789") == "", strings.HasSuffix(s.Key, "."), strings.HasSuffix(s.Key, "_"):
			return fmt.Errorf("%s is %q: use letters, digits, dots and underscores, a letter first, and a letter or digit last", flag, s.Key)
		}
	}
	if len(scenes) == 2 && scenes[0].Key == scenes[1].Key {
		return errors.New("--release-check-scene is the scene of rollouts: choose another one, the generations differ")
	}
	return nil
}

// callbackURL returns the callback URL of a scene for a URL of function callback.
func callbackURL(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("--callback is no http or https URL: write the address of function callback, for example --callback https://callback.example.com")
	}
	if path := strings.TrimRight(u.Path, "/"); path != "" && path != callbackPath {
		return "", fmt.Errorf("--callback has the path %s: use %s, or none", path, callbackPath)
	}
	return u.Scheme + "://" + u.Host + callbackPath, nil
}

// redacted returns a value without the password of a URL.
func redacted(value string) string {
	if u, err := url.Parse(value); err == nil {
		return u.Redacted()
	}
	return value
}

// checkLimits returns an error if a check may last as long as Breakwater waits for its verdict.
func (s connection) checkLimits(observed setup.Observed, now settings.Settings) error {
	pre, post := s.desired.Scenes[0].CheckTimeouts(observed)
	for _, limit := range []struct {
		flag, setting   string
		server, waiting time.Duration
	}{{"--pre-check-timeout", "pre-timeout", pre, now.PreTimeout}, {"--post-check-timeout", "post-timeout", post, now.PostTimeout}} {
		if limit.server >= limit.waiting {
			return fmt.Errorf("%s is %s at the server, and Breakwater waits %s for the verdict (OpsConfigInfo %s): make it shorter, or that setting longer", limit.flag, limit.server, limit.waiting, limit.setting)
		}
	}
	return nil
}

// tokenDecision is the token, and what happens to Secret altershield-token.
type tokenDecision struct {
	value string
	// previous is the token that the value replaces.
	previous string
	// generate: a token must be generated for a new platform. store: the Secret has another one, or
	// none.
	generate, store bool
}

// decideToken returns the token of the platform: the given one, or else that of the Secret. Tokens
// cannot be read from the server.
func decideToken(in connectInput, platform string, exists, replace bool) (tokenDecision, error) {
	stored := strings.TrimSpace(string(in.secret.Data[altershield.TokenKey]))
	source, value := "--token-file", in.given
	if value == "" {
		source, value = "key token of Secret altershield-token", stored
	}
	switch {
	case value == "" && exists:
		return tokenDecision{}, fmt.Errorf("--token-file is missing: platform %s exists at the server, which does not show its token: pass the token, or choose another --platform", platform)
	case value == "":
		return tokenDecision{generate: true, store: true}, nil
	case len(value) > maxToken:
		return tokenDecision{}, fmt.Errorf("%s has %d bytes, the server accepts at most %d: use a shorter token", source, len(value), maxToken)
	case value == stored:
		return tokenDecision{value: value}, nil
	case stored != "" && !replace:
		return tokenDecision{}, errors.New("--token-file has another token than Secret altershield-token: pass --replace to replace it")
	default:
		return tokenDecision{value: value, previous: stored, store: true}, nil
	}
}

// changes returns the values that differ from the ConfigMap.
func (s connection) changes(config *corev1.ConfigMap) map[string]string {
	changed := map[string]string{}
	for key, value := range s.values {
		if strings.TrimSpace(config.Data[key]) != value {
			changed[key] = value
		}
	}
	return changed
}

// lines describe the changes of the ConfigMap.
func (s connection) lines(config *corev1.ConfigMap) (lines []string) {
	changed := s.changes(config)
	for _, key := range slices.Sorted(maps.Keys(changed)) {
		lines = append(lines, fmt.Sprintf("ConfigMap config-altershield: set %s to %s", key, changed[key]))
	}
	return lines
}

// config returns the configuration that the functions will have. It checks all keys as they do.
func (s connection) config(in connectInput, token tokenDecision) (altershield.Config, error) {
	merged := in.config.DeepCopy()
	if merged.Data == nil {
		merged.Data = map[string]string{}
	}
	maps.Copy(merged.Data, s.values)
	value := cmp.Or(token.value, "generated")
	return altershield.ParseConfig(merged, &corev1.Secret{Data: map[string][]byte{altershield.TokenKey: []byte(value)}})
}
