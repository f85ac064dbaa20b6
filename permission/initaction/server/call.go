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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centreclient"
	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
	"github.com/breakwater-dev/breakwater/permission/podbreaker"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/permission/settings"
)

const (
	// pollTimeout bounds a long poll of the centre.
	pollTimeout = 20 * time.Second
	// shortPollTimeout is used instead while a change of the condition is pending.
	shortPollTimeout = 2 * time.Second
	// maxCentreFailures is how many calls to the centre may fail (centreFailures) before the
	// pod's attempt counts as failed.
	maxCentreFailures = 4
	// centreRetryDelay is the base of the delay between these calls, which doubles.
	centreRetryDelay = 500 * time.Millisecond
	// recheckInterval is how often a waiting pod is checked without a notification.
	recheckInterval = 30 * time.Second
)

// call is one call of an init container.
type call struct {
	*server
	// id identifies the call to the breaker.
	id  string
	pod *corev1.Pod
	// source is the source address of the request.
	source string
	// key is the key of the pod's breaker entry.
	key string
	// changed receives a value when the pod, the breaker of any pod or the settings changed.
	changed <-chan struct{}
	input   Input
	// applicationsRead is when the applications of the pod were last read together.
	applicationsRead time.Time
	// mayCallCentre: the rate limit allows one call to the centre.
	mayCallCentre bool
	// lastDecision is the last answer of the breaker. refresh uses it once instead of
	// the cache, which may be stale.
	lastDecision *podbreaker.Decision
	reporter     *conditionReporter
	start        time.Time
	// centreFailures counts the failed calls to the centre since the last Apply or Poll that
	// returned without an error, without those while the breaker is open.
	centreFailures int
}

func (s *server) newCall(pod *corev1.Pod, source string, changed <-chan struct{}) *call {
	c := &call{server: s, id: uuid.NewString(), pod: pod, source: source, key: podbreaker.Key(pod.Namespace, pod.Name), changed: changed, start: s.Clock.Now()}
	c.input = Input{Sets: podmeta.Sets(pod), Applications: map[string]api.Application{}}
	c.reporter = newConditionReporter(s, pod)
	return c
}

// errCallEnded means that the client disconnected, a later call of the pod replaced this one, the call
// took maxCallDuration, or this replica is shutting down.
var errCallEnded = errors.New("the call is over")

// run runs one action after the other until the call is decided.
func (c *call) run(ctx context.Context) protocol.Answer {
	for {
		if answer, ok := c.endedAnswer(ctx); ok {
			return answer
		}
		c.refresh(ctx)
		d := Decide(c.input)
		c.reporter.progress(ctx, c.input, d)
		if !c.mayCallCentre && (callsCentre(d.Action) || d.Action == AcquireBreaker) {
			// The pod may change during the wait, so the decision is repeated. The wait comes
			// before AcquireBreaker, because a caller has the breaker only for a short time.
			c.mayCallCentre = c.awaitLimit(ctx, c.pod.Namespace)
			continue
		}
		c.mayCallCentre = c.mayCallCentre && !callsCentre(d.Action)
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

// awaitLimit waits until the rate limit allows one call to the centre. The calls of a namespace wait in
// order, and namespaces take turns. The wait does not count towards the timeout of the call to the centre,
// and is never a failure of the pod. It returns false if the call ends.
func (s *server) awaitLimit(ctx context.Context, namespace string) bool {
	if s.Limit == nil {
		return true
	}
	// Limit cannot take back a reservation after a later one was made, so only one call reserves at a time.
	if s.turns.Acquire(ctx, namespace) != nil {
		return false
	}
	defer s.turns.Release(namespace)
	now := s.Clock.Now()
	reserved := s.Limit.ReserveN(now, 1)
	delay := reserved.DelayFrom(now)
	if delay <= 0 {
		return true
	}
	timer := s.Clock.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-s.Draining:
	case <-ctx.Done():
	}
	reserved.CancelAt(s.Clock.Now())
	return false
}

// retryCentreCall waits before a retry of a failed call to the centre, and returns
// false if the failure counts. Up to maxCentreFailures failures do not count, so that
// a restart of the centre of a few seconds is no failure of the pod.
// While the breaker is open, failures do not count and the call is retried at
// recheckInterval.
func (c *call) retryCentreCall(ctx context.Context, d Decision, err error) bool {
	if !callsCentre(d.Action) || centreclient.IsPermanent(err) {
		return false
	}
	c.input.ApplicationsKnown, c.input.BreakerAcquired = false, false
	pause := recheckInterval
	if c.input.Breaker.State == podbreaker.MayBegin {
		if c.centreFailures++; c.centreFailures > maxCentreFailures {
			return false
		}
		pause = time.Duration(float64(centreRetryDelay<<c.centreFailures) * (0.5 + c.Random()))
	}
	if !centreclient.IsConflict(err) { // a conflict means Revoking, which is reported later, or that the pod has ended
		c.reporter.unreachable(ctx, errorMessage(err))
	}
	_ = c.wait(ctx, c.Clock.Now().Add(pause)) // run checks whether the call ended
	return true
}

func callsCentre(a Action) bool {
	return a == ReadApplications || a == Apply || a == Poll || a == RevokeOtherIPs
}

// endedAnswer returns the answer of a call that ends undecided, and whether it ends.
func (c *call) endedAnswer(ctx context.Context) (protocol.Answer, bool) {
	switch {
	case c.draining():
		return protocol.Answer{State: protocol.Waiting, Reason: reasonDraining, Message: drainingMessage}, true
	case ctx.Err() == nil: // asked before its cause, because a later call may replace this one at any time
		return protocol.Answer{}, false
	case errors.Is(context.Cause(ctx), errReplaced):
		return protocol.Answer{State: protocol.Waiting, Reason: reasonReplaced, Message: errReplaced.Error()}, true
	default:
		return protocol.Answer{State: protocol.Waiting, Reason: c.reporter.lastCondition.Reason, Message: c.reporter.lastCondition.Message}, true
	}
}

// refresh reads the pod and its breaker entry from the caches. A pod that was read from the API
// server stays until the cache has a newer one: the cached address may be that of the previous
// sandbox. A pod that the cache does not have is read from the API server.
func (c *call) refresh(ctx context.Context) {
	gone := false
	p, err := c.Pods.Pods(c.pod.Namespace).Get(c.pod.Name)
	if err != nil || p.UID != c.pod.UID {
		// The pod is gone, or the cache does not have it yet.
		p, err = c.getPod(ctx, c.identity())
		rejected, ok := errors.AsType[*problem](err)
		gone = ok && rejected.reason == reasonPodNotFound
	}
	if err == nil && !isOlder(p, c.pod) {
		c.pod = p
	}
	ips := c.currentIPs(ctx, c.pod, c.source)
	if !slices.Equal(ips, c.input.IPs) {
		// The pod has a new sandbox, or its status differs from the announced addresses; the input is
		// about the previous ones.
		c.input.ApplicationsKnown, c.input.Prepared, c.input.BreakerAcquired = false, false, false
	}
	c.input.OtherSource = !c.pod.Spec.HostNetwork && !containsIP(ips, c.source)
	c.input.IPs, c.input.DeletedOrCompleted, c.input.HasFinalizer = ips, gone || !workload.PodActive(c.pod), podmeta.HasFinalizer(c.pod)
	if c.lastDecision != nil {
		c.input.Breaker, c.lastDecision = *c.lastDecision, nil
		return
	}
	c.input.Breaker = c.Breaker.Peek(c.key, c.pod.UID, c.Clock.Now(), c.id)
}

func (c *call) identity() podIdentity {
	return podIdentity{types.NamespacedName{Namespace: c.pod.Namespace, Name: c.pod.Name}, c.pod.UID}
}

// isOlder reports whether a is an earlier state of the pod than b.
func isOlder(a, b *corev1.Pod) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err == nil && order < 0
}

// step runs one action. An answer ends the call. An error other than errCallEnded
// ends it as a failure, unless run retries the call of the centre.
func (c *call) step(ctx context.Context, d Decision) (*protocol.Answer, error) {
	switch d.Action {
	case Stop:
		return &protocol.Answer{State: protocol.Failed, Reason: d.Reason, Message: "the pod is being deleted or is completed"}, nil
	case WaitForPod:
		return nil, c.wait(ctx, c.Clock.Now().Add(recheckInterval))
	case CallAgain:
		return &protocol.Answer{State: protocol.Waiting, Reason: d.Reason, Message: "the addresses of the pod changed to " + strings.Join(c.input.IPs, ", ")}, nil
	case ReadApplications:
		return nil, c.readApplications(ctx)
	case Complete:
		return c.complete(ctx)
	case RecordFailure:
		return c.recordFailure(ctx, d.Set)
	case Prepare:
		return nil, c.prepare(ctx)
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
		err := c.wait(ctx, until)
		// The owner of a permission may have corrected it and reset the application at
		// the centre. That does not change the breaker, so the applications are read again.
		c.input.ApplicationsKnown = c.input.ApplicationsKnown && d.Reason != podmeta.ReasonBreakerOpenDenied
		return nil, err
	}
	return nil, fmt.Errorf("unknown action %q", d.Action)
}

// wait returns when the situation of the call changed, at the latest at until.
func (c *call) wait(ctx context.Context, until time.Time) error {
	timer := c.Clock.NewTimer(max(until.Sub(c.Clock.Now()), 10*time.Millisecond))
	defer timer.Stop()
	_, _, err := receive(ctx, c, timer.C())
	return err
}

// receive returns the next value of the channel. It returns false if the situation of the call changed before.
func receive[T any](ctx context.Context, c *call, from <-chan T) (value T, received bool, err error) {
	before := c.situation()
	for {
		select {
		case value = <-from:
			return value, true, nil
		case <-c.changed:
			if c.refresh(ctx); c.situation() != before {
				return value, false, nil
			}
		case <-c.Draining:
			return value, false, errCallEnded
		case <-ctx.Done():
			return value, false, errCallEnded
		}
	}
}

// situation is what must change before a call ends a wait or a poll. Most notifications are about
// other pods, because their breakers have the same ConfigMaps.
type situation struct {
	Decision
	breaker  podbreaker.State
	settings settings.Settings
}

func (c *call) situation() situation {
	d := Decide(c.input)
	d.Until = d.Until.Round(0).UTC() // equal times have equal fields
	return situation{d, c.input.Breaker.State, c.Settings()}
}

// fail counts a failure that has no application, and ends the call.
func (c *call) fail(ctx context.Context, err error) protocol.Answer {
	if answer, ok := c.endedAnswer(ctx); ok {
		return answer // the error is a consequence of the end of the call
	}
	denied := centreclient.IsPermanent(err)
	logging.FromContext(ctx).Warnw("Could not request permissions", "pod", c.key, "error", err)
	d, recordErr := c.Breaker.Do(ctx, podbreaker.Request{Operation: podbreaker.RecordFailure, Key: c.key, UID: c.pod.UID, Now: c.Clock.Now(), Jitter: c.Random(),
		Call: c.id, Denied: denied, Message: err.Error()})
	if recordErr != nil {
		logging.FromContext(ctx).Errorw("Could not record a failure in the breaker", "pod", c.key, "error", recordErr)
	}
	state, reason := protocol.Failed, podmeta.ReasonPermissionFailed
	if denied {
		state, reason = protocol.Denied, podmeta.ReasonPermissionDenied
	}
	c.reporter.failed(ctx, reason, errorMessage(err), d)
	return protocol.Answer{State: state, Reason: reason, Message: errorMessage(err)}
}

// errorMessage returns the message of an error for people.
func errorMessage(err error) string { return strings.TrimSpace(err.Error()) }
