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
	// responseTimeout limits the whole response. The API server waits 5 s; after that
	// failurePolicy decides and nothing is reported.
	responseTimeout = 4700 * time.Millisecond
	// storeReserve is the part of responseTimeout that is reserved for confirming and
	// storing the answer.
	storeReserve = 600 * time.Millisecond
)

// Handler is the webhook vrelease.kb.io.
type Handler struct {
	// Kinds returns the workload kinds.
	Kinds func() []workload.Kind
	// Settings returns the current settings.
	Settings    func() settings.Settings
	History     suspend.History
	CheckClient *CheckClient
	Answers     AnswerStore
	// Recorder records Kubernetes Events on the workload.
	Recorder record.EventRecorder
	// Sender sends the CloudEvent release.denied.
	Sender events.Sender
	Clock  clock.PassiveClock

	// inFlight merges concurrent identical requests in this process.
	inFlight singleflight.Group
}

var _ admission.Handler = (*Handler)(nil)

// Admit implements admission.Handler.
func (h *Handler) Admit(ctx context.Context, req *admissionv1.AdmissionRequest) admission.Answer {
	// The client may cancel the request; the answer is stored nevertheless, for its
	// retry.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), responseTimeout)
	defer cancel()
	in := Input{Enabled: h.Settings().ReleaseCheckTimeout > 0, Release: req.SubResource == ""}
	kind, known := h.kindOf(req)
	if !known || ExemptionReason(in) != "" {
		return skip(cmp.Or(ExemptionReason(in), NotARelease))
	}
	change, err := admission.ReadChange(kind, req)
	if err != nil {
		return admission.Fail(err)
	}
	if change.New.OfKnativeService() {
		return skip(NotARelease)
	}
	version, err := workload.Version(kind, &change.New.Template)
	if err != nil {
		return admission.Fail(err)
	}
	q := h.queryOf(change, version)
	d, before := h.decide(ctx, change, q)
	switch d.Action {
	case Skip:
		return skip(d.Reason)
	case Reuse:
		return h.respond(ctx, req, change, q, before.Status)
	default:
		return h.respond(ctx, req, change, q, h.ask(ctx, q, before))
	}
}

func (h *Handler) kindOf(req *admissionv1.AdmissionRequest) (workload.Kind, bool) {
	for _, k := range h.Kinds() {
		if k.Group == req.Kind.Group && k.Kind == req.Kind.Kind {
			return k, true
		}
	}
	return workload.Kind{}, false
}

// queryOf returns the query for a change. The attempt depends on the old object, as in the
// mutating webhook. Without its annotations, that webhook uses the newest ChangeWorkload, so
// the release has another attempt than its check.
func (h *Handler) queryOf(change admission.Change, version string) Query {
	before, _ := change.OldRelease()
	w := change.New
	return Query{
		Namespace: w.Namespace, APIVersion: w.Kind.GroupVersion().String(), Kind: w.Kind.Kind, Name: w.Name,
		AppName: cmp.Or(w.Labels["app.kubernetes.io/name"], w.Labels["app"], w.Name),
		Release: v1alpha1.Release{Version: version, Attempt: before.NextAttempt()},
		User:    change.User.Username,
	}
}

// decide gathers the input and decides. It calls the API server only if the decision
// depends on it.
func (h *Handler) decide(ctx context.Context, change admission.Change, q Query) (Decision, *v1alpha1.ReleaseCheck) {
	s := h.Settings()
	suspension := suspend.Gather(ctx, change, s, h.History)
	in := Input{
		Enabled:      s.ReleaseCheckTimeout > 0,
		Release:      change.Old == nil || change.TemplateChanged,
		ByController: change.ByController(),
		Suspension:   suspend.Confirm(suspend.Decide(suspension), suspension, suspend.AddedBypass(change) != nil).Outcome,
		Attempt:      q.Release.Attempt,
		DryRun:       change.DryRun,
		Now:          h.Clock.Now(),
	}
	if why := ExemptionReason(in); why != "" {
		return Decision{Skip, why}, nil
	}
	if change.Old != nil {
		succeeded, err := h.History.Succeeded(ctx, change.Old, q.Release.Version)
		if err != nil {
			// At worst, the server is asked about a rollback.
			logging.FromContext(ctx).Warnw("could not look up whether the version succeeded", "kind", q.Kind, "error", err)
		}
		in.Succeeded = succeeded
	}
	before, err := h.Answers.Get(ctx, q)
	if err != nil {
		// The server is asked again; a stored answer that is fresh, or a pass, takes precedence.
		logging.FromContext(ctx).Warnw("could not read the stored answer; the server is asked again", "error", err)
	}
	if before != nil {
		in.Stored = &before.Status
	}
	return Decide(in), before
}

// ask queries the server and stores its answer.
func (h *Handler) ask(ctx context.Context, q Query, before *v1alpha1.ReleaseCheck) v1alpha1.ReleaseCheckStatus {
	key := fmt.Sprintf("%s/%s/%s/%s/%d", q.Namespace, q.Kind, q.Name, q.Release.Version, q.Release.Attempt)
	answer, _, _ := h.inFlight.Do(key, func() (any, error) {
		q.Timeout = h.Settings().ReleaseCheckTimeout
		if end, ok := ctx.Deadline(); ok {
			q.Timeout = max(min(q.Timeout, time.Until(end)-storeReserve), time.Millisecond)
		}
		answer := h.CheckClient.Ask(ctx, q)
		stored, err := h.Answers.Store(ctx, q, before, answer)
		if err != nil {
			// The answer is used nevertheless; the next request asks again.
			logging.FromContext(ctx).Errorw("could not store the answer about a release", "namespace", q.Namespace, "name", q.Name, "error", err)
		}
		return stored, nil
	})
	return answer.(v1alpha1.ReleaseCheckStatus)
}

// skip admits a change without asking the server.
func skip(why string) admission.Answer {
	a := admission.Allow(why)
	if why == DryRun {
		a = a.Warn("release check: the server was not asked, because this is a dry run")
	}
	return a
}
