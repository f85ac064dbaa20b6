package server

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"knative.dev/pkg/controller"
	certresources "knative.dev/pkg/webhook/certificates/resources"

	"github.com/breakwater-dev/breakwater/internal/connlimit"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/webhookpath"
)

const (
	// maxReviewBytes limits the body of a request. An AdmissionReview has two versions of an object, etcd stores up to
	// 1.5 MiB of each, and a byte may have 6 in a review: the API server writes < as \u003c. Otherwise the author of a
	// release could make it too large to be judged.
	maxReviewBytes = 20 << 20
	// replacedKeyLife is how long paths of a replaced certificate are accepted: API
	// servers and replicas learn about a new certificate at different times.
	replacedKeyLife = 2 * time.Minute
)

// callers serves only clients that know the path of a webhook: the API server, replicas
// that forward its requests, and the controller that probes budgets. Other clients get
// 403 before the body of their request is read.
type callers struct {
	// secret returns the Secret with the certificate.
	secret func() (*corev1.Secret, error)
	// configured reports whether a webhook configuration has a path. Such a path is
	// accepted however old it is, so that requests are decided while nothing can
	// replace it.
	configured func(path string) bool
	rejected   metrics.Counter
	// reviews bounds the bytes of the AdmissionReviews in progress, and unread counts those that it did not let pass.
	reviews *reviews
	unread  metrics.Counter
	clock   clock.PassiveClock

	mu sync.Mutex
	// key is the current key; replaced was the key until replacedAt.
	key, replaced []byte
	replacedAt    time.Time
}

// handler returns a handler that checks the path and then calls next. next gets the
// path without the secret, which must not appear in logs and traces.
func (c *callers) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !c.accepts(r.URL.Path) {
			c.rejected.Add(r.Context(), 1)
			w.Header().Set("Connection", "close")
			http.Error(w, "the path of the request has no valid secret: only clients that read it from the webhook configuration may call", http.StatusForbidden)
			return
		}
		connlimit.Authenticated(r.Context())
		release, err := c.reviews.acquire(w, r)
		if err != nil {
			c.unread.Add(r.Context(), 1)
			w.Header().Set("Connection", "close")
			http.Error(w, "too many admission requests are in progress, and this one waited until its timeout: try again", http.StatusServiceUnavailable)
			return
		}
		defer release()
		r = r.WithContext(webhookpath.WithPath(r.Context(), r.URL.Path))
		stripped := *r.URL
		stripped.Path, stripped.RawPath = webhookpath.WithoutSecret(r.URL.Path), ""
		r.URL, r.RequestURI = &stripped, stripped.RequestURI()
		r.Body = http.MaxBytesReader(w, r.Body, maxReviewBytes)
		next.ServeHTTP(w, r)
	})
}

func (c *callers) accepts(path string) bool {
	now := c.clock.Now()
	for _, key := range c.keys(now) {
		if period, ok := webhookpath.Period(key, path); ok {
			return webhookpath.Recent(period, now) || c.configured(path)
		}
	}
	return false
}

// watch looks at the key when the Secret changes: a replica that had no request before the change has to accept paths of
// the replaced certificate, too.
func (c *callers) watch(secrets cache.SharedInformer) error {
	_, err := secrets.AddEventHandler(controller.HandleAll(func(any) { c.keys(c.clock.Now()) }))
	if err != nil {
		return fmt.Errorf("add event handler: %w", err)
	}
	return nil
}

// keys returns the key of the certificate, and the one that it replaced lately.
func (c *callers) keys(now time.Time) [][]byte {
	secret, err := c.secret()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		if key := secret.Data[certresources.ServerKey]; len(key) > 0 && !bytes.Equal(key, c.key) {
			c.key, c.replaced, c.replacedAt = key, c.key, now
		}
	}
	if c.replaced == nil || now.Sub(c.replacedAt) > replacedKeyLife {
		return [][]byte{c.key}
	}
	return [][]byte{c.key, c.replaced}
}
