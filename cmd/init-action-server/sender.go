package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"knative.dev/pkg/client/injection/ducks/duck/v1/addressable"
	"knative.dev/pkg/configmap/informer"
	"knative.dev/pkg/injection/clients/dynamicclient"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/broker"
	"github.com/breakwater-dev/breakwater/functions"
)

// newSender returns what sends CloudEvents, and what follows the reference to
// the Broker. Where there is no Broker, or no Knative at all, events wait in a
// bounded queue and nothing else happens.
func newSender(ctx context.Context, clients functions.Clients) (*events.Sender, func(context.Context) error, error) {
	objects, err := dynamic.NewForConfig(clients.Config)
	if err != nil {
		return nil, nil, fmt.Errorf("create client: %w", err)
	}
	// What the Broker's resolver wants to find; the rest of injection is not needed.
	ctx = addressable.WithDuck(context.WithValue(ctx, dynamicclient.Key{}, objects))
	// One ConfigMap only, so that no permission on others is needed.
	config := informer.NewInformedWatcherFromFactory(informers.NewSharedInformerFactoryWithOptions(clients.Kube, 0,
		informers.WithNamespace(v1alpha1.SystemNamespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, broker.ConfigName).String()
		})), v1alpha1.SystemNamespace)
	sender, err := broker.NewSender(ctx, config, events.Options{})
	if err != nil {
		return nil, nil, err
	}
	follow := func(ctx context.Context) error {
		if err := config.Start(ctx.Done()); err != nil && ctx.Err() == nil {
			return fmt.Errorf("watch %s: %w", broker.ConfigName, err)
		}
		return nil
	}
	return sender, follow, nil
}
