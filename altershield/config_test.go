package altershield

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func complete() map[string]string {
	return map[string]string{
		keyBaseURL: "http://altershield.example.com:8080/", keyPlatform: "breakwater", keyTenantCode: "tenant",
		keyChangeSceneKey: "scene", keyClusterName: "one",
	}
}

func configMap(data map[string]string) *corev1.ConfigMap { return &corev1.ConfigMap{Data: data} }

func secretOf(token string) *corev1.Secret {
	return &corev1.Secret{Data: map[string][]byte{TokenKey: []byte(token)}}
}

func TestNothingConfiguredIsNoServerAndNoError(t *testing.T) {
	for name, cm := range map[string]*corev1.ConfigMap{
		"no ConfigMap":    nil,
		"empty ConfigMap": configMap(nil),
		"an example only": configMap(map[string]string{"_example": "base-url: http://x"}),
		"blank base-url":  configMap(map[string]string{keyBaseURL: " \n"}),
		"all but the URL": configMap(map[string]string{keyPlatform: "breakwater", keyQPS: "5"}),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseConfig(cm, nil)
			if err != nil || got.Configured() {
				t.Errorf("configured %v, error %v", got.Configured(), err)
			}
		})
	}
}

func TestConfigKeysHaveDefaults(t *testing.T) {
	got, err := ParseConfig(configMap(complete()), secretOf("secret\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		BaseURL: "http://altershield.example.com:8080", HeaderPrefix: "X-AlterShield-", Platform: "breakwater", Token: "secret",
		TenantCode: "tenant", ChangeSceneKey: "scene", ChangePhase: "prod_phase", ChangeScenarioCode: "00",
		EffectiveTargetType: "pod", Creator: "breakwater", ClusterName: "one",
		ConnectTimeout: 2 * time.Second, HeaderTimeout: 5 * time.Second, AttemptTimeout: 6 * time.Second,
		TotalDeadline: 15 * time.Second, QPS: 100, Burst: 100, BreakerFailures: 5, BreakerPause: 10 * time.Second, MaxSkew: 5 * time.Minute,
	}
	if diff := cmp.Diff(plain(want), plain(got)); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
}

func TestConfigReadsEveryKey(t *testing.T) {
	data := complete()
	for key, value := range map[string]string{
		keyReleaseCheckScene: "release", keyHeaderPrefix: "X-OpsCloud-", keyChangePhase: "gray_phase", keyChangeScenarioCode: "10",
		keyEffectiveTargetType: "host", keyCreator: strings.Repeat("c", 56), keyConnectTimeout: "1s",
		keyHeaderTimeout: "2s", keyAttemptTimeout: "3s", keyTotalDeadline: "4s", keyQPS: "5", keyBurst: "6", keyBreakerFailures: "8", keyBreakerPause: "9s", keyMaxSkew: "7s",
	} {
		data[key] = value
	}
	got, err := ParseConfig(configMap(data), secretOf("secret"))
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		BaseURL: "http://altershield.example.com:8080", HeaderPrefix: "X-OpsCloud-", Platform: "breakwater", Token: "secret",
		TenantCode: "tenant", ChangeSceneKey: "scene", ReleaseCheckSceneKey: "release", ChangePhase: "gray_phase", ChangeScenarioCode: "10",
		EffectiveTargetType: "host", Creator: strings.Repeat("c", 56), ClusterName: "one",
		ConnectTimeout: time.Second, HeaderTimeout: 2 * time.Second, AttemptTimeout: 3 * time.Second,
		TotalDeadline: 4 * time.Second, QPS: 5, Burst: 6, BreakerFailures: 8, BreakerPause: 9 * time.Second, MaxSkew: 7 * time.Second,
	}
	if diff := cmp.Diff(plain(want), plain(got)); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
}

func TestConfigErrorsNameTheKeyAndTheFix(t *testing.T) {
	for name, tc := range map[string]struct {
		key, value, want string
	}{
		"a mistyped key":                 {"base_url", "http://x", "base_url: is not a known key: correct or remove it"},
		"not a URL":                      {keyBaseURL, "altershield:8080", "base-url: is not an http or https URL"},
		"a password in the URL":          {keyBaseURL, "http://u:p@x", "base-url: contains a user name"},
		"a query in the URL":             {keyBaseURL, "http://x?y=1", "base-url: contains a query or fragment"},
		"an invalid header prefix":       {keyHeaderPrefix, "X Alter", "header-prefix: is not a valid prefix of a header name"},
		"a platform over 32 bytes":       {keyPlatform, strings.Repeat("变", 11), "platform: has 33 bytes, the server accepts at most 32"},
		"a scene over 256 bytes":         {keyChangeSceneKey, strings.Repeat("s", 257), "change-scene-key: has 257 bytes"},
		"a creator over 56 bytes":        {keyCreator, strings.Repeat("c", 57), "creator: has 57 bytes, the server accepts at most 56"},
		"an unknown phase":               {keyChangePhase, "prod", "change-phase: is \"prod\": use one of dev_phase"},
		"an unknown scenario":            {keyChangeScenarioCode, "99", "change-scenario-code: is \"99\": use one of XX"},
		"a duration without a unit":      {keyTotalDeadline, "15", "total-deadline: is \"15\": use a duration above zero"},
		"a negative duration":            {keyHeaderTimeout, "-1s", "header-timeout: is \"-1s\""},
		"a deadline above the maximum":   {keyTotalDeadline, "16s", "total-deadline: is 16s, longer than 15s"},
		"an attempt beyond the deadline": {keyAttemptTimeout, "16s", "attempt-timeout: is 16s, longer than total-deadline (15s)"},
		"a rate of zero":                 {keyQPS, "0", "qps: is \"0\": use a whole number from 1"},
		"a burst that is no number":      {keyBurst, "many", "burst: is \"many\""},
		"no platform":                    {keyPlatform, "", "platform: is missing"},
		"no tenant":                      {keyTenantCode, "", "tenant-code: is missing"},
		"no scene":                       {keyChangeSceneKey, "", "change-scene-key: is missing"},
		"no cluster":                     {keyClusterName, "", "cluster-name: is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			data := complete()
			data[tc.key] = tc.value
			_, err := ParseConfig(configMap(data), secretOf("secret"))
			if err == nil || !strings.Contains(err.Error(), "config-altershield "+tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestConfigWithoutATokenIsAnErrorThatNamesTheSecret(t *testing.T) {
	for name, secret := range map[string]*corev1.Secret{"no Secret": nil, "an empty one": secretOf(" \n")} {
		_, err := ParseConfig(configMap(complete()), secret)
		if err == nil || !strings.Contains(err.Error(), "secret altershield-token: key token is missing") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestConfigReportsAllMistakesTogether(t *testing.T) {
	_, err := ParseConfig(configMap(map[string]string{keyBaseURL: "http://x", keyQPS: "x"}), nil)
	for _, want := range []string{keyQPS, keyPlatform, keyTenantCode, keyChangeSceneKey, keyClusterName, SecretName} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}

func TestTheTokenIsNeverPrinted(t *testing.T) {
	const token = "do-not-print-me"
	config := Config{BaseURL: "http://x", Token: token}
	client, clients := New(config), &CurrentClient{}
	clients.For(config)
	asJSON, err := json.Marshal(map[string]any{"config": config, "pointer": &config})
	if err != nil {
		t.Fatal(err)
	}
	printed := string(asJSON) + config.String() + config.GoString()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		printed += fmt.Sprintf(verb+verb+verb+verb+verb, config, &config, client, *client, clients)
		printed += fmt.Sprintf(verb, struct{ C Config }{config})
	}
	if strings.Contains(printed, token) || strings.Contains(printed, fmt.Sprintf("%x", token)) {
		t.Errorf("the token is in %s", printed)
	}
	if !strings.Contains(printed, Redacted) {
		t.Error("printed configs do not show that a token is set")
	}
}

// Nothing that authentication depends on is taken from a configuration with a mistake in it.
func TestACallbackDependsOnlyOnTheKeysThatItIsAuthenticatedBy(t *testing.T) {
	want := Config{Token: "secret", PreviousToken: "previous", Platform: "breakwater", HeaderPrefix: "X-OpsCloud-", MaxSkew: time.Minute, TotalDeadline: 14 * time.Second}
	atMost := want
	atMost.TotalDeadline = MaxTotalDeadline
	for name, tc := range map[string]struct {
		key, value string
		// want is empty if the mistake is an error.
		want Config
	}{
		"no mistake":                   {keyQPS, "5", want},
		"a mistyped key":               {"base_url", "http://x", want},
		"not a URL":                    {keyBaseURL, "altershield:8080", want},
		"no server":                    {keyBaseURL, "", want},
		"no tenant":                    {keyTenantCode, "", want},
		"no scene":                     {keyChangeSceneKey, "", want},
		"no cluster":                   {keyClusterName, "", want},
		"a scene over 256 bytes":       {keyReleaseCheckScene, strings.Repeat("s", 257), want},
		"an unknown phase":             {keyChangePhase, "prod", want},
		"an unknown scenario":          {keyChangeScenarioCode, "99", want},
		"a creator over 56 bytes":      {keyCreator, strings.Repeat("c", 57), want},
		"a timeout without a unit":     {keyConnectTimeout, "1", want},
		"a negative timeout":           {keyHeaderTimeout, "-1s", want},
		"an attempt over the deadline": {keyAttemptTimeout, "15s", want},
		"a rate of zero":               {keyQPS, "0", want},
		"a burst that is no number":    {keyBurst, "many", want},
		"no failures":                  {keyBreakerFailures, "0", want},
		"a pause without a unit":       {keyBreakerPause, "10", want},
		"a deadline without a unit":    {keyTotalDeadline, "15", atMost},
		"a negative deadline":          {keyTotalDeadline, "-1s", atMost},
		"a deadline above the maximum": {keyTotalDeadline, "16s", atMost},
		"no platform":                  {keyPlatform, "", Config{}},
		"a platform over 32 bytes":     {keyPlatform, strings.Repeat("p", 33), Config{}},
		"an invalid header prefix":     {keyHeaderPrefix, "X Alter", Config{}},
		"a skew without a unit":        {keyMaxSkew, "300", Config{}},
		"a negative skew":              {keyMaxSkew, "-1s", Config{}},
	} {
		t.Run(name, func(t *testing.T) {
			data := complete()
			data[keyHeaderPrefix], data[keyMaxSkew], data[keyTotalDeadline] = "X-OpsCloud-", "1m", "14s"
			data[tc.key] = tc.value
			secret := secretOf("secret")
			secret.Data[PreviousTokenKey] = []byte("previous")
			got, err := ParseCallbackConfig(configMap(data), secret)
			if diff := cmp.Diff(plain(tc.want), plain(got)); diff != "" || (err != nil) != (tc.want == Config{}) {
				t.Errorf("error %v, -want +got: %s", err, diff)
			}
			if err != nil && !strings.Contains(err.Error(), tc.key) {
				t.Errorf("error %v does not name %s", err, tc.key)
			}
		})
	}
	for name, url := range map[string]string{"a server": "http://x", "an invalid server": "x"} {
		data := complete()
		data[keyBaseURL] = url
		if got, err := ParseCallbackConfig(configMap(data), secretOf("")); err == nil || got != (Config{}) {
			t.Errorf("%s without a token: got %+v, %v", name, got, err)
		}
	}
}
