package altershield

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"
)

// Names of the configuration's objects in v1alpha1.SystemNamespace.
const (
	// ConfigMapName is the ConfigMap with all settings except the token.
	ConfigMapName = "config-altershield"
	// SecretName is the Secret with the token.
	SecretName = "altershield-token"
	// TokenKey is the key of the token in the Secret.
	TokenKey = "token"
	// PreviousTokenKey is the key of the token that TokenKey replaced.
	PreviousTokenKey = "token-previous"
)

// Defaults of Config.
const (
	// DefaultHeaderPrefix is the prefix of the published server. Closed-source
	// servers use X-OpsCloud-.
	DefaultHeaderPrefix        = "X-AlterShield-"
	DefaultChangePhase         = "prod_phase"
	DefaultChangeScenarioCode  = "00"
	DefaultEffectiveTargetType = "pod"
	DefaultCreator             = "breakwater"
	DefaultConnectTimeout      = 2 * time.Second
	DefaultHeaderTimeout       = 5 * time.Second
	DefaultAttemptTimeout      = 6 * time.Second
	// MaxTotalDeadline is the maximum and the default of TotalDeadline.
	MaxTotalDeadline = 15 * time.Second
	DefaultQPS       = 100
	DefaultBurst     = 100
	// DefaultBreakerFailures is so low that one call to a server that accepts no connection
	// usually opens the breaker. A server that accepts connections and does not answer opens
	// it after two calls or more.
	DefaultBreakerFailures = 5
	DefaultBreakerPause    = 10 * time.Second
)

// Config has the address of the server, the identity of Breakwater there, and
// the limits of calls. It is comparable; equal values can share a client.
type Config struct {
	// BaseURL is the http or https URL of the server, without /openapi. Empty
	// means that no server is configured.
	BaseURL string
	// HeaderPrefix is the prefix of the three signature headers. Default
	// X-AlterShield-.
	HeaderPrefix string
	// Platform is the name of this client at the server; at most 32 bytes.
	Platform string
	// Token is the secret for signatures of both sides. It is never printed.
	Token string
	// PreviousToken is also accepted in signatures of the server, until the server uses
	// the new token. It is never printed.
	PreviousToken string
	// TenantCode is the tenant at the server.
	TenantCode string
	// ChangeSceneKey is the change scene; at most 256 bytes. The scene determines
	// the server's rules, check timeouts and callback URL.
	ChangeSceneKey string
	// ReleaseCheckSceneKey is the change scene of release checks; at most 256
	// bytes. The scene must be of generation 1, whose checks the server answers
	// synchronously. Empty disables release checks.
	ReleaseCheckSceneKey string
	// ChangePhase is one of dev_phase, sim_phase, pre_phase, gray_phase,
	// prod_beta_phase, prod_phase. Default prod_phase.
	ChangePhase string
	// ChangeScenarioCode is one of XX, 00, 01, 10, 12, 13, 30. Default 00.
	ChangeScenarioCode string
	// EffectiveTargetType is the type of effectiveTargetLocations. Default pod.
	EffectiveTargetType string
	// Creator is the creator and executor of orders; at most 56 bytes. The server
	// accepts 128, but answers 901 above 56 because its database column is
	// shorter. Default breakwater.
	Creator string
	// ClusterName is part of the order ids. It must differ between clusters of
	// one platform.
	ClusterName string

	// ConnectTimeout limits dialing, and also the TLS handshake. Default 2s.
	ConnectTimeout time.Duration
	// HeaderTimeout limits the wait for the header of an answer. Default 5s.
	HeaderTimeout time.Duration
	// AttemptTimeout limits one attempt, including the body of the answer.
	// Default 6s.
	AttemptTimeout time.Duration
	// TotalDeadline limits a call: the wait for the token bucket, all attempts
	// and the pauses between them. An unanswered intent expires at this age, so that another
	// process may call. Default and maximum 15s.
	TotalDeadline time.Duration
	// QPS is the rate limit in attempts per second. In the ConfigMap it is the limit of all
	// replicas of a function together; ShareOf divides it among them. Each replica of the
	// webhook has it undivided. Default 100.
	QPS float32
	// Burst is the size of the token bucket, in attempts; ShareOf divides it, too.
	// Default 100.
	Burst int

	// BreakerFailures is the number of consecutive attempts without a usable
	// answer that opens the circuit breaker. Default 5.
	BreakerFailures int
	// BreakerPause is how long the circuit breaker stays open. Default 10s.
	BreakerPause time.Duration

	// MaxSkew is the maximum difference between the timestamp of a callback and
	// the local clock. Default 5m.
	MaxSkew time.Duration
}

// Configured reports whether a server is configured.
func (c Config) Configured() bool { return c.BaseURL != "" }

// ShareOf returns the configuration of one replica: QPS and Burst are divided by the
// number of replicas.
func (c Config) ShareOf(replicas int) Config {
	c.QPS /= float32(max(1, replicas))
	c.Burst = max(1, c.Burst/max(1, replicas))
	return c
}

// withDefaults sets zero fields to their defaults.
func (c Config) withDefaults() Config {
	c.HeaderPrefix = cmp.Or(c.HeaderPrefix, DefaultHeaderPrefix)
	c.ChangePhase = cmp.Or(c.ChangePhase, DefaultChangePhase)
	c.ChangeScenarioCode = cmp.Or(c.ChangeScenarioCode, DefaultChangeScenarioCode)
	c.EffectiveTargetType = cmp.Or(c.EffectiveTargetType, DefaultEffectiveTargetType)
	c.Creator = cmp.Or(c.Creator, DefaultCreator)
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, DefaultConnectTimeout)
	c.HeaderTimeout = cmp.Or(c.HeaderTimeout, DefaultHeaderTimeout)
	c.AttemptTimeout = cmp.Or(c.AttemptTimeout, DefaultAttemptTimeout)
	c.TotalDeadline = cmp.Or(c.TotalDeadline, MaxTotalDeadline)
	c.QPS = cmp.Or(c.QPS, DefaultQPS)
	c.Burst = cmp.Or(c.Burst, DefaultBurst)
	c.BreakerFailures = cmp.Or(c.BreakerFailures, DefaultBreakerFailures)
	c.BreakerPause = cmp.Or(c.BreakerPause, DefaultBreakerPause)
	c.MaxSkew = cmp.Or(c.MaxSkew, DefaultMaxSkew)
	return c
}

// Redacted replaces a secret in a text.
const Redacted = "[redacted]"

// plain has the fields of Config and none of its methods.
type plain Config

func (c Config) redact() plain {
	if c.Token != "" {
		c.Token = Redacted
	}
	if c.PreviousToken != "" {
		c.PreviousToken = Redacted
	}
	return plain(c)
}

// String redacts the token.
func (c Config) String() string { return fmt.Sprintf("%+v", c.redact()) }

// GoString redacts the token.
func (c Config) GoString() string { return fmt.Sprintf("%#v", c.redact()) }

// Format redacts the token for every verb.
func (c Config) Format(s fmt.State, verb rune) {
	_, _ = fmt.Fprintf(s, fmt.FormatString(s, verb), c.redact())
}

// MarshalJSON redacts the token.
func (c Config) MarshalJSON() ([]byte, error) { return json.Marshal(c.redact()) }
