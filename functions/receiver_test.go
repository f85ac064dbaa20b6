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
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/functions"
)

const (
	traceA = "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-1111111111111111-01"
	traceB = "00-bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb-2222222222222222-01"
)

func receiver(t *testing.T, f functions.Function) *functions.Receiver {
	t.Helper()
	r, err := functions.NewReceiver("test", f, clock.RealClock{}, noop.Meter{})
	if err != nil {
		t.Fatal(err)
	}
	return r
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

func TestAnAnswerHasNoBody(t *testing.T) {
	takes := func(context.Context, event.Event) error { return nil }
	for name, tc := range map[string]struct {
		request *http.Request
		handle  functions.Function
		want    int
	}{
		"a binary event":      {binary(`{"a":1}`), takes, http.StatusOK},
		"a structured event":  {structured(`{"specversion":"1.0","id":"1","source":"/s","type":"t","data":{}}`), takes, http.StatusOK},
		"no event at all":     {httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/", strings.NewReader("{}")), takes, http.StatusBadRequest},
		"an event without id": {binary("{}", "Ce-Id", ""), takes, http.StatusBadRequest},
		"a GET":               {httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/", nil), takes, http.StatusBadRequest},
		"a body too long":     {binary(`"` + strings.Repeat("x", 65<<10) + `"`), takes, http.StatusBadRequest},
		"a function that wants it again": {
			binary("{}"), func(context.Context, event.Event) error { return errors.New("later") }, http.StatusServiceUnavailable,
		},
		"a function that panics": {
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

func TestTheSendersTraceGoesOn(t *testing.T) {
	for name, tc := range map[string]struct {
		request *http.Request
		want    string
	}{
		"from the header":               {binary("{}", "Traceparent", traceA), traceA},
		"from the event":                {binary("{}", "Ce-Traceparent", traceB), traceB},
		"from the header, if both have": {binary("{}", "Traceparent", traceA, "Ce-Traceparent", traceB), traceA},
		"from nowhere":                  {binary("{}"), ""},
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

func TestASenderThatHangsUpDoesNotBreakOffTheWork(t *testing.T) {
	ctx, hangUp := context.WithCancel(t.Context())
	var during error
	r := receiver(t, func(ctx context.Context, _ event.Event) error {
		hangUp()
		during = ctx.Err()
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("the work has no deadline")
		}
		return nil
	})
	r.ServeHTTP(httptest.NewRecorder(), binary("{}").WithContext(ctx))
	if during != nil {
		t.Errorf("the work was broken off: %v", during)
	}
}
