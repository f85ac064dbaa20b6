package releasecheck

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/metric"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/fairsemaphore"
	"github.com/breakwater-dev/breakwater/internal/metrics"
)

const (
	// maxConcurrent is the maximum number of concurrent queries per process, so that
	// a slow server does not fill the webhook with waiting requests.
	maxConcurrent = 16
	// timeoutMargin is by how much the server's timeout is shorter than the client's, so
	// that the server can report its timeout; at most half of the client's timeout.
	timeoutMargin = 250 * time.Millisecond
	// retrieveTimeout limits the call that confirms a pass without rules.
	retrieveTimeout = 400 * time.Millisecond
)

// Query identifies the release that the server is asked about.
type Query struct {
	Namespace  string
	APIVersion string
	Kind       string
	Name       string
	AppName    string
	Release    v1alpha1.Release
	// User is the authenticated user name of the request.
	User string
	// Timeout limits the whole query.
	Timeout time.Duration
}

// params are the parameters of the check for the server's rules and its user interface.
type params struct {
	Namespace    string `json:"namespace"`
	WorkloadType string `json:"workloadType"`
	WorkloadName string `json:"workloadName"`
	Revision     string `json:"revision"`
	Attempt      int64  `json:"attempt"`
	User         string `json:"user"`
}

// CheckClient queries the AlterShield server. It reads the configuration for each query, so
// that changes apply immediately, and reuses the client, with its connections and
// limits, while the configuration stays the same.
type CheckClient struct {
	core     typedcorev1.CoreV1Interface
	clients  altershield.CurrentClient
	places   *fairsemaphore.Semaphore // one for each concurrent query, by namespace
	clock    clock.PassiveClock
	checks   metrics.Counter
	duration metrics.Histogram
}

// NewCheckClient returns a CheckClient. options are for tests.
func NewCheckClient(core typedcorev1.CoreV1Interface, clock clock.PassiveClock, meter metric.Meter, options ...altershield.Option) *CheckClient {
	return &CheckClient{
		core: core, clock: clock,
		checks:   metrics.NewCounter(meter, "breakwater_release_checks_total"),
		duration: metrics.NewHistogram(meter, "breakwater_release_check_duration_seconds"),
		clients:  altershield.CurrentClient{Options: options}, places: fairsemaphore.New(maxConcurrent),
	}
}

// Ask returns the answer to a query. An error is an answer too: no verdict, with the
// reason.
func (s *CheckClient) Ask(ctx context.Context, q Query) v1alpha1.ReleaseCheckStatus {
	begin := s.clock.Now()
	status := v1alpha1.ReleaseCheckStatus{Attempt: q.Release.Attempt}
	result := s.ask(ctx, q, &status)
	now := s.clock.Now()
	status.Outcome, status.Reason, status.Message = result.Outcome, result.Reason, truncateMessage(result.Message)
	status.Time = metav1.NewMicroTime(now)
	s.checks.Add(ctx, 1, string(result.Outcome), result.Reason)
	s.duration.Record(ctx, now.Sub(begin).Seconds(), string(result.Outcome))
	return status
}

func (s *CheckClient) ask(ctx context.Context, q Query, status *v1alpha1.ReleaseCheckStatus) Result {
	config, failure := s.config(ctx)
	if failure != nil {
		return *failure
	}
	status.OrderID = altershield.ReleaseCheckOrderID(config.ClusterName, q.Namespace, q.Kind, q.Name, q.Release.Version, q.Release.Attempt)
	queryCtx, cancel := context.WithTimeout(ctx, q.Timeout)
	defer cancel()
	if err := s.places.Acquire(queryCtx, q.Namespace); err != nil {
		return noVerdict(v1alpha1.ReasonReleaseCheckThrottled, fmt.Sprintf("this replica of the webhook sends at most %d queries about releases at a time, and this one got no place within %s", maxConcurrent, q.Timeout))
	}
	defer s.places.Release(q.Namespace)
	client := s.clients.For(config.ForReleaseCheck())
	a, err := client.CheckRelease(queryCtx, checkReleaseOf(q, status.OrderID, s.clock.Now()))
	if err != nil {
		return ResultOfError(err)
	}
	status.NodeID, status.URL = a.NodeID, a.URL
	return ResultOf(a, a.Unconfirmed && s.retrieved(ctx, client, status))
}

// config returns the configuration of the server, or the result if it is unusable.
func (s *CheckClient) config(ctx context.Context) (altershield.Config, *Result) {
	fail := func(reason string, err error) (altershield.Config, *Result) {
		result := noVerdict(reason, err.Error())
		return altershield.Config{}, &result
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

func checkReleaseOf(q Query, orderID string, now time.Time) altershield.CheckRelease {
	name := q.Namespace + "/" + q.Name
	return altershield.CheckRelease{
		OrderID:   orderID,
		Title:     fmt.Sprintf("Release of %s %s, version %s, attempt %d", q.Kind, name, q.Release.Version, q.Release.Attempt),
		Apps:      []string{q.AppName},
		Contents:  []altershield.Content{{Type: q.Kind, Name: name}},
		Params:    params{q.Namespace, q.Kind, q.Name, q.Release.Version, q.Release.Attempt, q.User},
		Timeout:   q.Timeout - min(timeoutMargin, q.Timeout/2),
		StartTime: now,
	}
}

// retrieved reports whether the server confirms a pass without rules.
func (s *CheckClient) retrieved(ctx context.Context, client *altershield.Client, status *v1alpha1.ReleaseCheckStatus) bool {
	ctx, cancel := context.WithTimeout(ctx, retrieveTimeout)
	defer cancel()
	a, err := client.Retrieve(ctx, altershield.Retrieve{OrderID: status.OrderID, NodeID: status.NodeID, Stage: v1alpha1.StagePre})
	return err == nil && a.Passed()
}

// truncateMessage cuts a message to the limit of a ReleaseCheck, in characters.
func truncateMessage(message string) string {
	const limit = 1024
	if r := []rune(message); len(r) > limit {
		return string(r[:limit-3]) + "..."
	}
	return message
}
