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

// serving are the Revisions of a Knative Service that get requests.
type serving struct {
	revisions []string
	// watched: a change of the traffic enqueues the budget.
	watched bool
	// fromCache is that of owner.
	fromCache bool
}

// serving returns the Revisions of a Knative Service that get requests; none if the Service does
// not exist, or its kind.
func (o *owners) serving(ctx context.Context, namespace, service string) (serving, error) {
	if revisions, ok := o.services.get(namespace, service); ok {
		return serving{revisions: revisions, watched: true}, nil
	}
	// A Service that is missing in the cache may be new.
	key := "traffic of " + namespace + "/" + service
	if answer, ok := o.cache.Get(key); ok {
		return serving{revisions: answer.([]string), fromCache: true}, nil
	}
	found, err := o.client.Resource(workload.KnativeService.GroupVersionResource()).Namespace(namespace).Get(ctx, service, metav1.GetOptions{})
	var revisions []string
	switch {
	case apierrs.IsNotFound(err):
	case err != nil:
		return serving{}, fmt.Errorf("read the traffic of Knative Service %s: %w", service, err)
	default:
		revisions = knativetraffic.Serving(found.Object)
	}
	o.cache.Set(key, revisions, ownerCacheTTL)
	return serving{revisions: revisions}, nil
}

// serving returns the scope of a budget whose target is a Knative Service with the Revisions that
// have traffic; other scopes as they are.
func (t *ownerTally) serving(scope budget.Scope) (budget.Scope, error) {
	service, ok := scope.KnativeService()
	if !ok {
		return scope, nil
	}
	found, err := t.owners.serving(t.ctx, t.namespace, service)
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
		if above == nil || !slices.Contains(revisions, above.Name) || t.owned[d.UID] != nil {
			continue
		}
		group, err := schema.ParseGroupVersion(above.APIVersion)
		if err != nil || !budget.IsRevision(group.Group, above.Kind) {
			continue
		}
		if o, ok := ownerFrom(d); ok && !o.deleted && o.wanted != nil {
			t.owned[o.uid] = newOwnedPods(o)
		}
	}
	return nil
}
