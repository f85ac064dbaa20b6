package callback_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/breakwater-dev/breakwater/altershield"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
)

// A verdict that cannot be authenticated because the API server does not answer is unhandled, and is
// not counted as if no token were set.
func TestACallbackIsCountedByWhatItsConfigurationLacks(t *testing.T) {
	for name, tc := range map[string]struct {
		configure func(*ft.Cluster)
		want      string
	}{
		"no configuration":              {func(*ft.Cluster) {}, "unconfigured"},
		"no server and no token":        {func(c *ft.Cluster) { c.Configure("", "") }, "unconfigured"},
		"a server without a token":      {func(c *ft.Cluster) { c.Configure("http://server.example.com", "") }, "misconfigured"},
		"an invalid max-skew":           {func(c *ft.Cluster) { misconfigure(t, c, "max-skew", "-1s") }, "misconfigured"},
		"an API server without answers": {disconnect, "unhandled"},
	} {
		t.Run(name, func(t *testing.T) {
			c := ft.New(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
			tc.configure(c)
			h, reader := newFixture(t, c), sdkmetric.NewManualReader()
			h.options.Meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test")
			h.setStoreTimeout(t, shortTimeout)
			expect(t, h.post(batchCallback("n")), http.StatusServiceUnavailable)
			h.expectNoEffect(t)
			if diff := cmp.Diff(map[string]int64{tc.want: 1}, resultsOf(t, reader)); diff != "" {
				t.Errorf("-want +got: %s", diff)
			}
		})
	}
}

// The server does not repeat a verdict, and retrieve confirms only a pass.
func TestAMistakeInAKeyThatCallbacksDoNotNeedLosesNoVerdict(t *testing.T) {
	for name, mistake := range map[string][2]string{
		"a rate of zero":                  {"qps", "0"},
		"a duration without a unit":       {"breaker-pause", "10"},
		"a key of a later version":        {"later-key", "1"},
		"no URL":                          {"base-url", "server.example.com"},
		"a deadline without a unit":       {"total-deadline", "15"},
		"a deadline shorter than attempt": {"total-deadline", "1s"},
		"no tenant":                       {"tenant-code", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newConfiguredFixture(t, ft.NewRelease(orderStarting), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
			h.ConfigureServer(t, map[string]string{mistake[0]: mistake[1]})
			expect(t, h.post(batchCallback("n")), http.StatusOK)
			if got := h.delivered(t); len(got) != 1 || got[0].NodeID != "n" || got[0].Verdict != "fail" {
				t.Errorf("delivered %+v", got)
			}
			expect(t, h.post(batchCallback("n"), altershield.DefaultHeaderPrefix+altershield.HeaderSign, strings.Repeat("X", 44)), http.StatusUnauthorized)
			h.setStoreTimeout(t, shortTimeout)
			expect(t, h.post(orderCallback("early")), http.StatusOK)
			if inbox := h.inbox(); len(inbox) != 1 || inbox[0].NodeID != "early" {
				t.Errorf("the inbox is %+v", inbox)
			}
		})
	}
}

// misconfigure configures a server, its token and a mistake.
func misconfigure(t *testing.T, c *ft.Cluster, key, value string) {
	t.Helper()
	c.Configure("http://server.example.com", ft.Token)
	c.ConfigureServer(t, map[string]string{key: value})
}

// A malformed callback is an error of the sender; a body that is too large or slow need not be one.
func TestACallbackIsCountedAsUnreadIfItsBodyIsNotRead(t *testing.T) {
	for name, tc := range map[string]struct {
		body   io.Reader
		status int
		want   string
	}{
		"a body that is too large":        {strings.NewReader(strings.Repeat(" ", 1<<20+1)), http.StatusRequestEntityTooLarge, "unread"},
		"a body that does not arrive":     {iotest.ErrReader(os.ErrDeadlineExceeded), http.StatusRequestTimeout, "unread"},
		"a body that is read, no verdict": {strings.NewReader("hello"), http.StatusBadRequest, "malformed"},
		"a body of another signature":     {strings.NewReader("hullo"), http.StatusUnauthorized, "unauthenticated"},
	} {
		t.Run(name, func(t *testing.T) {
			h, reader := newConfiguredFixture(t), sdkmetric.NewManualReader()
			h.options.Meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test")
			h.setStoreTimeout(t, shortTimeout)
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, tc.body)
			altershield.SignHeader(r.Header, altershield.DefaultHeaderPrefix, "breakwater", []byte("hello"), ft.Token, ft.Now())
			w := httptest.NewRecorder()
			h.handler.ServeHTTP(w, r)
			expect(t, w, tc.status)
			if diff := cmp.Diff(map[string]int64{tc.want: 1}, resultsOf(t, reader)); diff != "" {
				t.Errorf("-want +got: %s", diff)
			}
		})
	}
}

// disconnect makes every read of the configuration fail.
func disconnect(c *ft.Cluster) {
	c.Kube.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("no route to host")
	})
}

// resultsOf returns the counted callbacks by result.
func resultsOf(t *testing.T, reader *sdkmetric.ManualReader) map[string]int64 {
	t.Helper()
	var data metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int64{}
	for _, m := range data.ScopeMetrics[0].Metrics {
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "breakwater_callback_results_total" {
			for _, p := range sum.DataPoints {
				result, _ := p.Attributes.Value("result")
				counts[result.AsString()] += p.Value
			}
		}
	}
	return counts
}
