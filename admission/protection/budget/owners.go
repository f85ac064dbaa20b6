package budget

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/internal/groupcommit"
	"github.com/breakwater-dev/breakwater/internal/ownerchain"
)

// Owners reads the controllers above an object.
type Owners interface {
	Chain(ctx context.Context, namespace string, refs []metav1.OwnerReference, live bool) (budget.Chain, error)
	// SelectorOf returns which pods the nearest controller selects.
	SelectorOf(ctx context.Context, namespace string, refs []metav1.OwnerReference) (ownerchain.Selection, error)
	// RevisionsWithTraffic returns the Revisions of a Knative Service that get requests.
	RevisionsWithTraffic(ctx context.Context, namespace, service string, live bool) ([]string, error)
}

// requestOwners are the Owners of one request, which has one namespace. They remember live answers:
// the request may be about many pods of one controller, and in a namespace with many budgets. After
// the deadline of the request they read nothing, because the reads of Owners do not end with it.
type requestOwners struct {
	Owners
	// chains are live answers, by the controller among the references.
	chains map[metav1.OwnerReference]budget.Chain
	// traffic are live answers, by the name of the Knative Service.
	traffic map[string][]string
}

func newRequestOwners(o Owners) requestOwners {
	return requestOwners{o, map[metav1.OwnerReference]budget.Chain{}, map[string][]string{}}
}

func (o requestOwners) Chain(ctx context.Context, namespace string, refs []metav1.OwnerReference, live bool) (budget.Chain, error) {
	return remember(ctx, o.chains, controllerOf(&metav1.ObjectMeta{OwnerReferences: refs}), live, func() (budget.Chain, error) {
		return o.Owners.Chain(ctx, namespace, refs, live)
	})
}

func (o requestOwners) RevisionsWithTraffic(ctx context.Context, namespace, service string, live bool) ([]string, error) {
	return remember(ctx, o.traffic, service, live, func() ([]string, error) {
		return o.Owners.RevisionsWithTraffic(ctx, namespace, service, live)
	})
}

// remember returns the live answer if there is one, also instead of a cached one of Owners. Otherwise it
// reads, and stores a live answer.
func remember[K comparable, V any](ctx context.Context, answers map[K]V, key K, live bool, read func() (V, error)) (V, error) {
	answer, ok := answers[key]
	if ok {
		return answer, nil
	}
	if ctx.Err() != nil {
		return answer, groupcommit.ErrDeadline
	}
	answer, err := read()
	if err == nil && live {
		answers[key] = answer
	}
	return answer, err
}
