// Package notify is the function that sends messages about releases to a webhook of Slack, or of
// another system that accepts the same JSON: {"text": "…"}. Nothing in the cluster depends on it.
//
// A message that the webhook cannot accept now is retried by the Broker and then becomes a dead
// letter, which a person can replay. Messages above the rate (messages-per-minute, at most 5 at once) are
// dropped: in an incident, hundreds of messages would hide each other. The next message says how many, or a
// message of its own if no event follows.
package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"go.opentelemetry.io/otel/metric"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/internal/httptransport"
	"github.com/breakwater-dev/breakwater/internal/metrics"
)

const (
	// burst is how many messages may be sent at once after a pause; further ones follow at the rate
	// of Config.PerMinute.
	burst = 5
	// callTimeout limits a call of the webhook. It is shorter than the timeout of the Trigger.
	callTimeout = 6 * time.Second
	// maxEvents is how many ids of events a process remembers.
	maxEvents = 1000
	// attemptsTime is how long the Broker may repeat an event. A later attempt is a replay, which is counted again.
	attemptsTime = time.Minute
	// maxAge is the maximum age of a state that is reported. A signature is valid for 30 to 60 days,
	// so a recorded event could be sent again in that time.
	maxAge = 24 * time.Hour
	// maxAnswer is how many bytes of an answer are read, so that its connection is used again.
	maxAnswer = 4 << 10
)

// The results, which are metric labels.
const (
	resultSent         = "sent"
	resultFailed       = "failed"
	resultLimited      = "limited"
	resultRepeated     = "repeated"   // the message of this event was sent before
	resultOutdated     = "outdated"   // the state is older than maxAge
	resultSuperseded   = "superseded" // a newer release replaced the failed one
	resultUnconfigured = "unconfigured"
)

// Notifier sends messages about releases. Its Run and AfterDrain report dropped messages.
type Notifier struct {
	verifier functions.Verifier
	core     corev1client.CoreV1Interface
	client   *http.Client
	clock    clock.PassiveClock
	// sent has the ids of events whose message was sent.
	sent *lru.Cache
	// counted has, for the ids of events whose message was not sent, when the limit counted them.
	counted *lru.Cache
	// sending has the ids of events whose message is being sent.
	sending       singleflight.Group
	notifications metrics.Counter

	mu      sync.Mutex
	limiter *rate.Limiter
	// dropped is the number of messages above the limit since the last message.
	dropped int
	// drops tells Run that a message was dropped. The value is how long Run waits before it reports that.
	drops chan time.Duration
}

// New returns a Notifier. It sends only messages of events that verifier accepts as sent by the
// controller: whoever can forge one writes to the people who operate the cluster.
func New(core corev1client.CoreV1Interface, verifier functions.Verifier, clock clock.PassiveClock, meter metric.Meter) *Notifier {
	return &Notifier{
		verifier: verifier, core: core, clock: clock, sent: lru.New(maxEvents), counted: lru.New(maxEvents), limiter: rate.NewLimiter(rate.Every(time.Minute), burst),
		client: &http.Client{
			Timeout: callTimeout, Transport: httptransport.New(),
			// A webhook does not redirect, and the next address would get the message.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		notifications: metrics.NewCounter(meter, "breakwater_notifications_total"),
		drops:         make(chan time.Duration, 1),
	}
}

// Handle sends the message of an event. It is a functions.Function.
func (n *Notifier) Handle(ctx context.Context, e event.Event) error {
	return functions.Authenticated(n.verifier, n.handle)(ctx, e)
}

func (n *Notifier) handle(ctx context.Context, e event.Event) error {
	d, err := events.ParseChangeWorkload(e)
	if err != nil {
		return functions.Permanent(err)
	}
	result, err := n.notifyOnce(ctx, e.ID(), d)
	n.notifications.Add(ctx, 1, result)
	return err
}

// notifyOnce calls notify once for an event that arrives again while its message is being sent: the
// activator delivers all events that waited for the first pod at the same time, also the replay of one.
func (n *Notifier) notifyOnce(ctx context.Context, id string, d events.ChangeWorkload) (string, error) {
	first := false
	result, err, _ := n.sending.Do(id, func() (any, error) {
		first = true
		return n.notify(ctx, id, d)
	})
	if !first && result == resultSent {
		return resultRepeated, err
	}
	return result.(string), err
}

func (n *Notifier) notify(ctx context.Context, id string, d events.ChangeWorkload) (string, error) {
	if _, sent := n.sent.Get(id); sent {
		return resultRepeated, nil
	}
	if n.outdated(d) {
		return resultOutdated, nil
	}
	// Whoever applied the newer release knows of it, and no one else need act.
	if d.Verb == events.VerbFailed && d.Reason == v1alpha1.ReasonSuperseded {
		return resultSuperseded, nil
	}
	config, err := ReadConfig(ctx, n.core)
	if err != nil {
		return resultFailed, err
	}
	if config.URL == "" {
		return resultUnconfigured, nil
	}
	dropped, allowed := n.takeSlot(id, config.PerMinute)
	if !allowed {
		return resultLimited, nil
	}
	text, err := textOf(config, d, dropped)
	if err == nil {
		err = n.post(ctx, config.URL, text)
	}
	if err != nil {
		n.restore(dropped)
		logging.FromContext(ctx).Warnw("Could not send a message to the webhook", "error", err)
		return resultFailed, err
	}
	n.sent.Add(id, struct{}{})
	n.counted.Remove(id)
	return resultSent, nil
}

// outdated reports whether the state that the event reports is too old. Other events are never
// outdated, because their data has no time of the event itself: EntryTimeUnix of a rollback is when the
// release entered its state, which was before the rollback.
func (n *Notifier) outdated(d events.ChangeWorkload) bool {
	switch d.Verb {
	case events.VerbSucceeded, events.VerbSuspended, events.VerbFailed:
		return n.clock.Since(time.Unix(d.EntryTimeUnix, 0)) > maxAge
	case events.VerbProgressed:
		return n.clock.Since(time.Unix(d.ProgressUnix, 0)) > maxAge
	case events.VerbStarted, events.VerbRolledBack, events.VerbBypassed:
	}
	return false
}

// takeSlot takes one message of the limit for an event, and returns how many messages were dropped before
// it. If none is left, the message is counted as dropped. The attempts of the Broker for an event count as one message.
func (n *Notifier) takeSlot(id string, perMinute int) (dropped int, allowed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now, interval := n.clock.Now(), time.Minute/time.Duration(perMinute)
	n.limiter.SetLimitAt(now, rate.Every(interval))
	countedAt, counted := n.counted.Get(id)
	repeated := counted && now.Sub(countedAt.(time.Time)) < attemptsTime
	if !repeated && !n.limiter.AllowN(now, 1) {
		n.dropped++
		select {
		case n.drops <- interval:
		default: // Run has not seen the drop before
		}
		return 0, false
	}
	if !repeated {
		n.counted.Add(id, now)
	}
	dropped, n.dropped = n.dropped, 0
	return dropped, true
}

// restore counts dropped messages again, because the message that names them was not sent.
func (n *Notifier) restore(dropped int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dropped += dropped
}

// textOf returns the text of a message. An invalid setting is named in it, because its readers are
// those who can correct it: also a template that can be executed for other events and not for this one.
func textOf(config Config, d events.ChangeWorkload, dropped int) (string, error) {
	invalid := config.Invalid
	text, err := render(config.Template, messageOf(d))
	if err != nil {
		invalid = errors.Join(invalidTemplate(err), invalid)
		text, err = render(defaultTemplate(), messageOf(d))
	}
	if err != nil {
		return "", functions.Permanent(err)
	}
	if dropped > 0 {
		text += fmt.Sprintf("\n%d earlier messages were above the limit and were not sent.", dropped)
	}
	if invalid != nil {
		text += "\nInvalid settings, whose defaults are used: " + escape(invalid.Error())
	}
	return text, nil
}

// post sends a message. An answer that says that the message or the address is wrong is a permanent
// error. No error has the address, which is a secret.
func (n *Notifier) post(ctx context.Context, address, text string) error {
	body, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		return functions.Permanent(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return functions.Permanentf("build the request to the webhook: its address is invalid")
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := n.client.Do(request)
	if err != nil {
		if of, ok := errors.AsType[*url.Error](err); ok {
			err = of.Err
		}
		return fmt.Errorf("call the webhook: %w", err)
	}
	_, _ = io.CopyN(io.Discard, response.Body, maxAnswer) // the status decides
	_ = response.Body.Close()
	switch code := response.StatusCode; {
	case code/100 == 2:
		return nil
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= http.StatusInternalServerError:
		return fmt.Errorf("call the webhook: status %d", code)
	default:
		return functions.Permanentf("call the webhook: status %d", code)
	}
}
