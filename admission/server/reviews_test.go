package server

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/breakwater-dev/breakwater/internal/webhookpath"
	"github.com/breakwater-dev/breakwater/test/manifest"
)

func TestALargeReviewWaitsForMemoryAndASmallOneDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		answer := make(chan struct{})
		handler := f.handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.ContentLength > smallReview {
				<-answer
			}
		}))
		post := func(size int) int {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, pathAt("key", now)+"?timeout=5s", bytes.NewReader(make([]byte, size))))
			return w.Code
		}
		var answered sync.WaitGroup
		const large = maxLargeBytes / 3
		for range maxLargeBytes / large {
			answered.Go(func() {
				if got := post(large); got != http.StatusOK {
					t.Errorf("a large review: status %d", got)
				}
			})
		}
		synctest.Wait()
		if got := post(smallReview); got != http.StatusOK {
			t.Errorf("a small review: status %d", got)
		}
		began := time.Now()
		if got := post(smallReview + 1); got != http.StatusServiceUnavailable || time.Since(began) != 5*time.Second {
			t.Errorf("a further large review: status %d after %s", got, time.Since(began))
		}
		answered.Go(func() {
			if got := post(smallReview + 1); got != http.StatusOK {
				t.Errorf("a large review after others were answered: status %d", got)
			}
		})
		synctest.Wait()
		close(answer)
		answered.Wait()
	})
}

// With failurePolicy Fail, a webhook that is killed for its memory denies the requests of all users.
func TestManyLargeReviewsStayWithinTheMemoryAndSmallOnesAreAnswered(t *testing.T) {
	resources := manifest.ResourcesOf(t, "../../config/core/420-webhook-deployment.yaml")
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(resources.SoftMemory))
	f := newFixture()
	url, stop, ended := startServerWith(t, f.handler, decodeReview)
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	object := `"object":{"apiVersion":"v1","kind":"ConfigMap","data":{"k":"` + strings.Repeat("x", 3<<20) + `"}}`
	large := `{"request":{"uid":"u",` + object + `,` + strings.Replace(object, "object", "oldObject", 1) + `}}`
	client := apiServer()
	send := func(body string) (int, error) {
		response, err := client.Post(url+webhookpath.Path([]byte("key"), webhookName, now)+"?timeout=30s", "application/json", strings.NewReader(body)) //nolint:noctx // our own server
		if err != nil {
			return 0, err
		}
		defer func() { _ = response.Body.Close() }()
		return response.StatusCode, nil
	}
	peak, done := make(chan uint64), make(chan struct{})
	go func() { peak <- largestHeap(done) }()
	var senders sync.WaitGroup
	for range 32 {
		senders.Go(func() { _, _ = send(large) })
		senders.Go(func() {
			if status, err := send(`{"request":{"uid":"u"}}`); err != nil || status != http.StatusOK {
				t.Errorf("a small review: %d, %v", status, err)
			}
		})
	}
	senders.Wait()
	close(done)
	if got := <-peak; got > uint64(resources.Memory) { //nolint:gosec // not negative
		t.Errorf("the heap had %d MiB", got>>20)
	} else {
		t.Logf("the heap had %d MiB", got>>20)
	}
}

// decodeReview decodes a review as Knative and a webhook do: the body is kept, and the objects are
// decoded.
func decodeReview(w http.ResponseWriter, r *http.Request) {
	var body bytes.Buffer
	var review admissionv1.AdmissionReview
	err := json.NewDecoder(io.TeeReader(r.Body, &body)).Decode(&review)
	var object, old unstructured.Unstructured
	if err == nil && review.Request.Object.Raw != nil {
		err = json.Unmarshal(review.Request.Object.Raw, &object.Object)
	}
	if err == nil && review.Request.OldObject.Raw != nil {
		err = json.Unmarshal(review.Request.OldObject.Raw, &old.Object)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
	runtime.KeepAlive(&body)
}

// largestHeap returns the largest heap until done is closed.
func largestHeap(done <-chan struct{}) (largest uint64) {
	for {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		largest = max(largest, m.HeapInuse)
		select {
		case <-done:
			return largest
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func TestARequestWithASlowBodyIsClosed(t *testing.T) {
	t.Parallel()
	f := newFixture()
	url, stop, ended := startServerWith(t, f.handler, func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // a server of the test
	c, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetDeadline(time.Now().Add(4 * readTimeout)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "POST "+pathAt("key", now)+" HTTP/1.1\r\nHost: webhook\r\nContent-Length: 1000\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c) // ends when the server closes
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("the connection is open: %s", answer)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
