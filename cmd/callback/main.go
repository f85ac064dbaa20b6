// The callback receives the server's verdicts and hands them to the Broker.
package main

import (
	"context"
	"fmt"
	"log"

	"go.opentelemetry.io/otel"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/utils/clock"
	"knative.dev/pkg/client/injection/ducks/duck/v1/addressable"
	"knative.dev/pkg/configmap/informer"
	"knative.dev/pkg/injection/clients/dynamicclient"
	"knative.dev/pkg/signals"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/broker"
	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/functions/callback"
)

const name = "callback"

func main() {
	if err := functions.Run(signals.NewContext(), name, build); err != nil {
		log.Fatal(err)
	}
}

func build(ctx context.Context, clients functions.Clients) (functions.Parts, error) {
	objects, err := dynamic.NewForConfig(clients.Config)
	if err != nil {
		return functions.Parts{}, fmt.Errorf("create client: %w", err)
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
		return functions.Parts{}, err
	}
	handler, err := callback.New(callback.Options{
		Change: clients.Change, Server: functions.CachedServer(clients.Kube), Broker: sender,
		Clock: clock.RealClock{}, Meter: otel.Meter("github.com/breakwater-dev/breakwater/functions/" + name),
	})
	watch := func(ctx context.Context) error {
		if err := config.Start(ctx.Done()); err != nil && ctx.Err() == nil {
			return fmt.Errorf("watch %s: %w", broker.ConfigName, err)
		}
		return nil
	}
	return functions.Parts{Handler: handler, Beside: []func(context.Context) error{watch, sender.Run}}, err
}
