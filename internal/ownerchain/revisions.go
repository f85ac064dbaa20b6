package ownerchain

import (
	"context"
	"fmt"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/internal/knativetraffic"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// RevisionsWithTraffic returns the Revisions of a Knative Service that get requests; none if the Service
// does not exist, or its kind. If live is true, it ignores the cache. A Service that cannot be
// read is an error, because its pods would not be protected.
func (f *Finder) RevisionsWithTraffic(ctx context.Context, namespace, service string, live bool) ([]string, error) {
	key := "traffic of " + namespace + "/" + service
	if !live {
		if answer, ok := f.cache.Get(key); ok {
			return answer.([]string), nil
		}
	}
	answer, err, _ := f.inflight.Do(key, func() (any, error) {
		revisions, err := f.readRevisions(ctx, namespace, service)
		if err == nil {
			f.cache.Set(key, revisions, cacheTTL)
		}
		return revisions, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the traffic of Knative Service %s: %w", service, err)
	}
	return answer.([]string), nil
}

func (f *Finder) readRevisions(ctx context.Context, namespace, service string) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cacheTTL)
	defer cancel()
	o, err := f.objects.Resource(workload.KnativeService.GroupVersionResource()).Namespace(namespace).Get(ctx, service, metav1.GetOptions{})
	if apierrs.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return knativetraffic.RevisionsWithTraffic(o.Object), nil
}
