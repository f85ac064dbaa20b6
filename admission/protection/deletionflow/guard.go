package deletionflow

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/record"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/protection/denialevents"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	listers "github.com/breakwater-dev/breakwater/client/listers/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/deletionflow"
	"github.com/breakwater-dev/breakwater/internal/deletionwindow"
)

// Webhooks that Guard answers.
const (
	// Webhook is for evictions and deletions of pods, except in namespaces with
	// budgets, where the webhook of budgets asks Guard.
	Webhook = "vdeletionflow.kb.io"
	// NamespaceWebhook is for deletions of namespaces.
	NamespaceWebhook = "vnamespacedeletionflow.kb.io"
)

// PodDisruptionBudgets finds those that refuse an eviction.
type PodDisruptionBudgets interface {
	// Blocking returns the status with which the API server will refuse the eviction of the pod; nil if
	// no PodDisruptionBudget that is known refuses it.
	Blocking(context.Context, *corev1.Pod) (*metav1.Status, error)
}

// CheckedClock is the local clock. SkewError returns an error if the clock differs too much from
// the API server's.
type CheckedClock interface {
	Now() time.Time
	SkewError() error
}

// Guard decides whether pods may be deleted.
type Guard struct {
	FlowControls listers.PodDeletionFlowControlLister
	Pods         corev1client.PodsGetter
	// Objects lists the pods of a namespace.
	Objects    metadata.Interface
	Namespaces corev1listers.NamespaceLister
	PDBs       PodDisruptionBudgets
	Commit     *Committer
	Clock      CheckedClock
	Recorder   record.EventRecorder
	// Denials publishes denials as CloudEvents; nil disables it.
	Denials *denialevents.Publisher
}

var _ admission.Handler = Guard{}

// Admit implements admission.Handler.
func (g Guard) Admit(ctx context.Context, req *admissionv1.AdmissionRequest) admission.Answer {
	ctx, cancel := admission.WithDeadline(ctx)
	defer cancel()
	flows, err := g.FlowControls.List(labels.Everything())
	if err != nil {
		return undecided(admission.DecisionOf(err), err)
	}
	if len(flows) == 0 {
		return admission.Allow(DecisionNoFlowControl)
	}
	r, err := reader{g.Pods, g.Objects, g.Namespaces}.read(ctx, req)
	if err != nil {
		return unanswered(admission.DecisionOf(err), err, flows)
	}
	if r == nil {
		return admission.Allow(DecisionPodNotFound)
	}
	return g.decide(ctx, r, flows)
}

// LikelyDenies reports whether, according to the cache, a flow control that is not in shadow mode
// and counts the request, which deletes a pod, is at its limit or has an invalid rule.
func (g Guard) LikelyDenies(req *admissionv1.AdmissionRequest) bool {
	flows, err := g.FlowControls.List(labels.Everything())
	if err != nil || len(flows) == 0 {
		return false
	}
	ns, err := g.Namespaces.Get(req.Namespace)
	if err != nil {
		return false
	}
	// The pod is not read, because a white list rarely contains it: the request is counted
	// with an empty pod instead.
	some := deletionflow.Request{Namespace: namespaceOf(ns), Pods: []deletionflow.Pod{{}}, Eviction: req.SubResource == "eviction"}
	return slices.ContainsFunc(flows, func(f *v1alpha1.PodDeletionFlowControl) bool {
		return g.likelyDenies(f, some)
	})
}

// likelyDenies decides a dry run of the request on the cached flow control.
func (g Guard) likelyDenies(f *v1alpha1.PodDeletionFlowControl, r deletionflow.Request) bool {
	r.DryRun = true
	decisions, _ := deletionflow.Decide(f, []deletionflow.Request{r}, g.Clock.Now(), deletionwindow.DefaultSkew)
	return !decisions[0].Allowed
}

// decide applies one flow control after the other. The first that denies decides; the
// counts of those before it are kept.
func (g Guard) decide(ctx context.Context, r *request, flows []*v1alpha1.PodDeletionFlowControl) admission.Answer {
	matching, why := g.applicable(r, flows)
	if len(matching) == 0 {
		return admission.Allow(why)
	}
	if err := g.Clock.SkewError(); err != nil {
		return unanswered(DecisionDeniedClockSkew, err, matching)
	}
	if blocked := g.blocked(ctx, r, matching); blocked != nil {
		return *blocked
	}
	answer := admission.Allow(DecisionCounted)
	for _, f := range matching {
		d, err := g.Commit.Do(ctx, types.NamespacedName{Name: f.Name}, r.Request)
		switch {
		case apierrs.IsNotFound(err): // deleted in the meantime
		case err != nil && f.Spec.Shadow:
			answer = uncounted(answer, err)
		case err != nil:
			return undecided(admission.DecisionOf(err), err)
		case !d.Allowed:
			denied := denial(r, f.Name, d, g.Clock.Now())
			g.recordEvent(r, f, v1alpha1.ReasonDeletionDenied, denied)
			g.sendDenied(ctx, r, f, denied)
			return denied
		case d.Shadow:
			denied := denial(r, f.Name, d, g.Clock.Now())
			g.recordEvent(r, f, v1alpha1.ReasonDeletionWouldBeDenied, denied)
			answer.Decision = DecisionShadow
			answer = answer.Warn("allowed in shadow mode: " + denied.Response.Result.Message)
		}
	}
	return answer
}

// applicable returns the flow controls that count the request, or why none does. The decision is
// repeated on the committed state. Those that likely deny come first, so that the others do not count
// what these deny, and those in shadow mode last, so that they count only what the others allowed.
func (g Guard) applicable(r *request, flows []*v1alpha1.PodDeletionFlowControl) (matching []*v1alpha1.PodDeletionFlowControl, why string) {
	for _, f := range flows {
		n, notCounted := deletionflow.Count(&f.Spec, r.Request)
		if n > 0 {
			matching = append(matching, f)
		} else if why == "" || notCounted != deletionflow.OutOfScope {
			why = notCounted
		}
	}
	ranks := map[string]int{}
	for _, f := range matching {
		switch {
		case f.Spec.Shadow:
			ranks[f.Name] = 1
		case len(matching) > 1 && g.likelyDenies(f, r.Request):
			ranks[f.Name] = -1
		}
	}
	slices.SortFunc(matching, func(x, y *v1alpha1.PodDeletionFlowControl) int {
		return cmp.Or(cmp.Compare(ranks[x.Name], ranks[y.Name]), strings.Compare(x.Name, y.Name))
	})
	return matching, why
}

// blocked returns the denial of an eviction that the API server will refuse because of PodDisruptionBudgets.
func (g Guard) blocked(ctx context.Context, r *request, flows []*v1alpha1.PodDeletionFlowControl) *admission.Answer {
	if !r.Eviction || r.DryRun {
		return nil
	}
	refusal, err := g.PDBs.Blocking(ctx, r.pod)
	if err != nil {
		return new(unanswered(admission.DecisionOf(err), err, flows))
	}
	if refusal == nil {
		return nil
	}
	return new(admission.Deny(DecisionDisruptionBudget, *refusal))
}
