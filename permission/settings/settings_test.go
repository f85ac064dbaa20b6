package settings

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/logging"
)

func TestMissingKeysHaveTheDefault(t *testing.T) {
	got, unknown, err := Parse(nil)
	if err != nil || len(unknown) > 0 {
		t.Fatal(unknown, err)
	}
	if diff := cmp.Diff(Default(), got); diff != "" {
		t.Error(diff)
	}
	b := got.Breaker.Backoff
	if b.Duration != 2*time.Minute || b.Factor != 2 || b.Jitter != 1 || b.Steps != 5 || b.Cap != time.Hour || got.Breaker.Threshold != 3 {
		t.Errorf("the breaker differs from the documented defaults: %+v", got.Breaker)
	}
}

func TestParseReadsEachKeyAndNamesInvalidKeys(t *testing.T) {
	for name, tc := range map[string]struct {
		key, value string
		invalid    bool
		check      func(Settings) bool
	}{
		"cluster":                      {KeyCluster, "shop-1", false, func(s Settings) bool { return s.Cluster == "shop-1" }},
		"invalid cluster name":         {KeyCluster, "Shop 1", true, nil},
		"centre":                       {KeyCentreURL, "https://centre:8443/", false, func(s Settings) bool { return s.CentreURL == "https://centre:8443" }},
		"centre without a scheme":      {KeyCentreURL, "centre:8443", true, nil},
		"centre outside without TLS":   {KeyCentreURL, "http://centre.example", true, nil},
		"centre in the cluster":        {KeyCentreURL, "https://centre.tools.svc", false, func(s Settings) bool { return s.CentreURL == "https://centre.tools.svc" }},
		"server outside without TLS":   {KeyInitActionServerURL, "http://10.0.0.1", true, nil},
		"name that is not a Service":   {KeyInitActionServerURL, "http://svc", true, nil},
		"TLS is not required":          {KeyAllowHTTP, "true", false, func(s Settings) bool { return s.AllowHTTP }},
		"neither true nor false":       {KeyAllowHTTP, "perhaps", true, nil},
		"rate":                         {KeyCentreCallsPerSecond, "0.5", false, func(s Settings) bool { return s.CentreCallsPerSecond == 0.5 }},
		"rate of zero":                 {KeyCentreCallsPerSecond, "0", true, nil},
		"rate that is not a number":    {KeyCentreCallsPerSecond, "NaN", true, nil},
		"authentication limit":         {KeyUnauthenticatedRequestsPerMinute, "6", false, func(s Settings) bool { return s.UnauthenticatedRequestsPerMinute == 6 }},
		"authentication limit of zero": {KeyUnauthenticatedRequestsPerMinute, "0", true, nil},
		"deadline":                     {KeyInitContainerDeadline, "90s", false, func(s Settings) bool { return s.InitContainerDeadline == 90*time.Second }},
		"deadline above the maximum":   {KeyInitContainerDeadline, "11m", true, nil},
		"threshold":                    {KeyBreakerThreshold, "5", false, func(s Settings) bool { return s.Breaker.Threshold == 5 }},
		"threshold of zero":            {KeyBreakerThreshold, "0", true, nil},
		"backoff":                      {KeyBackoffDuration, "1s", false, func(s Settings) bool { return s.Breaker.Backoff.Duration == time.Second }},
		"backoff longer than its cap":  {KeyBackoffDuration, "2h", true, nil},
		"zero steps":                   {KeyBackoffSteps, "0", false, func(s Settings) bool { return s.Breaker.Backoff.Steps == 0 }},
		"factor below one":             {KeyBackoffFactor, "0.5", true, nil},
		"empty CMDB URL":               {KeyCMDBURL, "", false, func(s Settings) bool { return s.CMDBURL == "" }},
		"CMDB URL":                     {KeyCMDBURL, "http://cmdb", false, func(s Settings) bool { return s.CMDBURL == "http://cmdb" }},
		"example key":                  {keyExample, "anything", false, func(s Settings) bool { return s == Default() }},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := Parse(map[string]string{tc.key: tc.value})
			if tc.invalid {
				key := tc.key
				if name == "backoff longer than its cap" {
					key = KeyBackoffCap
				}
				if err == nil || !strings.Contains(err.Error(), key) {
					t.Errorf("%v does not name %s", err, key)
				}
				return
			}
			if err != nil || !tc.check(got) {
				t.Errorf("%+v %v", got, err)
			}
		})
	}
}

func TestTokensAreSentWithoutTLSOnlyIfThatIsAllowed(t *testing.T) {
	for key, url := range map[string]string{KeyCentreURL: "http://permission-centre.altershieldoperator-system.svc.cluster.local", KeyInitActionServerURL: "http://10.0.0.1"} {
		_, _, err := Parse(map[string]string{key: url})
		if err == nil || !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), "set "+KeyAllowHTTP+" to true") {
			t.Errorf("%s %s: %v, want an error that names the key and the fix", key, url, err)
		}
		if _, _, err := Parse(map[string]string{key: url, KeyAllowHTTP: "true"}); err != nil {
			t.Errorf("%s %s with %s: %v", key, url, KeyAllowHTTP, err)
		}
	}
}

// An upgrade may rename a setting.
func TestAnUnknownKeyIsReportedAndTheOtherKeysAreUsed(t *testing.T) {
	got, unknown, err := Parse(map[string]string{KeyCluster: "shop", KeyBreakerThreshold: "5", "refusals-per-minute": "6", "backof-cap": "1h"})
	if err != nil || got.Cluster != "shop" || got.Breaker.Threshold != 5 {
		t.Errorf("cluster %s, threshold %d, %v", got.Cluster, got.Breaker.Threshold, err)
	}
	if diff := cmp.Diff([]string{"backof-cap", "refusals-per-minute"}, unknown); diff != "" {
		t.Error(diff)
	}
}

func TestTheClusterIsNotTheDefaultIfItsKeyMayBeMisspelled(t *testing.T) {
	_, _, err := Parse(map[string]string{"clustr": "shop"})
	if err == nil || !strings.Contains(err.Error(), KeyCluster+" ") || !strings.Contains(err.Error(), "clustr") {
		t.Errorf("%v, want an error that names both keys", err)
	}
}

func configMap(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "uid"}, Data: data}
}

func TestInvalidSettingsDoNotReplaceValidOnes(t *testing.T) {
	s := NewStore()
	s.Update(t.Context(), configMap(map[string]string{KeyCluster: "shop"}))
	s.Update(t.Context(), configMap(map[string]string{KeyCluster: "shop", KeyBackoffCap: "soon"}))
	if got := s.Get().Cluster; got != "shop" {
		t.Errorf("cluster %s", got)
	}
}

// kubectl replace --force deletes and creates it. The default cluster may be the name of another one.
func TestTheDeletionOfTheConfigMapKeepsTheSettings(t *testing.T) {
	for name, deleted := range map[string]*corev1.ConfigMap{"a watcher of ConfigMaps": {}, "an informer": nil} {
		s := NewStore()
		s.Update(t.Context(), configMap(map[string]string{KeyCluster: "shop"}))
		s.Update(t.Context(), deleted)
		if got := s.Get().Cluster; got != "shop" {
			t.Errorf("%s: cluster %s after the deletion, want shop", name, got)
		}
		s.Update(t.Context(), configMap(map[string]string{KeyCluster: "shop-2"}))
		if got := s.Get().Cluster; got != "shop-2" {
			t.Errorf("%s: cluster %s after it is created again, want shop-2", name, got)
		}
	}
}

func TestAnUnknownKeyDoesNotDiscardTheOthers(t *testing.T) {
	s := NewStore()
	s.Update(t.Context(), configMap(map[string]string{KeyCluster: "shop", "rejected-requests-per-minute": "6"}))
	if got := s.Get().Cluster; got != "shop" {
		t.Errorf("cluster %s, want shop", got)
	}
}

func TestAProcessThatStartsWithInvalidSettingsEnds(t *testing.T) {
	ctx := logging.WithLogger(t.Context(), zap.NewNop().WithOptions(zap.WithFatalHook(zapcore.WriteThenPanic)).Sugar())
	for name, first := range map[string]*corev1.ConfigMap{"a watcher of ConfigMaps": {}, "an informer": nil} {
		t.Run(name, func(t *testing.T) {
			s := NewStore()
			s.Update(ctx, first)
			defer func() {
				if recover() == nil {
					t.Errorf("it continues with %+v", s.Get())
				}
			}()
			s.Update(ctx, configMap(map[string]string{KeyCluster: "shop", KeyBackoffCap: "soon"}))
		})
	}
}
