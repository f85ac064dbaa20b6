package budget

import (
	"context"
	"slices"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/internal/kindwatch"
	"github.com/breakwater-dev/breakwater/internal/knativetraffic"
	"github.com/breakwater-dev/breakwater/internal/wiring"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// knativeServices watches which Revisions of Knative Services get requests, while the API server
// has the kind. When traffic moves, the numbers of a budget must follow at once.
type knativeServices struct {
	kindwatch.Informers[schema.GroupVersionResource]
	// served reports whether the API server has the kind.
	served func() (bool, error)
	// changed is called with namespace and name of a Service whose traffic has changed.
	changed func(namespace, name string)
}

func newKnativeServices(client dynamic.Interface, logger *zap.SugaredLogger, served func() (bool, error)) *knativeServices {
	s := &knativeServices{served: served}
	s.Logger = logger
	s.New = func(resource schema.GroupVersionResource) (cache.SharedIndexInformer, error) {
		informer := dynamicinformer.NewFilteredDynamicInformer(client, resource, "", 0, cache.Indexers{}, nil).Informer()
		return informer, informer.SetTransform(trimKnativeService)
	}
	_ = s.Handle(s.handler()) // no informer that could reject it
	return s
}

// knativeService is what is cached of a Service.
type knativeService struct {
	metav1.ObjectMeta
	revisions []string
}

// run starts and stops the watch until ctx ends. Until an installed Serving is found, the
// Services of budgets are read one by one.
func (s *knativeServices) run(ctx context.Context) {
	wait.UntilWithContext(ctx, s.converge, kindwatch.DiscoveryInterval)
}

func (s *knativeServices) converge(ctx context.Context) {
	served, err := s.served()
	if err != nil {
		s.Logger.Warnw("could not ask the API server whether it serves Knative Services", "error", err)
		return
	}
	wanted := map[schema.GroupKind]schema.GroupVersionResource{}
	if served {
		wanted[knativeServiceKind] = workload.KnativeService.GroupVersionResource()
	}
	s.Converge(ctx, wanted)
}

func (s *knativeServices) handler() cache.ResourceEventHandler {
	pass := func(obj any) {
		if service, ok := wiring.Object[*knativeService](obj); ok {
			s.changed(service.Namespace, service.Name)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: pass, DeleteFunc: pass,
		UpdateFunc: func(before, after any) {
			was, _ := wiring.Object[*knativeService](before)
			is, _ := wiring.Object[*knativeService](after)
			if was == nil || is == nil || !slices.Equal(was.revisions, is.revisions) {
				pass(after)
			}
		},
	}
}

func trimKnativeService(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil // a tombstone, or trimmed already
	}
	return &knativeService{
		ObjectMeta: metav1.ObjectMeta{Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion()},
		revisions:  knativetraffic.RevisionsWithTraffic(u.Object),
	}, nil
}

// get returns the Revisions of a Service that get requests; false if the cache does not have the
// Service.
func (s *knativeServices) get(namespace, name string) (revisions []string, ok bool) {
	service, ok := s.Object(knativeServiceKind, namespace, name).(*knativeService)
	if !ok {
		return nil, false
	}
	return service.revisions, true
}
