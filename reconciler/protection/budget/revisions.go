package budget

import (
	"context"
	"fmt"
	"slices"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/internal/knativetraffic"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

var knativeServiceKind = workload.KnativeService.GroupKind()

// traffic says which Revisions of a Knative Service get requests.
type traffic struct {
	revisions []string
	// watched: a change of the traffic enqueues the budget.
	watched bool
	// fromCache is that of owner.
	fromCache bool
}

// traffic returns the Revisions of a Knative Service that get requests; none if the Service does
// not exist, or its kind.
func (o *owners) traffic(ctx context.Context, namespace, service string) (traffic, error) {
	if revisions, ok := o.services.get(namespace, service); ok {
		return traffic{revisions: revisions, watched: true}, nil
	}
	// A Service that is missing in the cache may be new.
	key := "traffic of " + namespace + "/" + service
	if answer, ok := o.cache.Get(key); ok {
		return traffic{revisions: answer.([]string), fromCache: true}, nil
	}
	found, err := o.client.Resource(workload.KnativeService.GroupVersionResource()).Namespace(namespace).Get(ctx, service, metav1.GetOptions{})
	var revisions []string
	switch {
	case apierrs.IsNotFound(err):
	case err != nil:
		return traffic{}, fmt.Errorf("read the traffic of Knative Service %s: %w", service, err)
	default:
		revisions = knativetraffic.RevisionsWithTraffic(found.Object)
	}
	o.cache.Set(key, revisions, ownerCacheTTL)
	return traffic{revisions: revisions}, nil
}

// withTraffic returns the scope of a budget whose target is a Knative Service with the Revisions that
// have traffic; other scopes as they are.
func (t *ownerTally) withTraffic(scope budget.Scope) (budget.Scope, error) {
	service, ok := scope.KnativeService()
	if !ok {
		return scope, nil
	}
	found, err := t.owners.traffic(t.ctx, t.namespace, service)
	if !found.watched {
		t.limitResync(owner{fromCache: found.fromCache})
	}
	return scope.WithTraffic(found.revisions), err
}

// deployments counts the Deployments of Revisions even if they have no pods.
func (t *ownerTally) deployments(revisions []string) error {
	all, err := t.owners.deployments.Deployments(t.namespace).List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list Deployments: %w", err)
	}
	for _, d := range all {
		above := metav1.GetControllerOfNoCopy(d)
		if above == nil || !slices.Contains(revisions, above.Name) {
			continue
		}
		group, err := schema.ParseGroupVersion(above.APIVersion)
		if err != nil || !budget.IsRevision(group.Group, above.Kind) {
			continue
		}
		if o, ok := ownerFrom(d); ok && !o.terminatingOrGone && o.wanted != nil && t.owned[o.key()] == nil {
			t.owned[o.key()] = newOwnedPods(o)
		}
	}
	return nil
}
