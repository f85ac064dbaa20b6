package notify_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	"github.com/breakwater-dev/breakwater/functions/notify"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
)

// webhook records the messages that it gets, and answers with a status.
type webhook struct {
	*httptest.Server
	texts  []string
	status int
}

func newWebhook(t *testing.T) *webhook {
	t.Helper()
	w := &webhook{status: http.StatusOK}
	w.Server = httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		var message struct{ Text string }
		if err != nil || json.Unmarshal(raw, &message) != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("got %s %s, %v", r.Method, raw, err)
		}
		w.texts = append(w.texts, message.Text)
		answer.WriteHeader(w.status)
	}))
	t.Cleanup(w.Close)
	return w
}

// newFunction returns the function with the settings of config-notify.
func newFunction(t *testing.T, address string, settings map[string]string) (functions.Function, *clocktesting.FakePassiveClock) {
	t.Helper()
	return newMeasuredFunction(t, address, settings, noop.Meter{})
}

// newMeasuredFunction is newFunction with a meter.
func newMeasuredFunction(t *testing.T, address string, settings map[string]string, meter metric.Meter) (functions.Function, *clocktesting.FakePassiveClock) {
	t.Helper()
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: name}
	}
	kube := fake.NewClientset(
		&corev1.Secret{ObjectMeta: meta(notify.SecretName), Data: map[string][]byte{"url": []byte(address)}},
		&corev1.ConfigMap{ObjectMeta: meta(notify.ConfigName), Data: settings})
	clock := clocktesting.NewFakePassiveClock(ft.Now())
	return notify.New(kube.CoreV1(), ft.EventKeys(), clock, meter).Handle, clock
}

func suspended(name string) events.ChangeWorkload {
	return events.ChangeWorkload{
		Verb: events.VerbSuspended, Namespace: ft.Namespace, Name: ft.Release, UID: "release", Version: ft.Version, Attempt: 2,
		EntryTimeUnix: ft.Now().Unix(), Reason: v1alpha1.ReasonCheckFailed, Message: "p99 <!channel> & more",
		Workload: events.Workload{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
	}
}

func eventOf(t *testing.T, d events.Data) event.Event {
	t.Helper()
	e, err := events.New(d)
	if err != nil {
		t.Fatal(err)
	}
	return ft.SignedByController(t, e)
}

// numbered returns a different event for each number.
func numbered(n int64) events.ChangeWorkload {
	d := suspended("web")
	d.EntryTimeUnix -= n
	return d
}

func TestAMessageIsSentOnceForAnEvent(t *testing.T) {
	w := newWebhook(t)
	f, _ := newFunction(t, w.URL, nil)
	for range 2 {
		if err := f(t.Context(), eventOf(t, suspended("web"))); err != nil {
			t.Fatal(err)
		}
	}
	want := "Deployment default/web: release suspended (CheckFailed): p99 &lt;!channel&gt; &amp; more"
	if len(w.texts) != 1 || w.texts[0] != want {
		t.Errorf("got %q, want %q", w.texts, want)
	}
}

func TestTextOfAServerOrUserMentionsNobodyAndHasNoLink(t *testing.T) {
	const text = "@all [x](https://evil.example) https://evil.example <!here> [x][1]\n\n[1]: evil.example"
	w := newWebhook(t)
	f, _ := newFunction(t, w.URL, map[string]string{"template": "@ops [dashboard](https://own.example): {{.Reason}} {{.Message}} {{.User}}"})
	d := suspended("web")
	d.Reason, d.Message, d.User = text, text, text
	if err := f(t.Context(), eventOf(t, d)); err != nil {
		t.Fatal(err)
	}
	rest, ok := strings.CutPrefix(w.texts[0], "@ops [dashboard](https://own.example): ")
	if !ok {
		t.Errorf("the text of the template has changed: %q", w.texts[0])
	}
	for _, active := range []string{"@all", "](", "][", "]:", "://", "<"} {
		if strings.Contains(rest, active) {
			t.Errorf("%q contains %q", rest, active)
		}
	}
	if shown := strings.ReplaceAll(rest, "\u200b", ""); strings.Count(shown, "@all [x](https://evil.example)") != 3 {
		t.Errorf("without zero-width spaces the text is %q", shown)
	}
}

// The activator delivers the events that waited for the first pod at the same time.
func TestAMessageIsSentOnceForAnEventThatArrivesTwiceAtATime(t *testing.T) {
	var messages atomic.Int32
	w := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { messages.Add(1) }))
	t.Cleanup(w.Close)
	f, _ := newFunction(t, w.URL, nil)
	e := eventOf(t, suspended("web"))
	arrive := make(chan struct{})
	var deliveries sync.WaitGroup
	for range 5 { // within the burst
		deliveries.Go(func() {
			<-arrive
			if err := f(t.Context(), e); err != nil {
				t.Error(err)
			}
		})
	}
	close(arrive)
	deliveries.Wait()
	if got := messages.Load(); got != 1 {
		t.Errorf("%d messages, want 1", got)
	}
}

func TestAnInvalidSettingIsNamedAndItsDefaultUsed(t *testing.T) {
	for name, tc := range map[string]struct {
		settings map[string]string
		want     string
	}{
		"a template":                 {map[string]string{"template": "{{.Workload}} {{.Failed}}/{{.Pods}}"}, "web 0/0"},
		"a template of another data": {map[string]string{"template": "{{.Nonsense}}"}, "key template of ConfigMap config-notify"},
		"a malformed template":       {map[string]string{"template": "{{"}, "key template of ConfigMap config-notify"},
		"a limit that is no number":  {map[string]string{"messages-per-minute": "many"}, `"many" is not a number from 1 to 600`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWebhook(t)
			f, _ := newFunction(t, w.URL, tc.settings)
			if err := f(t.Context(), eventOf(t, suspended("web"))); err != nil {
				t.Fatal(err)
			}
			if len(w.texts) != 1 || !strings.Contains(w.texts[0], tc.want) || !strings.Contains(w.texts[0], "web") {
				t.Errorf("got %q, want %q", w.texts, tc.want)
			}
		})
	}
}

func TestATemplateMayRelyOnAValue(t *testing.T) {
	const defaultText = "Deployment default/web: release suspended (CheckFailed)"
	for name, tc := range map[string]struct {
		template, version string
		want              string
		invalid           bool
	}{
		"that the event has":           {"{{slice .Version 0 8}} {{slice .Reason 0 5}} {{slice .Release 0 3}}", "0123456789abcdef", "01234567 Check " + ft.Release[:3], false},
		"that is shorter":              {"{{slice .Version 0 8}}", "0123", defaultText, true},
		"that the event does not have": {"{{slice .User 0 3}}", "0123456789abcdef", defaultText, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWebhook(t)
			f, _ := newFunction(t, w.URL, map[string]string{"template": tc.template})
			d := suspended("web")
			d.Version = tc.version
			if err := f(t.Context(), eventOf(t, d)); err != nil {
				t.Fatal(err)
			}
			if len(w.texts) != 1 || !strings.HasPrefix(w.texts[0], tc.want) ||
				strings.Contains(w.texts[0], "whose defaults are used: key template of ConfigMap config-notify") != tc.invalid {
				t.Errorf("got %q, want %q, invalid: %t", w.texts, tc.want, tc.invalid)
			}
		})
	}
}

func TestATemplateCannotWriteWithoutEnd(t *testing.T) {
	w := newWebhook(t)
	f, _ := newFunction(t, w.URL, map[string]string{"template": "{{range 1000000000}}text {{end}}"})
	if err := f(t.Context(), eventOf(t, suspended("web"))); err != nil {
		t.Fatal(err)
	}
	if len(w.texts) != 1 || len(w.texts[0]) > 3000 {
		t.Errorf("%d messages", len(w.texts))
	}
}

func TestMessagesAboveTheLimitAreCountedInTheNextMessage(t *testing.T) {
	const burst, sent = 5, 9
	w := newWebhook(t)
	f, clock := newFunction(t, w.URL, map[string]string{"messages-per-minute": "1"})
	for n := range int64(sent) {
		if err := f(t.Context(), eventOf(t, numbered(n))); err != nil {
			t.Fatalf("the Broker would repeat it: %v", err)
		}
	}
	if len(w.texts) != burst {
		t.Errorf("%d messages, want %d", len(w.texts), burst)
	}
	clock.SetTime(clock.Now().Add(time.Minute))
	if err := f(t.Context(), eventOf(t, numbered(sent))); err != nil {
		t.Fatal(err)
	}
	if last := w.texts[len(w.texts)-1]; !strings.Contains(last, "4 earlier messages") {
		t.Errorf("got %q", last)
	}
}

func TestAttemptsForAnEventCountAsOneMessageOfTheLimit(t *testing.T) {
	w := newWebhook(t)
	w.status = http.StatusServiceUnavailable
	f, clock := newFunction(t, w.URL, map[string]string{"messages-per-minute": "1"})
	handle := func(n int64) functions.Result { return functions.ResultOf(f(t.Context(), eventOf(t, numbered(n)))) }
	for attempt := range 3 {
		for n := range int64(5) {
			if got := handle(n); got != functions.ResultRetry {
				t.Errorf("event %d, attempt %d: result %s, want %s", n, attempt, got, functions.ResultRetry)
			}
		}
	}
	w.status = http.StatusOK
	for n := range int64(6) { // the burst is five messages
		if got := handle(n); got != functions.ResultDone {
			t.Errorf("event %d: result %s, want %s", n, got, functions.ResultDone)
		}
	}
	if calls := len(w.texts); calls != 20 {
		t.Errorf("%d calls, want 20: the limit does not allow a message of event 5", calls)
	}
	w.status = http.StatusServiceUnavailable
	clock.SetTime(clock.Now().Add(time.Minute))
	first, replay := handle(6), func() functions.Result { clock.SetTime(clock.Now().Add(time.Minute)); _ = handle(7); return handle(6) }()
	if first != functions.ResultRetry || replay != functions.ResultDone {
		t.Errorf("first attempt %s, replay above the limit %s", first, replay)
	}
}

func TestTheAnswerOfTheWebhookDecidesWhetherTheBrokerRetries(t *testing.T) {
	for status, want := range map[int]functions.Result{
		http.StatusNoContent:          functions.ResultDone,
		http.StatusTooManyRequests:    functions.ResultRetry,
		http.StatusServiceUnavailable: functions.ResultRetry,
		http.StatusNotFound:           functions.ResultPermanent,
		http.StatusFound:              functions.ResultPermanent,
	} {
		w := newWebhook(t)
		w.status = status
		f, _ := newFunction(t, w.URL, nil)
		if got := functions.ResultOf(f(t.Context(), eventOf(t, suspended("web")))); got != want {
			t.Errorf("status %d: result %s, want %s", status, got, want)
		}
		w.status = http.StatusOK
		if err := f(t.Context(), eventOf(t, suspended("web"))); err != nil || (len(w.texts) == 2) != (want != functions.ResultDone) {
			t.Errorf("status %d: repeated: %v, %d calls", status, err, len(w.texts))
		}
	}
}

func TestNoErrorHasTheAddressOfTheWebhook(t *testing.T) {
	w := newWebhook(t)
	w.Close()
	for _, address := range []string{w.URL + "/services/secret", "ftp://host/secret", "http://secret\x7f"} {
		f, _ := newFunction(t, address, nil)
		if err := f(t.Context(), eventOf(t, suspended("web"))); err == nil || strings.Contains(err.Error(), "secret\x7f") || strings.Contains(err.Error(), "/secret") {
			t.Errorf("error %v", err)
		}
	}
}

func TestWithoutAnAddressNothingIsSent(t *testing.T) {
	f, _ := newFunction(t, "", nil)
	if err := f(t.Context(), eventOf(t, suspended("web"))); err != nil {
		t.Error(err)
	}
}

// A pod that reaches the Broker can send any event, and can send one again that it has seen.
func TestAForgedOrOldEventSendsNoMessage(t *testing.T) {
	w := newWebhook(t)
	f, _ := newFunction(t, w.URL, nil)
	unsigned := eventOf(t, suspended("web"))
	unsigned.SetExtension(eventsigning.Extension, nil)
	if got := functions.ResultOf(f(t.Context(), unsigned)); got != functions.ResultPermanent {
		t.Errorf("result %s", got)
	}
	if err := f(t.Context(), eventOf(t, numbered(25*60*60))); err != nil {
		t.Error(err)
	}
	if len(w.texts) > 0 {
		t.Errorf("sent %q", w.texts)
	}
}

func TestAnOldStateIsCountedAsOutdatedAndNotAsRepeated(t *testing.T) {
	w, reader := newWebhook(t), sdkmetric.NewManualReader()
	f, _ := newMeasuredFunction(t, w.URL, nil, sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test"))
	for _, d := range []events.ChangeWorkload{numbered(25 * 60 * 60), suspended("web"), suspended("web")} {
		if err := f(t.Context(), eventOf(t, d)); err != nil {
			t.Fatal(err)
		}
	}
	var data metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, m := range data.ScopeMetrics[0].Metrics {
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok {
			for _, p := range sum.DataPoints {
				result, _ := p.Attributes.Value("result")
				got[result.AsString()] += p.Value
			}
		}
	}
	if diff := cmp.Diff(map[string]int64{"outdated": 1, "sent": 1, "repeated": 1}, got); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
}

func TestAMessageOfEachStateCanBeOutdated(t *testing.T) {
	for verb, old := range map[events.Verb]bool{
		events.VerbSuspended: true, events.VerbFailed: true, events.VerbSucceeded: true, events.VerbProgressed: true,
		// The data have the time of the state of the release, which is not the time of these events.
		events.VerbStarted: false, events.VerbBypassed: false, events.VerbRolledBack: false,
	} {
		t.Run(string(verb), func(t *testing.T) {
			w := newWebhook(t)
			f, _ := newFunction(t, w.URL, nil)
			d := numbered(25 * 60 * 60)
			d.Verb = verb
			if verb == events.VerbProgressed {
				d.ProgressUnix, d.EntryTimeUnix = d.EntryTimeUnix, ft.Now().Unix()
			}
			if err := f(t.Context(), eventOf(t, d)); err != nil {
				t.Fatal(err)
			}
			if sent := len(w.texts) > 0; sent == old {
				t.Errorf("sent %q", w.texts)
			}
		})
	}
}

func TestAReleaseThatFailedSendsNoMessageIfANewerOneReplacedIt(t *testing.T) {
	for reason, want := range map[string]int{v1alpha1.ReasonSuperseded: 0, v1alpha1.ReasonReleaseTimedOut: 1} {
		t.Run(reason, func(t *testing.T) {
			w := newWebhook(t)
			f, _ := newFunction(t, w.URL, nil)
			d := suspended("web")
			d.Verb, d.Reason = events.VerbFailed, reason
			if err := f(t.Context(), eventOf(t, d)); err != nil {
				t.Fatal(err)
			}
			if len(w.texts) != want {
				t.Errorf("sent %q, want %d messages", w.texts, want)
			}
		})
	}
}

func TestTheManifestHasTheDefaultTemplate(t *testing.T) {
	raw, err := os.ReadFile("../../config/notify/200-config-notify.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var config corev1.ConfigMap
	if err := yaml.UnmarshalStrict(raw, &config); err != nil {
		t.Fatal(err)
	}
	if got := config.Data["template"]; got != notify.DefaultTemplate {
		t.Errorf("got %q, want %q", got, notify.DefaultTemplate)
	}
}
