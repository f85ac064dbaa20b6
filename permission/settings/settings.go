// Package settings parses ConfigMap config-permission, the settings of
// the permission part in the cluster. Processes apply a change without a restart.
package settings

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"knative.dev/pkg/network"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/permission/podbreaker"
)

// The keys of the ConfigMap.
const (
	KeyCluster                          = "cluster"
	KeyCentreURL                        = "centre-url"
	KeyCentreCallsPerSecond             = "centre-calls-per-second"
	KeyUnauthenticatedRequestsPerMinute = "unauthenticated-requests-per-minute"
	KeyInitActionServerURL              = "init-action-server-url"
	KeyInitContainerDeadline            = "init-container-deadline"
	KeyBreakerThreshold                 = "breaker-threshold"
	KeyBackoffDuration                  = "backoff-duration"
	KeyBackoffFactor                    = "backoff-factor"
	KeyBackoffJitter                    = "backoff-jitter"
	KeyBackoffSteps                     = "backoff-steps"
	KeyBackoffCap                       = "backoff-cap"
	KeyCMDBURL                          = "cmdb-url"
	KeyAllowHTTP                        = "allow-http"
	KeyRevokeDeadline                   = "revoke-deadline"
	KeyPodReportInterval                = "pod-report-interval"
	KeyAnnouncedAddressAnnotation       = "announced-address-annotation"
	KeyAnnouncedAddressWriter           = "announced-address-writer"
	keyExample                          = "_example"
)

// Settings are the parsed values of the ConfigMap.
type Settings struct {
	// Cluster identifies this cluster at the permission centre.
	Cluster string
	// CentreURL is the URL of the permission centre.
	CentreURL string
	// CentreCallsPerSecond limits the calls to the centre by all replicas of the
	// init-action-server together.
	CentreCallsPerSecond float64
	// UnauthenticatedRequestsPerMinute is how many requests of an address the init-action-server
	// may answer 401 per minute before it answers 429.
	UnauthenticatedRequestsPerMinute float64
	// InitActionServerURL is the URL of the init-action-server, for init containers.
	InitActionServerURL string
	// InitContainerDeadline is how long one round of requests of an init container lasts.
	InitContainerDeadline time.Duration
	// Breaker configures the breaker of pods.
	Breaker podbreaker.Policy
	// CMDBURL is the URL of the CMDB in which pods are registered before their
	// permissions are requested; empty disables it.
	CMDBURL string
	// AllowHTTP allows URLs without TLS for CentreURL and InitActionServerURL.
	AllowHTTP bool
	// RevokeDeadline is how long after its end a pod is kept if its permissions
	// cannot be revoked.
	RevokeDeadline time.Duration
	// PodReportInterval is how often the existing pods are reported to the centre.
	PodReportInterval time.Duration
	// AnnouncedAddress says where the CNI plugin announces the addresses of a pod.
	AnnouncedAddress AnnouncedAddress
}

// InitActionServerInCluster reports whether InitActionServerURL is a Service of this cluster.
func (s Settings) InitActionServerInCluster() bool {
	u, err := url.Parse(s.InitActionServerURL)
	return err == nil && (strings.HasSuffix(u.Hostname(), ".svc") || strings.Contains(u.Hostname(), ".svc."))
}

// Default returns the default settings. Its URLs are Services of this cluster.
func Default() Settings {
	return Settings{
		Cluster:                          "default",
		CentreURL:                        "https://" + network.GetServiceHostname("permission-centre", v1alpha1.SystemNamespace),
		CentreCallsPerSecond:             200,
		UnauthenticatedRequestsPerMinute: 60,
		InitActionServerURL:              "https://" + network.GetServiceHostname("init-action-server", v1alpha1.SystemNamespace),
		InitContainerDeadline:            10 * time.Minute,
		Breaker:                          podbreaker.DefaultPolicy(),
		RevokeDeadline:                   5 * time.Minute,
		PodReportInterval:                time.Hour,
	}
}

// Parse parses the data of the ConfigMap. It returns the keys that are no settings, sorted; they
// have no effect. The error names every invalid key.
func Parse(data map[string]string) (s Settings, unknown []string, err error) {
	s = Default()
	r := reader{data: data, known: []string{keyExample}}
	r.text(KeyCluster, &s.Cluster)
	if why := validation.IsDNS1123Subdomain(s.Cluster); len(why) > 0 {
		r.invalid(KeyCluster, strings.Join(why, "; "))
	}
	r.bool(KeyAllowHTTP, &s.AllowHTTP)
	r.url(KeyCentreURL, &s.CentreURL, false)
	r.encrypted(KeyCentreURL, s.CentreURL, s.AllowHTTP)
	r.float(KeyCentreCallsPerSecond, &s.CentreCallsPerSecond, 0.1, 100_000)
	r.float(KeyUnauthenticatedRequestsPerMinute, &s.UnauthenticatedRequestsPerMinute, 1, 100_000)
	r.url(KeyInitActionServerURL, &s.InitActionServerURL, false)
	r.encrypted(KeyInitActionServerURL, s.InitActionServerURL, s.AllowHTTP)
	r.duration(KeyInitContainerDeadline, &s.InitContainerDeadline, time.Second, 10*time.Minute)
	r.int(KeyBreakerThreshold, &s.Breaker.Threshold, 1, 100)
	b := &s.Breaker.Backoff
	r.duration(KeyBackoffDuration, &b.Duration, time.Second, 24*time.Hour)
	r.float(KeyBackoffFactor, &b.Factor, 1, 10)
	r.float(KeyBackoffJitter, &b.Jitter, 0, 10)
	r.int(KeyBackoffSteps, &b.Steps, 0, 100)
	r.duration(KeyBackoffCap, &b.Cap, time.Second, 7*24*time.Hour)
	if b.Cap < b.Duration {
		r.invalid(KeyBackoffCap, "must not be shorter than "+KeyBackoffDuration)
	}
	r.url(KeyCMDBURL, &s.CMDBURL, true)
	r.duration(KeyRevokeDeadline, &s.RevokeDeadline, 10*time.Second, 24*time.Hour)
	r.duration(KeyPodReportInterval, &s.PodReportInterval, 10*time.Second, 24*time.Hour)
	r.announcedAddress(&s.AnnouncedAddress)
	for key := range data {
		if !slices.Contains(r.known, key) {
			unknown = append(unknown, key)
		}
	}
	slices.Sort(unknown)
	if _, ok := data[KeyCluster]; !ok && len(unknown) > 0 {
		// The default could be the name of another cluster.
		r.errs = append(r.errs, fmt.Errorf("key %s is missing, and may be misspelled as one of these unknown keys: %s; set it", KeyCluster, strings.Join(unknown, ", ")))
	}
	return s, unknown, errors.Join(r.errs...)
}

// reader parses values and collects errors.
type reader struct {
	data  map[string]string
	known []string
	errs  []error
}

func (r *reader) invalid(key, why string) {
	r.errs = append(r.errs, fmt.Errorf("%s %q: %s", key, r.data[key], why))
}

func (r *reader) get(key string) (string, bool) {
	r.known = append(r.known, key)
	value, ok := r.data[key]
	value = strings.TrimSpace(value)
	return value, ok && value != ""
}

func (r *reader) text(key string, to *string) {
	if value, ok := r.get(key); ok {
		*to = value
	}
}

func (r *reader) url(key string, to *string, optional bool) {
	value, ok := r.get(key)
	if !ok {
		return
	}
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		suffix := ""
		if optional {
			suffix = ", or empty"
		}
		r.invalid(key, "must be a URL such as https://host:port"+suffix)
		return
	}
	*to = strings.TrimSuffix(value, "/")
}

// encrypted rejects a URL without TLS, because its requests have a token.
func (r *reader) encrypted(key, value string, allowHTTP bool) {
	u, err := url.Parse(value)
	if err != nil || u.Scheme == "https" || allowHTTP {
		return
	}
	r.invalid(key, "has no TLS, so tokens could be read on the network; use https, or set "+KeyAllowHTTP+" to true if the network is trusted")
}

func (r *reader) bool(key string, to *bool) {
	if value, ok := r.get(key); ok {
		b, err := strconv.ParseBool(value)
		if err != nil {
			r.invalid(key, "must be true or false")
			return
		}
		*to = b
	}
}

func (r *reader) duration(key string, to *time.Duration, least, most time.Duration) {
	if value, ok := r.get(key); ok {
		d, err := time.ParseDuration(value)
		if err != nil || d < least || d > most {
			r.invalid(key, fmt.Sprintf("must be a duration from %s to %s, such as 90s", least, most))
			return
		}
		*to = d
	}
}

func (r *reader) float(key string, to *float64, least, most float64) {
	if value, ok := r.get(key); ok {
		f, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(f) || f < least || f > most {
			r.invalid(key, fmt.Sprintf("must be a number from %g to %g", least, most))
			return
		}
		*to = f
	}
}

func (r *reader) int(key string, to *int, least, most int) {
	if value, ok := r.get(key); ok {
		n, err := strconv.Atoi(value)
		if err != nil || n < least || n > most {
			r.invalid(key, fmt.Sprintf("must be an integer from %d to %d", least, most))
			return
		}
		*to = n
	}
}
