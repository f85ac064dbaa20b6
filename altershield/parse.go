package altershield

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Keys of the ConfigMap.
const (
	keyBaseURL             = "base-url"
	keyHeaderPrefix        = "header-prefix"
	keyPlatform            = "platform"
	keyTenantCode          = "tenant-code"
	keyChangeSceneKey      = "change-scene-key"
	keyReleaseCheckScene   = "release-check-scene-key"
	keyChangePhase         = "change-phase"
	keyChangeScenarioCode  = "change-scenario-code"
	keyEffectiveTargetType = "effective-target-type"
	keyCreator             = "creator"
	keyClusterName         = "cluster-name"
	keyConnectTimeout      = "connect-timeout"
	keyHeaderTimeout       = "header-timeout"
	keyAttemptTimeout      = "attempt-timeout"
	keyTotalDeadline       = "total-deadline"
	keyQPS                 = "qps"
	keyBurst               = "burst"
	keyBreakerFailures     = "breaker-failures"
	keyBreakerPause        = "breaker-pause"
	keyMaxSkew             = "max-skew"
)

// ParseConfig parses the configuration. Either object may be nil: without a
// base-url no server is configured, and the result has defaults only.
//
// With a base-url, it validates the server's requirements. A mistake is reported
// with its key and the fix, instead of as a rejected call later. The error has
// all mistakes. An unknown key is a mistake, because after a mistyped base-url
// nothing would be judged. Keys with a leading underscore (_example) are ignored.
func ParseConfig(cm *corev1.ConfigMap, secret *corev1.Secret) (Config, error) {
	c, found := parse(cm, secret)
	if err := found.join(); err != nil {
		return Config{}, err
	}
	return c, nil
}

// callbackKeys are the keys that the authentication of callbacks depends on.
var callbackKeys = []string{TokenKey, keyPlatform, keyHeaderPrefix, keyMaxSkew}

// ParseCallbackConfig parses what callbacks depend on, and sets no other field. Mistakes in other keys are
// no error, because the server does not repeat a callback that is rejected. The error has the mistakes
// in callbackKeys. After a mistake in total-deadline, MaxTotalDeadline is used: it decides only how long after
// a start a verdict for an unknown node is kept.
func ParseCallbackConfig(cm *corev1.ConfigMap, secret *corev1.Secret) (Config, error) {
	c, found := parse(cm, secret)
	if err := found.of(callbackKeys...).join(); err != nil {
		return Config{}, err
	}
	if len(found.of(keyTotalDeadline)) > 0 {
		c.TotalDeadline = MaxTotalDeadline
	}
	return Config{
		Token: c.Token, PreviousToken: c.PreviousToken, Platform: c.Platform, HeaderPrefix: c.HeaderPrefix,
		MaxSkew: c.MaxSkew, TotalDeadline: c.TotalDeadline,
	}, nil
}

// CheckConfigMap returns the mistakes of the ConfigMap, without those of the token.
func CheckConfigMap(cm *corev1.ConfigMap) error {
	_, found := parseConfigMap(cm)
	return found.join()
}

// mistake is an invalid, unknown or missing key.
type mistake struct {
	key string
	err error
}

// mistakes are those of a configuration.
type mistakes []mistake

// of returns the mistakes in some keys.
func (m mistakes) of(keys ...string) mistakes {
	var out mistakes
	for _, one := range m {
		if slices.Contains(keys, one.key) {
			out = append(out, one)
		}
	}
	return out
}

// join returns one error with all mistakes, or nil if there is none.
func (m mistakes) join() error {
	var errs []error
	for _, one := range m {
		errs = append(errs, one.err)
	}
	return errors.Join(errs...)
}

// parse parses the configuration with the token.
func parse(cm *corev1.ConfigMap, secret *corev1.Secret) (Config, mistakes) {
	c, found := parseConfigMap(cm)
	if secret != nil {
		// A token written with an editor or with echo ends in a newline.
		c.Token = strings.TrimSpace(string(secret.Data[TokenKey]))
		c.PreviousToken = strings.TrimSpace(string(secret.Data[PreviousTokenKey]))
	}
	if c.Configured() && c.Token == "" {
		found = append(found, mistake{TokenKey, fmt.Errorf("secret %s: key %s is missing: put the platform's token there", SecretName, TokenKey)})
	}
	return c, found
}

// parseConfigMap parses everything except the token, which not every process may
// read.
func parseConfigMap(cm *corev1.ConfigMap) (Config, mistakes) {
	p := parser{data: map[string]string{}, unread: map[string]bool{}}
	if cm != nil {
		for key, value := range cm.Data {
			p.data[key] = strings.TrimSpace(value)
			p.unread[key] = !strings.HasPrefix(key, "_")
		}
	}
	c := Config{
		BaseURL:              p.baseURL(),
		HeaderPrefix:         p.headerPrefix(),
		Platform:             p.text(keyPlatform, 32),
		TenantCode:           p.text(keyTenantCode, 0),
		ChangeSceneKey:       p.text(keyChangeSceneKey, 256),
		ReleaseCheckSceneKey: p.text(keyReleaseCheckScene, 256),
		ChangePhase:          p.oneOf(keyChangePhase, "dev_phase", "sim_phase", "pre_phase", "gray_phase", "prod_beta_phase", "prod_phase"),
		ChangeScenarioCode:   p.oneOf(keyChangeScenarioCode, "XX", "00", "01", "10", "12", "13", "30"),
		EffectiveTargetType:  p.text(keyEffectiveTargetType, 0),
		Creator:              p.text(keyCreator, 56),
		ClusterName:          p.text(keyClusterName, 0),
		ConnectTimeout:       p.duration(keyConnectTimeout),
		HeaderTimeout:        p.duration(keyHeaderTimeout),
		AttemptTimeout:       p.duration(keyAttemptTimeout),
		TotalDeadline:        p.duration(keyTotalDeadline),
		QPS:                  float32(p.number(keyQPS)),
		Burst:                p.number(keyBurst),
		BreakerFailures:      p.number(keyBreakerFailures),
		BreakerPause:         p.duration(keyBreakerPause),
		MaxSkew:              p.duration(keyMaxSkew),
	}.withDefaults()
	p.check(c)
	return c, p.mistakes
}

// parser parses values and collects all mistakes.
type parser struct {
	data     map[string]string
	unread   map[string]bool
	mistakes mistakes
}

func (p *parser) fail(key, format string, args ...any) {
	p.mistakes = append(p.mistakes, mistake{key, fmt.Errorf("%s %s: %s", ConfigMapName, key, fmt.Sprintf(format, args...))})
}

func (p *parser) read(key string) string {
	delete(p.unread, key)
	return p.data[key]
}

// text returns a value of at most limit bytes; 0 means no limit.
func (p *parser) text(key string, limit int) string {
	value := p.read(key)
	if limit > 0 && len(value) > limit {
		p.fail(key, "has %d bytes, the server accepts at most %d: shorten it", len(value), limit)
	}
	return value
}

func (p *parser) baseURL() string {
	value := strings.TrimRight(p.read(keyBaseURL), "/")
	if value == "" {
		return ""
	}
	// The errors omit the value, which may contain a password.
	u, err := url.Parse(value)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		p.fail(keyBaseURL, "is not an http or https URL: set, for example, http://altershield.example.com:8080")
	case u.User != nil:
		p.fail(keyBaseURL, "contains a user name: remove it, the server authenticates by platform and token")
	case u.RawQuery != "" || u.Fragment != "":
		p.fail(keyBaseURL, "contains a query or fragment: remove it")
	}
	return value
}

func (p *parser) headerPrefix() string {
	value := p.read(keyHeaderPrefix)
	for _, r := range value {
		if r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') {
			p.fail(keyHeaderPrefix, "is not a valid prefix of a header name: use letters, digits and dashes, as in X-AlterShield-")
			break
		}
	}
	return value
}

func (p *parser) oneOf(key string, allowed ...string) string {
	value := p.read(key)
	if value != "" && !slices.Contains(allowed, value) {
		p.fail(key, "is %q: use one of %s", value, strings.Join(allowed, ", "))
	}
	return value
}

func (p *parser) duration(key string) time.Duration {
	value := p.read(key)
	if value == "" {
		return 0
	}
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 {
		p.fail(key, "is %q: use a duration above zero, such as 5s", value)
	}
	return d
}

// number returns an integer from 1 to 10000. Rates below one call per second are
// not useful.
func (p *parser) number(key string) int {
	value := p.read(key)
	if value == "" {
		return 0
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > 10000 {
		p.fail(key, "is %q: use a whole number from 1 to 10000", value)
	}
	return n
}

// check reports unknown keys, missing keys and inconsistent values.
func (p *parser) check(c Config) {
	for _, key := range slices.Sorted(maps.Keys(p.unread)) {
		if p.unread[key] {
			p.fail(key, "is not a known key: correct or remove it")
		}
	}
	if !c.Configured() {
		return
	}
	for _, required := range []struct{ key, value, fix string }{
		{keyPlatform, c.Platform, "set the platform's name at the server"},
		{keyTenantCode, c.TenantCode, "set the tenant's code at the server"},
		{keyChangeSceneKey, c.ChangeSceneKey, "set the key of the change scene at the server"},
		{keyClusterName, c.ClusterName, "set a name that is unique within the platform, because clusters with the same name share orders"},
	} {
		if required.value == "" {
			p.fail(required.key, "is missing: %s", required.fix)
		}
	}
	if c.TotalDeadline > MaxTotalDeadline {
		p.fail(keyTotalDeadline, "is %s, longer than %s: shorten it", c.TotalDeadline, MaxTotalDeadline)
	}
	if c.AttemptTimeout > c.TotalDeadline {
		p.fail(keyAttemptTimeout, "is %s, longer than %s (%s): shorten it", c.AttemptTimeout, keyTotalDeadline, c.TotalDeadline)
	}
}
