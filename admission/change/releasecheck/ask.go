package releasecheck

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/metric"
	"golang.org/x/sync/semaphore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/metrics"
)

const (
	// atOnce is how many questions one process asks at a time. A server that
	// is slow must not fill the webhook with requests that wait for it.
	atOnce = 16
	// head is how much earlier than us the server is to give up, so that we
	// hear of its time-out instead of one of our own; at most half of the time.
	head = 250 * time.Millisecond
	// retrieveTime is how long the server may take to confirm a pass that came
	// without rules.
	retrieveTime = 400 * time.Millisecond
)

// Query is what the server is asked.
type Query struct {
	Namespace  string
	APIVersion string
	Kind       string
	Name       string
	AppName    string
	Release    v1alpha1.Release
	// User is the name under which the API server knows the author.
	User string
	// Timeout is how long the answer may take.
	Timeout time.Duration
}

// params is what a person at the server reads of a question, and what its
// rules see.
type params struct {
	Namespace    string `json:"namespace"`
	WorkloadType string `json:"workloadType"`
	WorkloadName string `json:"workloadName"`
	Revision     string `json:"revision"`
	Attempt      int64  `json:"attempt"`
	User         string `json:"user"`
}

// Server asks the AlterShield server. How it is reached is read anew for each
// question, so that a change counts at once; the client, with its connections
// and its limits, is kept while that stays the same.
type Server struct {
	core     typedcorev1.CoreV1Interface
	clients  altershield.Clients
	slots    *semaphore.Weighted
	clock    clock.PassiveClock
	checks   metrics.Counter
	duration metrics.Histogram
}

// NewServer returns a Server; options are for tests.
func NewServer(core typedcorev1.CoreV1Interface, clock clock.PassiveClock, meter metric.Meter, options ...altershield.Option) *Server {
	return &Server{
		core: core, clock: clock,
		checks:   metrics.NewCounter(meter, "breakwater_release_checks_total"),
		duration: metrics.NewHistogram(meter, "breakwater_release_check_duration_seconds"),
		clients:  altershield.Clients{Options: options}, slots: semaphore.NewWeighted(atOnce),
	}
}

// Ask returns the answer to a question. There always is one: what goes wrong
// is no verdict, and says why.
func (s *Server) Ask(ctx context.Context, q Query) v1alpha1.ReleaseCheckStatus {
	begin := s.clock.Now()
	status := v1alpha1.ReleaseCheckStatus{Attempt: q.Release.Attempt}
	said := s.ask(ctx, q, &status)
	now := s.clock.Now()
	status.Outcome, status.Reason, status.Message = said.Outcome, said.Reason, clip(said.Message)
	status.Time = metav1.NewMicroTime(now)
	s.checks.Add(ctx, 1, string(said.Outcome), said.Reason)
	s.duration.Record(ctx, now.Sub(begin).Seconds(), string(said.Outcome))
	return status
}

func (s *Server) ask(ctx context.Context, q Query, status *v1alpha1.ReleaseCheckStatus) Result {
	config, wrong := s.config(ctx)
	if wrong != nil {
		return *wrong
	}
	status.OrderID = altershield.ReleaseOrderID(config.ClusterName, q.Namespace, q.Kind, q.Name, q.Release.Version, q.Release.Attempt)
	asking, cancel := context.WithTimeout(ctx, q.Timeout)
	defer cancel()
	if err := s.slots.Acquire(asking, 1); err != nil {
		return none(v1alpha1.ReasonReleaseCheckThrottled, fmt.Sprintf("%d releases are being asked about, and none was answered within %s", atOnce, q.Timeout))
	}
	defer s.slots.Release(1)
	client := s.clients.For(config.ForReleaseCheck())
	a, err := client.CheckRelease(asking, questionOf(q, status.OrderID, s.clock.Now()))
	if err != nil {
		return ResultOfError(err)
	}
	status.NodeID, status.URL = a.NodeID, a.URL
	return ResultOf(a, a.Unjudged && s.retrieved(ctx, client, status))
}

// config returns how the server is reached, or why it is not.
func (s *Server) config(ctx context.Context) (altershield.Config, *Result) {
	fail := func(reason string, err error) (altershield.Config, *Result) {
		said := none(reason, err.Error())
		return altershield.Config{}, &said
	}
	cm, secret, err := altershield.ReadConfig(ctx, s.core)
	if err != nil {
		return fail(v1alpha1.ReasonServerUnreachable, err)
	}
	config, err := altershield.ParseConfig(cm, secret)
	switch {
	case err != nil:
		return fail(v1alpha1.ReasonServerMisconfigured, err)
	case !config.Configured():
		return fail(v1alpha1.ReasonNoServerConfigured, errors.New("release-check is enabled, but no server is configured: set base-url in ConfigMap "+altershield.ConfigMapName))
	case config.ReleaseCheckSceneKey == "":
		return fail(v1alpha1.ReasonServerMisconfigured, errors.New("release-check is enabled, but release-check-scene-key is missing in ConfigMap "+
			altershield.ConfigMapName+": set the key of a change scene of generation 1"))
	}
	return config, nil
}

func questionOf(q Query, orderID string, now time.Time) altershield.CheckRelease {
	name := q.Namespace + "/" + q.Name
	return altershield.CheckRelease{
		OrderID:   orderID,
		Title:     fmt.Sprintf("Release of %s %s, version %s, attempt %d", q.Kind, name, q.Release.Version, q.Release.Attempt),
		Apps:      []string{q.AppName},
		Contents:  []altershield.Content{{Type: q.Kind, Name: name}},
		Params:    params{q.Namespace, q.Kind, q.Name, q.Release.Version, q.Release.Attempt, q.User},
		Timeout:   q.Timeout - min(head, q.Timeout/2),
		StartTime: now,
	}
}

// retrieved says whether the server confirms a pass that came without a rule.
func (s *Server) retrieved(ctx context.Context, client *altershield.Client, status *v1alpha1.ReleaseCheckStatus) bool {
	ctx, cancel := context.WithTimeout(ctx, retrieveTime)
	defer cancel()
	a, err := client.Retrieve(ctx, altershield.Retrieve{OrderID: status.OrderID, NodeID: status.NodeID, Stage: v1alpha1.StagePre})
	return err == nil && a.Passed()
}

// clip shortens a message to what a ReleaseCheck takes, which counts characters.
func clip(message string) string {
	const limit = 1024
	if r := []rune(message); len(r) > limit {
		return string(r[:limit-3]) + "..."
	}
	return message
}
