package settings

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestWhatIsNotSaidIsTheDefault(t *testing.T) {
	got, err := Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default(), got); diff != "" {
		t.Error(diff)
	}
	b := got.Breaker.Backoff
	if b.Duration != 2*time.Minute || b.Factor != 2 || b.Jitter != 1 || b.Steps != 5 || b.Cap != time.Hour || got.Breaker.Threshold != 3 {
		t.Errorf("the breaker is not that of the description: %+v", got.Breaker)
	}
}

func TestEachSettingIsReadAndAMistakeNamesItsKey(t *testing.T) {
	for name, tc := range map[string]struct {
		key, value string
		wrong      bool
		check      func(Settings) bool
	}{
		"cluster":                     {KeyCluster, "shop-1", false, func(s Settings) bool { return s.Cluster == "shop-1" }},
		"cluster that is no name":     {KeyCluster, "Shop 1", true, nil},
		"centre":                      {KeyCentreURL, "https://centre:8443/", false, func(s Settings) bool { return s.CentreURL == "https://centre:8443" }},
		"centre without a scheme":     {KeyCentreURL, "centre:8443", true, nil},
		"rate":                        {KeyCentreCallsPerSecond, "0.5", false, func(s Settings) bool { return s.CentreCallsPerSecond == 0.5 }},
		"rate of nothing":             {KeyCentreCallsPerSecond, "0", true, nil},
		"rate that is no number":      {KeyCentreCallsPerSecond, "NaN", true, nil},
		"refusals":                    {KeyRefusalsPerMinute, "6", false, func(s Settings) bool { return s.RefusalsPerMinute == 6 }},
		"no refusals":                 {KeyRefusalsPerMinute, "0", true, nil},
		"deadline":                    {KeyClientDeadline, "90s", false, func(s Settings) bool { return s.ClientDeadline == 90*time.Second }},
		"deadline that is too long":   {KeyClientDeadline, "11m", true, nil},
		"threshold":                   {KeyBreakerThreshold, "5", false, func(s Settings) bool { return s.Breaker.Threshold == 5 }},
		"threshold of nothing":        {KeyBreakerThreshold, "0", true, nil},
		"backoff":                     {KeyBackoffDuration, "1s", false, func(s Settings) bool { return s.Breaker.Backoff.Duration == time.Second }},
		"backoff longer than its cap": {KeyBackoffDuration, "2h", true, nil},
		"no steps":                    {KeyBackoffSteps, "0", false, func(s Settings) bool { return s.Breaker.Backoff.Steps == 0 }},
		"a factor that shrinks":       {KeyBackoffFactor, "0.5", true, nil},
		"no CMDB":                     {KeyCMDBURL, "", false, func(s Settings) bool { return s.CMDBURL == "" }},
		"a CMDB":                      {KeyCMDBURL, "http://cmdb", false, func(s Settings) bool { return s.CMDBURL == "http://cmdb" }},
		"an explanation":              {keyExample, "anything", false, func(s Settings) bool { return s == Default() }},
		"a key that is misspelt":      {"backof-cap", "1h", true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(map[string]string{tc.key: tc.value})
			if tc.wrong {
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

func TestAMistakeLeavesWhatWasRight(t *testing.T) {
	s := NewStore()
	s.Update(t.Context(), &corev1.ConfigMap{Data: map[string]string{KeyCluster: "shop"}})
	s.Update(t.Context(), &corev1.ConfigMap{Data: map[string]string{KeyCluster: "shop", KeyBackoffCap: "soon"}})
	if got := s.Get().Cluster; got != "shop" {
		t.Errorf("cluster %s", got)
	}
	s.Update(t.Context(), nil)
	if got := s.Get().Cluster; got != Default().Cluster {
		t.Errorf("cluster %s after the ConfigMap went", got)
	}
}
