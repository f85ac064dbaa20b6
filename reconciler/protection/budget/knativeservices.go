package budget

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/internal/knativetraffic"
	"github.com/breakwater-dev/breakwater/internal/wiring"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// discoveryInterval is how often the API server is asked whether it has Knative Services: one
// request. Until an installed Serving is found, the Services of budgets are read one by one.
const discoveryInterval = 15 * time.Second

// knativeServices watches which Revisions of Knative Services get requests, while the API server
// has the kind. When traffic moves, the numbers of a budget must follow at once.
type knativeServices struct {
	client dynamic.Interface
	// served reports whether the API server has the kind.
	served func() (bool, error)
	// changed is called with namespace and name of a Service whose traffic has changed.
	changed func(namespace, name string)
	logger  *zap.SugaredLogger

	mu sync.RWMutex
	// informer is nil while the API server does not have the kind; stop ends it.
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
}

// knativeService is what is cached of a Service.
type knativeService struct {
	metav1.ObjectMeta
	serving []string
}

// run starts and stops the watch until ctx ends.
func (s *knativeServices) run(ctx context.Context) {
	wait.UntilWithContext(ctx, s.converge, discoveryInterval)
}

func (s *knativeServices) converge(ctx context.Context) {
	served, err := s.served()
	if err != nil {
		s.logger.Warnw("ask the API server for Knative Services", "error", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case served && s.informer == nil:
		if s.informer, err = s.newInformer(); err != nil {
			s.logger.Errorw("watch Knative Services", "error", err)
			s.informer = nil
			return
		}
		s.logger.Info("started watching Knative Services")
		ctx, s.stop = context.WithCancel(ctx)
		go s.informer.RunWithContext(ctx)
	case !served && s.informer != nil:
		s.logger.Info("stopped watching Knative Services")
		s.stop()
		s.informer = nil
	}
}

func (s *knativeServices) newInformer() (cache.SharedIndexInformer, error) {
	informer := dynamicinformer.NewFilteredDynamicInformer(s.client, workload.KnativeService.GroupVersionResource(), "", 0, cache.Indexers{}, nil).Informer()
	if err := informer.SetTransform(trimKnativeService); err != nil {
		return nil, err
	}
	pass := func(obj any) {
		if service, ok := wiring.Object[*knativeService](obj); ok {
			s.changed(service.Namespace, service.Name)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: pass, DeleteFunc: pass,
		UpdateFunc: func(before, after any) {
			was, _ := wiring.Object[*knativeService](before)
			is, _ := wiring.Object[*knativeService](after)
			if was == nil || is == nil || !slices.Equal(was.serving, is.serving) {
				pass(after)
			}
		},
	})
	return informer, err
}

func trimKnativeService(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil // a tombstone, or trimmed already
	}
	return &knativeService{
		ObjectMeta: metav1.ObjectMeta{Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion()},
		serving:    knativetraffic.Serving(u.Object),
	}, nil
}

// get returns the Revisions of a Service that get requests; false if the cache does not have the
// Service.
func (s *knativeServices) get(namespace, name string) (serving []string, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.informer == nil {
		return nil, false
	}
	obj, _, err := s.informer.GetIndexer().GetByKey(cache.ObjectName{Namespace: namespace, Name: name}.String())
	if err != nil {
		return nil, false // a cache returns no error
	}
	service, ok := obj.(*knativeService)
	if !ok {
		return nil, false
	}
	return service.serving, true
}
