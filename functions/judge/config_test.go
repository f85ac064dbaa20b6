package judge

import (
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/functions"
)

func TestAnInvalidConfigurationNamesTheKeyAndNoSecret(t *testing.T) {
	const url = "https://prometheus.monitoring:9090"
	for name, tc := range map[string]struct {
		data   map[string]string
		secret map[string][]byte
		want   string // a part of the error, empty for none
	}{
		"the address":                   {data: map[string]string{"prometheus-url": url}},
		"a comment key":                 {data: map[string]string{"prometheus-url": url, "_example": "x"}},
		"all keys":                      {data: map[string]string{"prometheus-url": url, "query-timeout": "5s", "max-concurrent-queries": "3", "namespace-label": "k8s_namespace_name", "pod-label": "k8s_pod_name"}},
		"a token over https":            {data: map[string]string{"prometheus-url": url}, secret: map[string][]byte{"token": []byte("hidden")}},
		"a password over https":         {data: map[string]string{"prometheus-url": url}, secret: map[string][]byte{"username": []byte("u"), "password": []byte("hidden")}},
		"a tenant over http":            {data: map[string]string{"prometheus-url": "http://p", "prometheus-headers": "X-Scope-OrgID: team-a\n"}},
		"no address":                    {want: "prometheus-url is not set"},
		"no URL":                        {data: map[string]string{"prometheus-url": "prometheus:9090"}, want: "prometheus-url: not an http or https URL"},
		"a password":                    {data: map[string]string{"prometheus-url": "https://u:hidden@p"}, want: "contains a password"},
		"a password over http":          {data: map[string]string{"prometheus-url": "http://p"}, secret: map[string][]byte{"username": []byte("u"), "password": []byte("hidden")}, want: "only over https"},
		"a header with a credential":    {data: map[string]string{"prometheus-url": url, "prometheus-headers": "authorization: hidden"}, want: "prometheus-headers: header Authorization is not allowed"},
		"a token over http":             {data: map[string]string{"prometheus-url": "http://p"}, secret: map[string][]byte{"token": []byte("hidden")}, want: "only over https"},
		"a long timeout":                {data: map[string]string{"prometheus-url": url, "query-timeout": "1m"}, want: "query-timeout"},
		"no queries":                    {data: map[string]string{"prometheus-url": url, "max-concurrent-queries": "0"}, want: "max-concurrent-queries"},
		"a label that breaks the query": {data: map[string]string{"prometheus-url": url, "pod-label": `pod="a",x`}, want: "pod-label"},
		"a key with a typing error":     {data: map[string]string{"prometheus-url": url, "max-querys": "3"}, want: `unknown key "max-querys"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseConfig(tc.data, tc.secret)
			if (err == nil) != (tc.want == "") || err != nil && (!strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hidden")) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	got, err := parseConfig(map[string]string{"prometheus-url": url, "pod-label": "k8s_pod_name"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Labels{Namespace: "namespace", Pod: "k8s_pod_name"}, got.labels); diff != "" || got.concurrent != 10 {
		t.Errorf("%s, %d queries", diff, got.concurrent)
	}
}

func TestQueriesHaveTheCredentialsAndHeadersOfTheConfiguration(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		basic := user == "123" && password == "hidden" && r.Header.Get("X-Scope-OrgID") == "team-a"
		if r.URL.Path != "/prometheus/api/v1/query" || !basic && r.Header.Get("Authorization") != "Bearer hidden" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"matrix","result":[]}}`))
	}))
	defer server.Close()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: ConfigMapName}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: SecretName}}
	kube, clock := fake.NewClientset(cm, secret), clocktesting.NewFakePassiveClock(time.Now())
	sources := NewSources(kube.CoreV1(), clock)
	// Each configuration replaces the one before.
	for _, tc := range []struct {
		name, headers string
		secret        map[string]string
		denied        bool
	}{
		{"password and tenant", "X-Scope-OrgID: team-a", map[string]string{"username": "123", "password": "hidden\n"}, false},
		{"another tenant", "X-Scope-OrgID: team-b", map[string]string{"username": "123", "password": "hidden"}, true},
		{"another password", "X-Scope-OrgID: team-a", map[string]string{"username": "123", "password": "hidden2"}, true},
		{"no credentials", "X-Scope-OrgID: team-a", nil, true},
		{"token", "", map[string]string{"token": "hidden\n"}, false},
	} {
		cm.Data = map[string]string{"prometheus-url": server.URL + "/prometheus", "prometheus-headers": tc.headers}
		secret.Data = map[string][]byte{caKey: []byte(ca)}
		for key, value := range tc.secret {
			secret.Data[key] = []byte(value)
		}
		if _, err := kube.CoreV1().ConfigMaps(cm.Namespace).Update(t.Context(), cm, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := kube.CoreV1().Secrets(secret.Namespace).Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		clock.SetTime(clock.Now().Add(configTTL + time.Second))
		source, err := sources.Source(t.Context())
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		_, err = source.Reader.Range(t.Context(), "up", clock.Now().Add(-time.Minute), clock.Now(), time.Second)
		if denied := err != nil && strings.Contains(err.Error(), "401"); denied != tc.denied || err != nil && (!denied || strings.Contains(err.Error(), "hidden")) {
			t.Errorf("%s: got %v, denied: %t", tc.name, err, tc.denied)
		}
	}
}

// The target of a redirect may be another host, or one without TLS.
func TestTheTokenOfPrometheusFollowsNoRedirect(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a request to the target of the redirect, with token: %t", r.Header.Get("Authorization") != "")
	}))
	defer other.Close()
	server := httptest.NewTLSServer(http.RedirectHandler(other.URL+"/api/v1/query?secret=hidden", http.StatusTemporaryRedirect))
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	source, err := newSource(config{url: server.URL, timeout: time.Minute, concurrent: 1, headers: http.Header{"Authorization": {"Bearer hidden"}}, ca: ca}, clocktesting.NewFakePassiveClock(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	_, err = source.Reader.Range(t.Context(), "up", time.Now().Add(-time.Minute), time.Now(), time.Second)
	if err == nil || !strings.Contains(err.Error(), "redirect to "+other.URL) || strings.Contains(err.Error(), "hidden") {
		t.Errorf("got %v", err)
	}
}

func TestAConfigurationThatIsRestoredIsUsedAgain(t *testing.T) {
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: ConfigMapName},
		Data:       map[string]string{"prometheus-url": "https://prometheus.monitoring:9090"},
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: SecretName},
		Data:       map[string][]byte{caKey: []byte("x")},
	}
	kube, clock := fake.NewClientset(cm), clocktesting.NewFakePassiveClock(time.Now())
	sources := NewSources(kube.CoreV1(), clock)
	first, err := sources.Source(t.Context())
	if err != nil || first.Reader == nil {
		t.Fatalf("got %+v, %v", first, err)
	}
	secrets := kube.CoreV1().Secrets(v1alpha1.SystemNamespace)
	if _, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	clock.SetTime(clock.Now().Add(configTTL + time.Second))
	var invalid *functions.ConfigError
	if _, err := sources.Source(t.Context()); !errors.As(err, &invalid) {
		t.Fatalf("got %v, want a ConfigError", err)
	}
	if err := secrets.Delete(t.Context(), SecretName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	clock.SetTime(clock.Now().Add(configTTL + time.Second))
	if got, err := sources.Source(t.Context()); err != nil || got != first {
		t.Errorf("got %+v, %v, want the reader of before", got, err)
	}
}

// The judge knows the usual labels of pods, and no others.
func TestTheTargetNamesTheLabelOfPodsUnlessItIsTheDefault(t *testing.T) {
	for label, want := range map[string]string{"pod": "", "k8s_pod_name": "k8s_pod_name", "podname": "podname"} {
		target := release{namespace: "shop", patterns: patterns{newPods: []string{"new-1"}}}.target(&v1alpha1.ChangePod{}, Labels{Namespace: "namespace", Pod: label})
		if target.PodLabel != want || target.New != `namespace="shop",`+label+`=~"new-1"` {
			t.Errorf("pod-label %s: %+v, want podLabel %q", label, target, want)
		}
	}
}
