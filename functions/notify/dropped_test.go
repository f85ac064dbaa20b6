package notify

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/metric/noop"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
)

// webhookTransport is a webhook without a network, which records the messages that it accepts. While
// status is not 0, it answers that and accepts none.
type webhookTransport struct {
	texts  []string
	status atomic.Int32
}

// RoundTrip implements http.RoundTripper.
func (w *webhookTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}
	if status := w.status.Load(); status != 0 {
		answer.StatusCode = int(status)
		return answer, nil
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var message struct{ Text string }
	if err := json.Unmarshal(raw, &message); err != nil {
		return nil, err
	}
	w.texts = append(w.texts, message.Text)
	return answer, nil
}

// aboutDropped returns the messages that say how many were dropped.
func (w *webhookTransport) aboutDropped() []string {
	var out []string
	for _, text := range w.texts {
		if _, of, found := strings.Cut(text, "\n"); found {
			out = append(out, "a message and: "+of)
		} else if strings.Contains(text, "above the limit") {
			out = append(out, text)
		}
	}
	return out
}

// limitedNotifier returns a Notifier with a limit of messages per minute, whose webhook needs no network.
func limitedNotifier(perMinute string) (*Notifier, *webhookTransport) {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: name}
	}
	kube := fake.NewClientset(
		&corev1.Secret{ObjectMeta: meta(SecretName), Data: map[string][]byte{urlKey: []byte("https://webhook.example")}},
		&corev1.ConfigMap{ObjectMeta: meta(ConfigName), Data: map[string]string{perMinuteKey: perMinute, templateKey: "{{.Workload}}"}})
	n, w := New(kube.CoreV1(), ft.EventKeys(), clock.RealClock{}, noop.Meter{}), &webhookTransport{}
	n.client.Transport = w
	return n, w
}

// suspension returns the event of a suspended release; each number is another release.
func suspension(t *testing.T, number int) event.Event {
	t.Helper()
	e, err := events.New(events.ChangeWorkload{
		Verb: events.VerbSuspended, Namespace: ft.Namespace, Name: ft.Release, UID: "release", Version: ft.Version, Attempt: 2,
		EntryTimeUnix: time.Now().Unix() - int64(number), Reason: v1alpha1.ReasonCheckFailed,
		Workload: events.Workload{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return ft.SignedByController(t, e)
}

// send handles a number of events at once.
func send(t *testing.T, n *Notifier, from, count int) {
	t.Helper()
	for i := range count {
		if err := n.Handle(t.Context(), suspension(t, from+i)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDroppedMessagesAreReportedWithoutAFurtherEvent(t *testing.T) {
	const handled = 9
	const dropped = "4 messages about releases were above the limit and were not sent."
	for name, tc := range map[string]struct {
		perMinute string
		// after follows the events.
		after func(*testing.T, *Notifier, *webhookTransport)
		want  []string
	}{
		"when the limit allows it": {"20", func(*testing.T, *Notifier, *webhookTransport) { time.Sleep(4 * time.Second) }, []string{dropped}},
		"once":                     {"20", func(*testing.T, *Notifier, *webhookTransport) { time.Sleep(time.Hour) }, []string{dropped}},
		"not before":               {"20", func(*testing.T, *Notifier, *webhookTransport) { time.Sleep(2900 * time.Millisecond) }, nil},
		"not while events arrive: their messages report it": {"20", func(t *testing.T, n *Notifier, _ *webhookTransport) {
			for i := range 4 { // at 1, 2, 3 and 4 seconds
				time.Sleep(time.Second)
				synctest.Wait()
				send(t, n, handled+i, 1)
			}
		}, []string{"a message and: 6 earlier messages were above the limit and were not sent."}},
		"when the process ends": {"1", func(t *testing.T, n *Notifier, _ *webhookTransport) { n.AfterDrain(t.Context()) }, []string{dropped}},
		"when the process ends, if the webhook failed before": {"20", func(t *testing.T, n *Notifier, w *webhookTransport) {
			w.status.Store(http.StatusServiceUnavailable)
			time.Sleep(time.Minute)
			synctest.Wait()
			w.status.Store(0)
			n.AfterDrain(t.Context())
		}, []string{dropped}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, w := limitedNotifier(tc.perMinute)
				go func() {
					if err := n.Run(t.Context()); err != nil { // ends with the test: synctest fails otherwise
						t.Error(err)
					}
				}()
				send(t, n, 0, handled)
				tc.after(t, n, w)
				synctest.Wait()
				if diff := cmp.Diff(tc.want, w.aboutDropped()); diff != "" {
					t.Errorf("messages about dropped ones, -want +got: %s", diff)
				}
			})
		})
	}
}

func TestTheEndOfTheProcessSendsNoMessageIfNoneWasDropped(t *testing.T) {
	n, w := limitedNotifier("20")
	send(t, n, 0, burst)
	n.AfterDrain(t.Context())
	if len(w.texts) != burst {
		t.Errorf("sent %q", w.texts)
	}
}
