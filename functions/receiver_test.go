package functions_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/utils/clock"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/functions"
)

const (
	traceA = "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-1111111111111111-01"
	traceB = "00-bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb-2222222222222222-01"
)

// limit is the number of events that the functions of the tests handle at a time.
const limit = 3

func receiver(t *testing.T, f functions.Function) *functions.Receiver {
	t.Helper()
	return functions.NewReceiver("test", limit, f, clock.RealClock{}, noop.Meter{})
}

// binary returns a request with an event in binary mode.
func binary(body string, header ...string) *http.Request {
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for k, v := range map[string]string{"Specversion": "1.0", "Id": "1", "Source": "/s", "Type": "t"} {
		r.Header.Set("Ce-"+k, v)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

func structured(body string) *http.Request {
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/cloudevents+json; charset=utf-8")
	return r
}

func TestResponsesHaveNoBody(t *testing.T) {
	succeeds := func(context.Context, event.Event) error { return nil }
	for name, tc := range map[string]struct {
		request *http.Request
		handle  functions.Function
		want    int
	}{
		"binary event":     {binary(`{"a":1}`), succeeds, http.StatusOK},
		"structured event": {structured(`{"specversion":"1.0","id":"1","source":"/s","type":"t","data":{}}`), succeeds, http.StatusOK},
		"no event":         {httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/", strings.NewReader("{}")), succeeds, http.StatusBadRequest},
		"event without id": {binary("{}", "Ce-Id", ""), succeeds, http.StatusBadRequest},
		"GET":              {httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/", nil), succeeds, http.StatusBadRequest},
		"body too large":   {binary(`"` + strings.Repeat("x", 65<<10) + `"`), succeeds, http.StatusBadRequest},
		"transient error": {
			binary("{}"), func(context.Context, event.Event) error { return errors.New("later") }, http.StatusServiceUnavailable,
		},
		"panic": {
			binary("{}"), func(context.Context, event.Event) error { panic("oh") }, http.StatusServiceUnavailable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			receiver(t, tc.handle).ServeHTTP(w, tc.request)
			if w.Code != tc.want || w.Body.Len() != 0 {
				t.Errorf("answer is %d %q, want %d and no body", w.Code, w.Body, tc.want)
			}
		})
	}
}

// The receiver does not know how many attempts the sender makes.
func TestALogOfATransientErrorPromisesNoRetry(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	ctx := logging.WithLogger(t.Context(), zap.New(core).Sugar())
	fails := func(context.Context, event.Event) error { return errors.New("later") }
	receiver(t, fails).ServeHTTP(httptest.NewRecorder(), binary("{}").WithContext(ctx))
	all := logs.All()
	if len(all) != 1 || all[0].Message != "Transient error; the event is retried, unless this was the last attempt" {
		t.Errorf("logs %+v", all)
	}
}

func TestTheTraceOfTheSenderIsContinued(t *testing.T) {
	for name, tc := range map[string]struct {
		request *http.Request
		want    string
	}{
		"header":           {binary("{}", "Traceparent", traceA), traceA},
		"event":            {binary("{}", "Ce-Traceparent", traceB), traceB},
		"header and event": {binary("{}", "Traceparent", traceA, "Ce-Traceparent", traceB), traceA},
		"none":             {binary("{}"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got trace.SpanContext
			r := receiver(t, func(ctx context.Context, _ event.Event) error {
				got = trace.SpanContextFromContext(ctx)
				return nil
			})
			r.ServeHTTP(httptest.NewRecorder(), tc.request)
			if tc.want == "" {
				if got.IsValid() {
					t.Errorf("trace is %s", got.TraceID())
				}
				return
			}
			if want := strings.Split(tc.want, "-")[1]; got.TraceID().String() != want {
				t.Errorf("trace is %s, want %s", got.TraceID(), want)
			}
		})
	}
}

func TestADisconnectedSenderDoesNotCancelTheFunction(t *testing.T) {
	ctx, disconnect := context.WithCancel(t.Context())
	var canceled error
	r := receiver(t, func(ctx context.Context, _ event.Event) error {
		disconnect()
		canceled = ctx.Err()
		if _, ok := ctx.Deadline(); !ok {
			t.Error("the context has no deadline")
		}
		return nil
	})
	r.ServeHTTP(httptest.NewRecorder(), binary("{}").WithContext(ctx))
	if canceled != nil {
		t.Errorf("the context was canceled: %v", canceled)
	}
}
