package budget

import (
	"context"
	"errors"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/protection/denialevents"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	policyclient "github.com/breakwater-dev/breakwater/client/clientset/versioned/typed/policy/v1alpha1"
	listers "github.com/breakwater-dev/breakwater/client/listers/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/internal/groupcommit"
	"github.com/breakwater-dev/breakwater/internal/podlist"
)

// Webhooks that Guard answers.
const (
	// PodWebhook is for deletions, evictions and in-place changes of pods.
	PodWebhook = "vpodbudget.kb.io"
	// OwnerWebhook is for deletions of controllers that are not topmost, and updates of ReplicaSets.
	OwnerWebhook = "vownerbudget.kb.io"
	// RestartWebhook is for restarts of containers by OpenKruise.
	RestartWebhook = "vrestartbudget.kb.io"
)

// Guard decides whether pods may become unavailable.
type Guard struct {
	Budgets listers.PodUnavailableBudgetLister
	Client  policyclient.PodUnavailableBudgetsGetter
	Pods    corev1client.PodsGetter
	// PodLists lists the pods of controllers.
	PodLists *podlist.Lister
	Owners   Owners
	// Namespaces tells which namespaces terminate.
	Namespaces Namespaces
	PDBs       PodDisruptionBudgets
	Commit     *Committer
	Recorder   record.EventRecorder
	// Denials publishes denials as CloudEvents; nil disables it.
	Denials *denialevents.Publisher
	// Recent remembers recently allowed deletions.
	Recent *RecentDeletions
	// References remembers which requests share a charge.
	References *ChargeReferences
	// Controller tells whether the numbers of budgets may be old; nil if their age is not
	// bounded.
	Controller *ControllerLeases
	// Replica is the name of this pod in answers to probes.
	Replica string
	// FailsClosed reports whether the API server denies a request without an answer.
	FailsClosed func() bool
}

var _ admission.Handler = Guard{}

// MayCharge reports whether a request may charge a budget: its namespace has one. A
// probe does not, and each replica has to answer it itself.
func (g Guard) MayCharge(req *admissionv1.AdmissionRequest) bool {
	budgets, err := g.Budgets.PodUnavailableBudgets(req.Namespace).List(labels.Everything())
	return err == nil && len(budgets) > 0 && !isProbe(req)
}

// Admit implements admission.Handler.
func (g Guard) Admit(ctx context.Context, req *admissionv1.AdmissionRequest) admission.Answer {
	ctx, cancel := admission.WithDeadline(ctx)
	defer cancel()
	answer, charges := g.Charge(ctx, req)
	return charges.Finish(ctx, answer)
}

// Charge decides a request and charges the budgets. The answer is preliminary until
// the charges are settled. The context must have the deadline of the answer.
func (g Guard) Charge(ctx context.Context, req *admissionv1.AdmissionRequest) (admission.Answer, Charges) {
	if isProbe(req) {
		return g.answerProbe(req), Charges{}
	}
	budgets, err := g.Budgets.PodUnavailableBudgets(req.Namespace).List(labels.Everything())
	if err != nil {
		return admission.Fail(err), Charges{}
	}
	budgets = slices.DeleteFunc(budgets, terminating)
	if len(budgets) == 0 {
		return admission.Allow(DecisionNoBudget), Charges{}
	}
	if ends, err := g.Namespaces.deletedWithNamespace(ctx, req); err != nil {
		return undecided(nil, err), Charges{}
	} else if ends {
		return admission.Allow(DecisionNamespaceTerminating), Charges{}
	}
	dryRun, err := admission.DryRun(req)
	if err != nil {
		return undecided(nil, err), Charges{}
	}
	g.Owners = newRequestOwners(g.Owners)
	action, err := reader{g.Pods, g.PodLists, g.Owners}.read(ctx, req)
	if err != nil {
		return undecided(nil, err), Charges{}
	}
	if action == nil {
		return admission.Allow(DecisionNotCharged), Charges{}
	}
	slices.SortFunc(budgets, inOrder(int32(len(action.Pods))))
	e := &evaluation{Guard: g, action: action, req: req, admissionID: g.References.nextID(), dryRun: dryRun, decision: DecisionNotCharged}
	return e.evaluateAll(ctx, budgets), Charges{e}
}

// terminating reports whether a budget was deleted, and remains because of a finalizer. Its deletion
// raises its generation, and the controller does not compute it anymore.
func terminating(b *v1alpha1.PodUnavailableBudget) bool { return b.DeletionTimestamp != nil }

// evaluation is the evaluation of one request by the budgets of its namespace.
type evaluation struct {
	Guard
	action *Action
	req    *admissionv1.AdmissionRequest
	dryRun bool
	// admissionID identifies the request in References.
	admissionID uint64
	// charged are the requests to budgets that were charged so far.
	charged []budgetRequest
	// unknownSelector says why a pod may leave the budget that was asked last, if its controller's selector is
	// unknown.
	unknownSelector string
	// decision and warnings are part of the answer, if no budget denies.
	decision string
	warnings []string
}

// budgetRequest is a request to a budget and the key of the budget.
type budgetRequest struct {
	key types.NamespacedName
	budget.Request
}

// evaluateAll applies one budget after the other. The first that denies decides.
func (e *evaluation) evaluateAll(ctx context.Context, budgets []*v1alpha1.PodUnavailableBudget) admission.Answer {
	for _, b := range budgets {
		b, denied := e.evaluate(ctx, b)
		if denied == nil {
			continue
		}
		if b.Spec.Shadow {
			e.allowInShadowMode(b, denied)
			continue
		}
		e.recordEvent(b, v1alpha1.ReasonDisruptionDenied, denied)
		e.sendDenied(ctx, b, denied)
		return *denied
	}
	answer := admission.Allow(e.decision)
	for _, text := range e.warnings {
		answer = answer.Warn(text)
	}
	return answer
}

// maxAttempts is how often pods are chosen at most: again when the budget has changed
// meanwhile.
const maxAttempts = 3

// evaluate applies one budget; a nil answer means that it allows the request. It returns the budget
// that decided: read from the API server if the one in the cache is outdated.
func (e *evaluation) evaluate(ctx context.Context, b *v1alpha1.PodUnavailableBudget) (*v1alpha1.PodUnavailableBudget, *admission.Answer) {
	if d := e.action.Departure; d != nil {
		return b, d.deny(e.action, b)
	}
	key := types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
	for range maxAttempts {
		request, answer := e.prepare(ctx, key, b)
		if request == nil {
			return b, answer
		}
		decision, err := e.Commit.Do(ctx, key, *request)
		switch {
		case apierrs.IsNotFound(err):
			return b, nil
		case err != nil:
			if errors.Is(err, groupcommit.ErrDeadline) {
				e.addCharge(key, *request) // the controller refunds it if the write has succeeded
			} else {
				e.refund(ctx, budgetRequest{key, *request})
			}
			return b, new(undecided(b, err))
		}
		if !decision.Admitted {
			e.refund(ctx, budgetRequest{key, *request})
		}
		switch {
		case decision.Outdated:
			live, err := e.Client.PodUnavailableBudgets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
			if apierrs.IsNotFound(err) {
				return b, nil
			} else if err != nil {
				return b, new(undecided(nil, err))
			}
			if b = live; terminating(b) {
				return b, nil
			}
		case decision.Unsynced:
			return b, new(unsynced(b))
		case decision.Admitted:
			e.addCharge(key, *request)
			if !e.dryRun {
				e.References.confirm(key, *request, decision)
				e.Recent.add(b, *request)
			}
			if e.decision == DecisionNotCharged {
				e.decision = DecisionCharged
			}
			return b, nil
		default:
			return b, e.deny(ctx, b, decision)
		}
	}
	return b, new(unsynced(b))
}

// prepare returns the request to charge, or nil and the answer; a nil answer means that the budget allows the
// request without a charge.
func (e *evaluation) prepare(ctx context.Context, key types.NamespacedName, b *v1alpha1.PodUnavailableBudget) (*budget.Request, *admission.Answer) {
	request, err := e.requestTo(ctx, b, false)
	if err != nil {
		return nil, new(undecided(b, err))
	}
	if request == nil {
		return nil, nil
	}
	request.AdmissionID = e.admissionID
	if blocked := e.blocked(ctx, request); blocked != nil {
		return nil, blocked
	}
	if e.useRecentCharge(key, b, *request) {
		return nil, nil
	}
	if done, err := e.carriedOut(ctx, b, *request); err != nil {
		e.refund(ctx, budgetRequest{key, *request})
		return nil, new(undecided(b, err))
	} else if done {
		e.decision = DecisionRepeated
		return nil, nil
	}
	if reason := e.Controller.StaleReason(); reason != "" {
		e.refund(ctx, budgetRequest{key, *request})
		return nil, new(stale(b, reason))
	}
	return request, nil
}

// deny returns the denial, unless a live read shows that the owners are deleted: the
// cached ones may have been stale.
func (e *evaluation) deny(ctx context.Context, b *v1alpha1.PodUnavailableBudget, decision budget.Decision) *admission.Answer {
	again, err := e.requestTo(ctx, b, true)
	if err != nil {
		return new(undecided(b, err))
	}
	if again == nil {
		return nil
	}
	return new(denial(e.action, b, decision, e.unknownSelector))
}

// blocked returns the denial of an eviction that the API server will refuse because of PodDisruptionBudgets.
func (e *evaluation) blocked(ctx context.Context, request *budget.Request) *admission.Answer {
	if e.action.Operation != v1alpha1.OperationEvict || !request.Pods[0].BecomesUnavailable {
		return nil
	}
	refusal, err := e.PDBs.Blocking(ctx, e.action.Pods[0])
	if err != nil {
		return new(undecided(nil, err))
	}
	if refusal == nil {
		return nil
	}
	return new(admission.Deny(DecisionDisruptionBudget, *refusal))
}

// allowInShadowMode turns a denial into a warning and an Event.
func (e *evaluation) allowInShadowMode(b *v1alpha1.PodUnavailableBudget, denied *admission.Answer) {
	e.recordEvent(b, v1alpha1.ReasonDisruptionWouldBeDenied, denied)
	e.decision = DecisionShadow
	e.warnings = append(e.warnings, "allowed in shadow mode: "+denied.Response.Result.Message)
}
