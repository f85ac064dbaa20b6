package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	certresources "knative.dev/pkg/webhook/certificates/resources"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

func probe(ctx context.Context, r *readiness) int {
	w := httptest.NewRecorder()
	r.Handler(ctx)(w, httptest.NewRequest(http.MethodGet, "/readiness", nil))
	return w.Code
}

func TestReadiness(t *testing.T) {
	good, err := certresources.MakeSecret(t.Context(), "certs", v1alpha1.SystemNamespace, "webhook")
	if err != nil {
		t.Fatal(err)
	}
	empty := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "certs", Namespace: v1alpha1.SystemNamespace}}
	for name, tc := range map[string]struct {
		secret  *corev1.Secret
		unwired bool
		silent  bool
		ended   bool
		// conditions are what the condition of the process is at the probes before.
		conditions []bool
		want       int
	}{
		"ready with a certificate":        {secret: good, want: http.StatusOK},
		"not ready with an empty Secret":  {secret: empty, want: http.StatusServiceUnavailable},
		"not ready without a Secret":      {want: http.StatusServiceUnavailable},
		"not ready before it is wired":    {secret: good, unwired: true, want: http.StatusServiceUnavailable},
		"not ready before it listens":     {secret: good, silent: true, want: http.StatusServiceUnavailable},
		"not ready when the process ends": {secret: good, ended: true, want: http.StatusServiceUnavailable},
		"not ready before its condition":  {secret: good, conditions: []bool{false, false}, want: http.StatusServiceUnavailable},
		"ready with its condition":        {secret: good, conditions: []bool{false, true}, want: http.StatusOK},
		"ready after its condition":       {secret: good, conditions: []bool{true, false}, want: http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
			if tc.secret != nil {
				if err := index.Add(tc.secret); err != nil {
					t.Fatal(err)
				}
			}
			r := &readiness{}
			r.listening.Store(!tc.silent)
			if !tc.unwired {
				r.watch(&certificate{secrets: corelisters.NewSecretLister(index), name: "certs"})
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tc.ended {
				cancel()
			}
			for _, met := range tc.conditions {
				r.condition = func() bool { return met }
				probe(ctx, r)
			}
			if got := probe(ctx, r); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}
