package broker

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"knative.dev/pkg/client/injection/ducks/duck/v1/addressable"
	"knative.dev/pkg/configmap/informer"
	"knative.dev/pkg/injection/clients/dynamicclient"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events/delivery"
)

// NewStandaloneSender is NewSender for a process without injection. The returned
// function watches the ConfigMap until ctx ends; the caller runs it and the sender.
// Only that ConfigMap is watched, so no permission for others is needed.
func NewStandaloneSender(ctx context.Context, config *rest.Config) (*delivery.Sender, func(context.Context) error, error) {
	config = rest.CopyConfig(config)
	config.Timeout = 0 // a timeout would end each watch
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("create client: %w", err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("create client: %w", err)
	}
	// The Broker's resolver takes these two from the context.
	ctx = addressable.WithDuck(context.WithValue(ctx, dynamicclient.Key{}, objects))
	cmw := informer.NewInformedWatcherFromFactory(informers.NewSharedInformerFactoryWithOptions(kube, 0,
		informers.WithNamespace(v1alpha1.SystemNamespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, ConfigName).String()
		})), v1alpha1.SystemNamespace)
	sender := NewSender(ctx, cmw, delivery.Options{})
	follow := func(ctx context.Context) error {
		if err := cmw.Start(ctx.Done()); err != nil && ctx.Err() == nil {
			return fmt.Errorf("watch %s: %w", ConfigName, err)
		}
		return nil
	}
	return sender, follow, nil
}
