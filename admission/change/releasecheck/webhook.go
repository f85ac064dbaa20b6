package releasecheck

import (
	"cmp"
	"context"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"knative.dev/pkg/logging"

	"golang.org/x/sync/singleflight"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/change/suspend"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// Webhook is the name of the validating webhook.
const Webhook = "vrelease.kb.io"

const (
	// budget is how long an answer to the API server takes at the most. The
	// API server waits 5 s; after that failurePolicy decides, and nobody is told.
	budget = 4700 * time.Millisecond
	// rest is the part of it that no question may use up: the answer has to be
	// confirmed and kept.
	rest = 600 * time.Millisecond
)

// Handler answers for vrelease.kb.io.
type Handler struct {
	// Kinds are the kinds of workloads that are guarded.
	Kinds func() []workload.Kind
	// Settings returns the settings in force.
	Settings func() settings.Settings
	History  suspend.History
	Server   *Server
	Records  Records
	// Recorder writes Kubernetes Events on the workload.
	Recorder record.EventRecorder
	// Sender sends release.denied.
	Sender events.Sender
	Clock  clock.PassiveClock

	// asking merges requests that this process gets twice at a time.
	asking singleflight.Group
}

var _ admission.Handler = (*Handler)(nil)

// Admit implements admission.Handler.
func (c *Handler) Admit(ctx context.Context, req *admissionv1.AdmissionRequest) admission.Answer {
	// Whoever made the request may give up; the answer is kept all the same, for
	// when the request is made again.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), budget)
	defer cancel()
	in := Input{Enabled: c.Settings().ReleaseCheck > 0, Release: req.SubResource == ""}
	kind, known := c.kindOf(req)
	if !known || Exempt(in) != "" {
		return skip(cmp.Or(Exempt(in), NotARelease))
	}
	change, err := admission.ReadChange(kind, req)
	if err != nil {
		return admission.Fail(err)
	}
	version, err := workload.Version(kind, &change.New.Template)
	if err != nil {
		return admission.Fail(err)
	}
	q := c.questionOf(change, version)
	d, before := c.decide(ctx, change, q)
	switch d.Outcome {
	case Skip:
		return skip(d.Reason)
	case Repeat:
		return c.rule(ctx, req, change, q, before.Status)
	default:
		return c.rule(ctx, req, change, q, c.ask(ctx, q, before))
	}
}

func (c *Handler) kindOf(req *admissionv1.AdmissionRequest) (workload.Kind, bool) {
	for _, k := range c.Kinds() {
		if k.Group == req.Kind.Group && k.Kind == req.Kind.Kind {
			return k, true
		}
	}
	return workload.Kind{}, false
}

// questionOf is what would be asked about a change. The attempt follows from
// the old object alone, as it does for the webhook that writes it.
func (c *Handler) questionOf(change admission.Change, version string) Query {
	before, _ := change.OldRelease()
	w := change.New
	return Query{
		Namespace: w.Namespace, APIVersion: w.Kind.GroupVersion().String(), Kind: w.Kind.Kind, Name: w.Name,
		AppName: cmp.Or(w.Labels["app.kubernetes.io/name"], w.Labels["app"], w.Name),
		Release: v1alpha1.Release{Version: version, Attempt: before.Attempt + 1},
		User:    change.User.Username,
	}
}

// decide gathers what the decision follows from. What costs a request to the
// API server is left to where it decides.
func (c *Handler) decide(ctx context.Context, change admission.Change, q Query) (Decision, *v1alpha1.ReleaseCheck) {
	s := c.Settings()
	gate := suspend.Gather(ctx, change, s, c.History)
	in := Input{
		Enabled:      s.ReleaseCheck > 0,
		Release:      change.Old == nil || change.TemplateChanged,
		ByController: change.ByController(),
		Gate:         suspend.Confirm(suspend.Decide(gate), gate, suspend.RecordedBypass(change) != nil).Outcome,
		Attempt:      q.Release.Attempt,
		DryRun:       change.DryRun,
		Now:          c.Clock.Now(),
	}
	if why := Exempt(in); why != "" {
		return Decision{Skip, why}, nil
	}
	if change.Old != nil {
		succeeded, err := c.History.Succeeded(ctx, change.Old, q.Release.Version)
		if err != nil {
			// At worst the server is asked about a way back.
			logging.FromContext(ctx).Warnw("the history of a workload is unknown", "kind", q.Kind, "error", err)
		}
		in.Succeeded = succeeded
	}
	before, err := c.Records.Get(ctx, q)
	if err != nil {
		// The question is asked again; the answer that is kept counts in the end.
		logging.FromContext(ctx).Warnw("an earlier answer is unknown", "error", err)
	}
	if before != nil {
		in.Recorded = &before.Status
	}
	return Decide(in), before
}

// ask asks the server and keeps its answer.
func (c *Handler) ask(ctx context.Context, q Query, before *v1alpha1.ReleaseCheck) v1alpha1.ReleaseCheckStatus {
	key := fmt.Sprintf("%s/%s/%s/%s/%d", q.Namespace, q.Kind, q.Name, q.Release.Version, q.Release.Attempt)
	answer, _, _ := c.asking.Do(key, func() (any, error) {
		q.Timeout = c.Settings().ReleaseCheck
		if end, ok := ctx.Deadline(); ok {
			q.Timeout = max(min(q.Timeout, time.Until(end)-rest), time.Millisecond)
		}
		answer := c.Server.Ask(ctx, q)
		kept, err := c.Records.Store(ctx, q, before, answer)
		if err != nil {
			// What the server said counts; only the next request asks again.
			logging.FromContext(ctx).Errorw("the answer about a release is not kept", "namespace", q.Namespace, "name", q.Name, "error", err)
		}
		return kept, nil
	})
	return answer.(v1alpha1.ReleaseCheckStatus)
}

// skip admits what is not asked about.
func skip(why string) admission.Answer {
	a := admission.Allow(why)
	if why == DryRun {
		a.Response.Warnings = []string{"release check: the server was not asked, because this is a dry run"}
	}
	return a
}
