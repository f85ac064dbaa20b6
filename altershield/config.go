package altershield

import (
	"encoding/json"
	"fmt"
	"time"
)

// Where the configuration stands, in v1alpha1.SystemNamespace.
const (
	// ConfigMapName is the ConfigMap with everything but the token.
	ConfigMapName = "config-altershield"
	// SecretName is the Secret with the token.
	SecretName = "altershield-token"
	// TokenKey is the key of the token in the Secret.
	TokenKey = "token"
)

// Defaults of Config.
const (
	// DefaultHeaderPrefix is the published server's; closed installations use
	// X-OpsCloud-.
	DefaultHeaderPrefix        = "X-AlterShield-"
	DefaultChangePhase         = "prod_phase"
	DefaultChangeScenarioCode  = "00"
	DefaultEffectiveTargetType = "pod"
	DefaultCreator             = "breakwater"
	DefaultConnectTimeout      = 2 * time.Second
	DefaultHeaderTimeout       = 5 * time.Second
	DefaultAttemptTimeout      = 6 * time.Second
	// DefaultTotalDeadline is also how old an unanswered intent must be before
	// somebody else may call.
	DefaultTotalDeadline = 15 * time.Second
	DefaultQPS           = 20
	DefaultBurst         = 40
	// DefaultBreakerFailures is one call with all its attempts.
	DefaultBreakerFailures = 5
	DefaultBreakerPause    = 10 * time.Second
)

// Config is how Breakwater reaches the server and what it is called there. It
// is comparable: two equal values need one client only.
type Config struct {
	// BaseURL is the server, http or https, without /openapi. Empty means that
	// no server is configured.
	BaseURL string
	// HeaderPrefix begins the three signature headers. Default X-AlterShield-.
	HeaderPrefix string
	// Platform is our name at the server; at most 32 bytes.
	Platform string
	// Token is the secret that signs, in both directions. It is never printed.
	Token string
	// TenantCode is our tenant at the server.
	TenantCode string
	// ChangeSceneKey is the change scene; at most 256 bytes. The scene decides
	// the server's rules, check timeouts and callback URL.
	ChangeSceneKey string
	// ReleaseCheckSceneKey is the change scene of release checks; at most 256
	// bytes. It must be one of generation 1, which the server answers at once.
	// Empty: releases cannot be checked.
	ReleaseCheckSceneKey string
	// ChangePhase is one of dev_phase, sim_phase, pre_phase, gray_phase,
	// prod_beta_phase, prod_phase. Default prod_phase.
	ChangePhase string
	// ChangeScenarioCode is one of XX, 00, 01, 10, 12, 13, 30. Default 00.
	ChangeScenarioCode string
	// EffectiveTargetType says what effectiveTargetLocations name. Default pod.
	EffectiveTargetType string
	// Creator is who opens orders and executes them; at most 56 bytes: the
	// server admits 128 and then answers 901, its column being shorter.
	// Default breakwater.
	Creator string
	// ClusterName tells this cluster's orders from those of other clusters of
	// the platform.
	ClusterName string

	// ConnectTimeout bounds dialing and, again, the TLS handshake. Default 2s.
	ConnectTimeout time.Duration
	// HeaderTimeout bounds the wait for the answer's header. Default 5s.
	HeaderTimeout time.Duration
	// AttemptTimeout bounds one attempt, the answer's body included. Default 6s.
	AttemptTimeout time.Duration
	// TotalDeadline bounds a call: the wait for the token bucket, all attempts
	// and the pauses between them. Default 15s.
	TotalDeadline time.Duration
	// QPS is how many attempts a second this process makes. Default 20.
	QPS float32
	// Burst is how many of them may come at once. Default 40.
	Burst int

	// BreakerFailures is after how many attempts in a row without a usable
	// answer the server is not called for a while. Default 5.
	BreakerFailures int
	// BreakerPause is for how long. Default 10s.
	BreakerPause time.Duration

	// MaxSkew is how far the timestamp of a callback may be from our clock,
	// either way. Default 5m.
	MaxSkew time.Duration
}

// Configured says whether there is a server at all.
func (c Config) Configured() bool { return c.BaseURL != "" }

// withDefaults fills in what is not set.
func (c Config) withDefaults() Config {
	setDefault(&c.HeaderPrefix, DefaultHeaderPrefix)
	setDefault(&c.ChangePhase, DefaultChangePhase)
	setDefault(&c.ChangeScenarioCode, DefaultChangeScenarioCode)
	setDefault(&c.EffectiveTargetType, DefaultEffectiveTargetType)
	setDefault(&c.Creator, DefaultCreator)
	setDefault(&c.ConnectTimeout, DefaultConnectTimeout)
	setDefault(&c.HeaderTimeout, DefaultHeaderTimeout)
	setDefault(&c.AttemptTimeout, DefaultAttemptTimeout)
	setDefault(&c.TotalDeadline, DefaultTotalDeadline)
	setDefault(&c.QPS, DefaultQPS)
	setDefault(&c.Burst, DefaultBurst)
	setDefault(&c.BreakerFailures, DefaultBreakerFailures)
	setDefault(&c.BreakerPause, DefaultBreakerPause)
	setDefault(&c.MaxSkew, DefaultMaxSkew)
	return c
}

func setDefault[T comparable](to *T, value T) {
	var zero T
	if *to == zero {
		*to = value
	}
}

// redacted stands where the token was.
const redacted = "[redacted]"

// plain has the fields of Config and none of its methods.
type plain Config

func (c Config) redact() plain {
	if c.Token != "" {
		c.Token = redacted
	}
	return plain(c)
}

// String leaves the token out.
func (c Config) String() string { return fmt.Sprintf("%+v", c.redact()) }

// GoString leaves the token out.
func (c Config) GoString() string { return fmt.Sprintf("%#v", c.redact()) }

// Format leaves the token out, whatever the verb.
func (c Config) Format(s fmt.State, verb rune) {
	_, _ = fmt.Fprintf(s, fmt.FormatString(s, verb), c.redact())
}

// MarshalJSON leaves the token out.
func (c Config) MarshalJSON() ([]byte, error) { return json.Marshal(c.redact()) }
