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

// NewLoneSender is NewSender for a process without injection. What it returns
// beside the sender follows the ConfigMap until ctx ends; the caller runs both.
// Of all ConfigMaps only that one is read, so that no right to others is needed.
func NewLoneSender(ctx context.Context, kube kubernetes.Interface, config *rest.Config) (*delivery.Sender, func(context.Context) error, error) {
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("create client: %w", err)
	}
	// What the Broker's resolver wants to find; the rest of injection is not needed.
	ctx = addressable.WithDuck(context.WithValue(ctx, dynamicclient.Key{}, objects))
	cmw := informer.NewInformedWatcherFromFactory(informers.NewSharedInformerFactoryWithOptions(kube, 0,
		informers.WithNamespace(v1alpha1.SystemNamespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, ConfigName).String()
		})), v1alpha1.SystemNamespace)
	sender, err := NewSender(ctx, cmw, delivery.Options{})
	if err != nil {
		return nil, nil, err
	}
	follow := func(ctx context.Context) error {
		if err := cmw.Start(ctx.Done()); err != nil && ctx.Err() == nil {
			return fmt.Errorf("watch %s: %w", ConfigName, err)
		}
		return nil
	}
	return sender, follow, nil
}
