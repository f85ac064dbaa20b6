package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centreclient"
	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
	"github.com/breakwater-dev/breakwater/permission/podbreaker"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

const (
	// pollFor is how long the centre may hold a poll.
	pollTimeout = 20 * time.Second
	// pollSoon is the same while there is something to tell that was held back.
	shortPollTimeout = 2 * time.Second
	// tolerated is how many calls to the centre may fail in a row before it counts
	// as a failure of the pod's; the pauses between them double from missPause.
	maxCentreFailures = 4
	centreRetryDelay  = 500 * time.Millisecond
	// look is how often a pod is looked at that nothing is heard of.
	recheckInterval = 30 * time.Second
)

// call is what one init container waits for.
type call struct {
	*server
	// id tells the call from others, for the breaker.
	id  string
	pod *corev1.Pod
	// key is that of the pod in the record.
	key     string
	changed <-chan struct{}
	facts   Facts
	// proven is what the breaker said last; until it is looked at again.
	lastDecision *podbreaker.Decision
	reporter     *podReporter
	// began is when the call began.
	start time.Time
	// misses counts calls to the centre that failed, since the last that did not.
	centreFailures int
}

func (s *server) newCall(pod *corev1.Pod, woken <-chan struct{}) *call {
	c := &call{server: s, id: uuid.NewString(), pod: pod, key: podbreaker.Key(pod.Namespace, pod.Name), changed: woken, start: s.Clock.Now()}
	c.facts = Facts{Sets: podmeta.Sets(pod), Applications: map[string]api.Application{}}
	c.reporter = newPodReporter(s, pod)
	return c
}

// errOver says that nobody waits for the answer any more, or that somebody else
// has to give it.
var errCallEnded = errors.New("the call is over")

// run takes one step after the other until the call is decided.
func (c *call) run(ctx context.Context) protocol.Answer {
	for {
		if answer, ok := c.endedAnswer(ctx); ok {
			return answer
		}
		c.refresh()
		d := Decide(c.facts)
		c.reporter.progress(ctx, c.facts, d)
		answer, err := c.step(ctx, d)
		switch {
		case answer != nil:
			return *answer
		case errors.Is(err, errCallEnded):
		case err != nil && !c.retryCentreCall(ctx, d, err):
			return c.fail(ctx, err)
		case err == nil && (d.Action == Apply || d.Action == Poll):
			c.centreFailures = 0
		}
	}
}

// tolerate waits after a call to the centre that got no answer: a centre that is
// restarted is no failure. While the breaker is open nothing counts anyway, and
// what is on its way is looked for now and then.
func (c *call) retryCentreCall(ctx context.Context, d Decision, err error) bool {
	if !callsCentre(d.Action) || isDenied(err) {
		return false
	}
	c.facts.ApplicationsKnown, c.facts.BreakerAcquired = false, false
	pause := recheckInterval
	if c.facts.Breaker.Outcome == podbreaker.Closed {
		if c.centreFailures++; c.centreFailures > maxCentreFailures {
			return false
		}
		pause = time.Duration(float64(centreRetryDelay<<c.centreFailures) * (0.5 + c.Random()))
	}
	if !centreclient.IsConflict(err) { // it is still taken back; the next look tells so
		c.reporter.unreachable(ctx, errorMessage(err))
	}
	_ = c.wait(ctx, c.Clock.Now().Add(pause)) // run looks whether it is over
	return true
}

func callsCentre(a Action) bool {
	return a == ReadApplications || a == Apply || a == Poll || a == RevokeOtherIPs
}

// over ends a call that cannot be decided here and now.
func (c *call) endedAnswer(ctx context.Context) (protocol.Answer, bool) {
	select {
	case <-c.Draining:
		return protocol.Answer{State: protocol.Waiting, Reason: "Draining", Message: "this replica is about to end; ask again"}, true
	default:
	}
	if ctx.Err() != nil {
		return protocol.Answer{State: protocol.Waiting, Reason: c.reporter.lastCondition.Reason, Message: c.reporter.lastCondition.Message}, true
	}
	return protocol.Answer{}, false
}

// look reads what is cached: the pod and the record of the breaker.
func (c *call) refresh() {
	if p, err := c.Pods.Pods(c.pod.Namespace).Get(c.pod.Name); err == nil && p.UID == c.pod.UID {
		c.pod = p
	}
	ips := podmeta.IPs(c.pod)
	if !slices.Equal(ips, c.facts.IPs) {
		// Another sandbox: what is known is about the former one.
		c.facts.ApplicationsKnown, c.facts.Registered, c.facts.BreakerAcquired = false, false, false
	}
	c.facts.IPs, c.facts.Terminating, c.facts.HasFinalizer = ips, isTerminating(c.pod), podmeta.HasFinalizer(c.pod)
	if c.lastDecision != nil {
		c.facts.Breaker, c.lastDecision = *c.lastDecision, nil
		return
	}
	c.facts.Breaker = c.Breaker.Peek(c.key, c.pod.UID, c.Clock.Now(), c.id)
}

// step takes one step. An answer ends the call; so does an error that is not
// errOver, as a failure.
func (c *call) step(ctx context.Context, d Decision) (*protocol.Answer, error) {
	switch d.Action {
	case Stop:
		return &protocol.Answer{State: protocol.Failed, Reason: d.Reason, Message: "the pod is going"}, nil
	case WaitForPod:
		return nil, c.wait(ctx, c.Clock.Now().Add(recheckInterval))
	case ReadApplications:
		return nil, c.readApplications(ctx)
	case Complete:
		return c.complete(ctx)
	case RecordFailure:
		return c.recordFailure(ctx, d.Set)
	case Register:
		return nil, c.register(ctx)
	case RevokeOtherIPs:
		return nil, c.revokeOtherIPs(ctx)
	case AcquireBreaker:
		return nil, c.acquireBreaker(ctx)
	case Apply:
		return nil, c.apply(ctx, d.Set)
	case Poll:
		return nil, c.poll(ctx, d.Set)
	case WaitForBreaker:
		until := d.Until
		if until.IsZero() || until.Sub(c.Clock.Now()) > recheckInterval {
			until = c.Clock.Now().Add(recheckInterval)
		}
		// Whoever owns a permission may have mended it and reset the application at
		// the centre, of which the record knows nothing.
		c.facts.ApplicationsKnown = c.facts.ApplicationsKnown && d.Reason != podmeta.ReasonBreakerOpenDenied
		return nil, c.wait(ctx, until)
	}
	return nil, fmt.Errorf("no such step: %q", d.Action)
}

// wait returns when the pod or the record changed, at the time at the latest.
func (c *call) wait(ctx context.Context, until time.Time) error {
	timer := c.Clock.NewTimer(max(until.Sub(c.Clock.Now()), 10*time.Millisecond))
	defer timer.Stop()
	select {
	case <-c.changed:
		return nil
	case <-timer.C():
		return nil
	case <-c.Draining:
	case <-ctx.Done():
	}
	return errCallEnded
}

// failed counts a failure that no application knows of, and ends the call.
func (c *call) fail(ctx context.Context, err error) protocol.Answer {
	if answer, ok := c.endedAnswer(ctx); ok {
		return answer // it failed because nobody waits any more
	}
	denied := isDenied(err)
	logging.FromContext(ctx).Warnw("permissions could not be asked for", "pod", c.key, "error", err)
	d, recorded := c.Breaker.Do(ctx, podbreaker.Request{Operation: podbreaker.RecordFailure, Key: c.key, UID: c.pod.UID, Now: c.Clock.Now(), Jitter: c.Random(),
		Call: c.id, Denied: denied, Message: err.Error()})
	if recorded != nil {
		logging.FromContext(ctx).Errorw("a failure could not be recorded", "pod", c.key, "error", recorded)
	}
	state, reason := protocol.Failed, podmeta.ReasonPermissionFailed
	if denied {
		state, reason = protocol.Denied, podmeta.ReasonPermissionDenied
	}
	c.reporter.failed(ctx, reason, errorMessage(err), d)
	return protocol.Answer{State: state, Reason: reason, Message: errorMessage(err)}
}

// sentence is an error for a person.
func errorMessage(err error) string { return strings.TrimSpace(err.Error()) }
