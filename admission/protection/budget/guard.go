package budget

import (
	"context"
	"errors"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/protection/denialevents"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	policyclient "github.com/breakwater-dev/breakwater/client/clientset/versioned/typed/policy/v1alpha1"
	listers "github.com/breakwater-dev/breakwater/client/listers/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/internal/groupcommit"
)

// The webhooks that Guard answers.
const (
	// PodWebhook is asked about pods: deletion, eviction, change in place.
	PodWebhook = "vpodbudget.kb.io"
	// OwnerWebhook is asked about the deletion of controllers that are not topmost.
	OwnerWebhook = "vownerbudget.kb.io"
	// RestartWebhook is asked about restarts of containers by OpenKruise.
	RestartWebhook = "vrestartbudget.kb.io"
)

// Guard answers whether pods may become unavailable.
type Guard struct {
	Budgets  listers.PodUnavailableBudgetLister
	Client   policyclient.PodUnavailableBudgetsGetter
	Pods     corev1client.PodsGetter
	Owners   Owners
	PDBs     Disruptions
	Commit   *Committer
	Recorder record.EventRecorder
	// Denials tells programs; nil: nobody.
	Denials *denialevents.Publisher
	// Recent remembers what passed a moment ago.
	Recent *RecentDeletions
	// Reliance remembers who goes on by which charge.
	References *ChargeReferences
	// Replica is the name of this process in answers to probes.
	Replica string
	// Refuses says whether a request is refused when it gets no answer.
	FailsClosed func() bool
}

var _ admission.Handler = Guard{}

// Charges says whether a request may come to charge a budget: one that could is
// there. Each replica answers for itself what it knows of a budget.
func (g Guard) MayCharge(req *admissionv1.AdmissionRequest) bool {
	budgets, err := g.Budgets.PodUnavailableBudgets(req.Namespace).List(labels.Everything())
	return err == nil && len(budgets) > 0 && !isProbe(req)
}

// Admit implements admission.Handler.
func (g Guard) Admit(ctx context.Context, req *admissionv1.AdmissionRequest) admission.Answer {
	if isProbe(req) {
		return g.answerProbe(req)
	}
	ctx, cancel := admission.WithDeadline(ctx)
	defer cancel()
	budgets, err := g.Budgets.PodUnavailableBudgets(req.Namespace).List(labels.Everything())
	if err != nil {
		return admission.Fail(err)
	}
	if len(budgets) == 0 {
		return admission.Allow(DecisionUncovered)
	}
	action, err := reader{g.Pods, g.Owners}.read(ctx, req)
	if err != nil {
		return undecided(nil, err)
	}
	if action == nil {
		return admission.Allow(DecisionFree)
	}
	slices.SortFunc(budgets, func(a, b *v1alpha1.PodUnavailableBudget) int { return strings.Compare(a.Name, b.Name) })
	ask := evaluation{Guard: g, action: action, req: req, admissionID: g.References.nextID(), dryRun: ptr.Deref(req.DryRun, false), decision: DecisionFree}
	return ask.evaluateAll(ctx, budgets)
}

// asking is one request on its way through the budgets.
type evaluation struct {
	Guard
	action *Action
	req    *admissionv1.AdmissionRequest
	dryRun bool
	// asker is the name of this admission.
	admissionID uint64
	// charged is what has been taken so far.
	charges []budgetCharge
	// decision and warnings are those of the answer, if nothing refuses.
	decision string
	warnings []string
}

// taken is a charge of a budget.
type budgetCharge struct {
	key    types.NamespacedName
	charge budget.Charge
}

// all asks one budget after the other; the first that refuses decides, and what
// the others took is given back.
func (a *evaluation) evaluateAll(ctx context.Context, budgets []*v1alpha1.PodUnavailableBudget) admission.Answer {
	for _, b := range budgets {
		refusal := a.evaluate(ctx, b)
		if refusal == nil {
			continue
		}
		if b.Spec.Shadow {
			a.recordShadowDenial(b, refusal)
			continue
		}
		a.recordEvent(b, v1alpha1.ReasonDisruptionDenied, refusal)
		a.sendDenied(ctx, b, refusal)
		a.refundAll(ctx)
		return *refusal
	}
	// Who asked has gone, and the API server has refused for us. What it takes
	// for an answer is charged until its pod is seen to go.
	if ctx.Err() != nil && a.FailsClosed() {
		a.refundAll(ctx)
		return undecided(nil, groupcommit.ErrDeadline)
	}
	answer := admission.Allow(a.decision)
	answer.Response.Warnings = a.warnings
	return answer
}

// attempts bounds how often the pods are chosen anew because the budget was
// changed meanwhile.
const maxAttempts = 3

// one asks a budget; nil means that it lets the request pass.
func (a *evaluation) evaluate(ctx context.Context, b *v1alpha1.PodUnavailableBudget) *admission.Answer {
	key := types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
	for range maxAttempts {
		charge, err := a.chargeOf(ctx, b, false)
		if err != nil {
			return ptr.To(undecided(b, err))
		}
		if charge == nil {
			return nil
		}
		charge.AdmissionID = a.admissionID
		if blocked := a.blocked(ctx, charge); blocked != nil {
			return blocked
		}
		if a.isRepeated(key, b, *charge) {
			return nil
		}
		if done, err := a.carriedOut(ctx, b, *charge); err != nil {
			return ptr.To(undecided(b, err))
		} else if done {
			a.decision = DecisionRepeated
			return nil
		}
		verdict, err := a.Commit.Do(ctx, key, *charge)
		switch {
		case apierrs.IsNotFound(err):
			return nil
		case err != nil:
			if errors.Is(err, groupcommit.ErrDeadline) {
				a.addCharge(key, *charge) // its write may have succeeded
			}
			return ptr.To(undecided(b, err))
		}
		if !verdict.Passes {
			a.release(ctx, budgetCharge{key, *charge})
		}
		switch {
		case verdict.Outdated:
			if b, err = a.Client.PodUnavailableBudgets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{}); apierrs.IsNotFound(err) {
				return nil
			} else if err != nil {
				return ptr.To(undecided(nil, err))
			}
		case verdict.Unsynced:
			return ptr.To(unsynced(b))
		case verdict.Passes:
			a.addCharge(key, *charge)
			if !a.dryRun {
				a.Recent.add(b, *charge)
			}
			if a.decision == DecisionFree {
				a.decision = DecisionCharged
			}
			return nil
		default:
			return a.deny(ctx, b, verdict)
		}
	}
	return ptr.To(unsynced(b))
}

// refuse returns the refusal, unless the owners turn out to end: what was
// remembered of them may have been old.
func (a *evaluation) deny(ctx context.Context, b *v1alpha1.PodUnavailableBudget, verdict budget.Verdict) *admission.Answer {
	again, err := a.chargeOf(ctx, b, true)
	if err != nil {
		return ptr.To(undecided(b, err))
	}
	if again == nil {
		return nil
	}
	return ptr.To(denial(a.action, b, verdict))
}

// blocked returns the refusal of an eviction that Kubernetes would refuse.
func (a *evaluation) blocked(ctx context.Context, charge *budget.Charge) *admission.Answer {
	if a.action.Operation != v1alpha1.OperationEvict || !charge.Pods[0].Available {
		return nil
	}
	pdb, err := a.PDBs.Blocking(ctx, a.action.Pods[0])
	if err != nil {
		return ptr.To(undecided(nil, err))
	}
	if pdb == nil {
		return nil
	}
	return ptr.To(disruptionDenial(a.action, pdb))
}

// wouldRefuse turns a refusal into a warning.
func (a *evaluation) recordShadowDenial(b *v1alpha1.PodUnavailableBudget, refusal *admission.Answer) {
	a.recordEvent(b, v1alpha1.ReasonDisruptionWouldBeDenied, refusal)
	a.decision = DecisionShadow
	a.warnings = append(a.warnings, "shadow mode, so this passes: "+refusal.Response.Result.Message)
}
