package judge

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/internal/httptransport"
	"github.com/breakwater-dev/breakwater/judge/prometheus"
)

// The objects with the configuration, in v1alpha1.SystemNamespace.
const (
	// ConfigMapName has the address of Prometheus and limits.
	ConfigMapName = "config-judge"
	// SecretName has the credentials and the certificates of Prometheus; it is optional.
	SecretName = "judge-prometheus"
	caKey      = "ca.crt"
)

// defaultLabels are the labels that Prometheus gives to series of pods in most
// installations.
func defaultLabels() Labels { return Labels{Namespace: "namespace", Pod: "pod"} }

// configTTL is the maximum age of a cached configuration.
const configTTL = 5 * time.Second

// config is the parsed configuration.
type config struct {
	url        string
	timeout    time.Duration
	concurrent int
	labels     Labels
	headers    http.Header // with the credentials
	ca         []byte
}

// Sources returns the reader of the configured Prometheus. The connections and the cached
// answers are kept while the configuration is unchanged.
type Sources struct {
	core  corev1client.CoreV1Interface
	clock clock.PassiveClock

	mu     sync.Mutex
	config config
	source Source
	read   time.Time
}

// NewSources returns Sources.
func NewSources(core corev1client.CoreV1Interface, c clock.PassiveClock) *Sources {
	return &Sources{core: core, clock: c}
}

// Source returns the reader. An invalid configuration is a *functions.ConfigError. The read is
// under the lock, so that concurrent callers share it.
func (s *Sources) Source(ctx context.Context) (Source, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	if !s.read.IsZero() && now.Sub(s.read) < configTTL {
		return s.source, nil
	}
	next, err := s.readConfig(ctx)
	if err != nil {
		return Source{}, err
	}
	if s.read.IsZero() || !reflect.DeepEqual(next, s.config) {
		source, err := newSource(next, s.clock)
		if err != nil {
			return Source{}, &functions.ConfigError{Err: err}
		}
		s.config, s.source = next, source
	}
	s.read = now
	return s.source, nil
}

func (s *Sources) readConfig(ctx context.Context) (config, error) {
	cm, err := s.core.ConfigMaps(v1alpha1.SystemNamespace).Get(ctx, ConfigMapName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		cm, err = &corev1.ConfigMap{}, nil
	}
	if err != nil {
		return config{}, fmt.Errorf("get ConfigMap %s: %w", ConfigMapName, err)
	}
	secret, err := s.core.Secrets(v1alpha1.SystemNamespace).Get(ctx, SecretName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		secret, err = &corev1.Secret{}, nil
	}
	if err != nil {
		return config{}, fmt.Errorf("get Secret %s: %w", SecretName, err)
	}
	parsed, err := parseConfig(cm.Data, secret.Data)
	if err != nil {
		return config{}, &functions.ConfigError{Err: fmt.Errorf("ConfigMap %s: %w", ConfigMapName, err)}
	}
	return parsed, nil
}

// parseConfig parses the configuration. Its error names the keys and valid values.
func parseConfig(data map[string]string, secret map[string][]byte) (config, error) {
	c := config{
		url: strings.TrimSpace(data["prometheus-url"]), timeout: prometheus.DefaultTimeout, concurrent: 10,
		labels: defaultLabels(), ca: secret[caKey],
	}
	var errs []error
	credentials, err := authorization(secret)
	if err != nil {
		errs = append(errs, err)
	}
	u, err := prometheus.ParseAddress(c.url)
	switch {
	case c.url == "":
		errs = append(errs, errors.New("prometheus-url is not set: write the address of Prometheus, for example http://prometheus.monitoring:9090"))
	case err != nil:
		errs = append(errs, fmt.Errorf("prometheus-url: %w", err))
	case u.User != nil:
		errs = append(errs, fmt.Errorf("prometheus-url contains a password: put %s and %s into Secret %s", usernameKey, passwordKey, SecretName))
	case credentials != "" && u.Scheme != "https":
		errs = append(errs, fmt.Errorf("prometheus-url is not https, and Secret %s has credentials: they are sent only over https", SecretName))
	}
	if c.headers, err = prometheus.ParseHeaders(data["prometheus-headers"]); err != nil {
		errs = append(errs, fmt.Errorf("prometheus-headers: %w; credentials belong into Secret %s", err, SecretName))
	}
	if credentials != "" {
		c.headers.Set("Authorization", credentials)
	}
	if v, ok := data["query-timeout"]; ok {
		if c.timeout, err = time.ParseDuration(strings.TrimSpace(v)); err != nil || c.timeout < time.Second || c.timeout > 30*time.Second {
			errs = append(errs, fmt.Errorf("query-timeout %q: write a duration of 1s to 30s", v))
		}
	}
	if v, ok := data["max-concurrent-queries"]; ok {
		if c.concurrent, err = strconv.Atoi(strings.TrimSpace(v)); err != nil || c.concurrent < 1 || c.concurrent > 100 {
			errs = append(errs, fmt.Errorf("max-concurrent-queries %q: write a whole number from 1 to 100", v))
		}
	}
	for key, to := range map[string]*string{"namespace-label": &c.labels.Namespace, "pod-label": &c.labels.Pod} {
		if v, ok := data[key]; ok {
			if *to = strings.TrimSpace(v); !isLabelName(*to) {
				errs = append(errs, fmt.Errorf("%s %q: write the name of a label of Prometheus", key, v))
			}
		}
	}
	known := []string{"max-concurrent-queries", "namespace-label", "pod-label", "prometheus-headers", "prometheus-url", "query-timeout"}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if !slices.Contains(known, key) && !strings.HasPrefix(key, "_") {
			errs = append(errs, fmt.Errorf("unknown key %q; known keys are %s", key, strings.Join(known, ", ")))
		}
	}
	return c, errors.Join(errs...)
}

func isLabelName(s string) bool {
	for i, r := range s {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

// newSource returns a Source with its own connections.
func newSource(c config, clk clock.PassiveClock) (Source, error) {
	transport, err := newTransport(c)
	if err != nil {
		return Source{}, err
	}
	client, err := prometheus.New(c.url, c.timeout, prometheus.WithHeaders(c.headers, transport))
	if err != nil {
		return Source{}, err
	}
	return Source{Reader: NewSharedReader(client, c.concurrent, clk), Labels: c.labels}, nil
}

func newTransport(c config) (*http.Transport, error) {
	transport := httptransport.New()
	transport.MaxConnsPerHost = c.concurrent
	if len(c.ca) > 0 {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(c.ca) {
			return nil, fmt.Errorf("key %s of Secret %s has no certificate in PEM format", caKey, SecretName)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return transport, nil
}
