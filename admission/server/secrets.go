package server

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/injection/clients/namespacedkube/informers/factory"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// SecretInformerFactory replaces the informer factory of knative's webhook for
// Secrets. Knative's factory lists all Secrets of the namespace, which would require
// read access to the AlterShield token; this one watches the named Secret only.
// Register it in main: the last registration wins.
func SecretInformerFactory(name string) injection.InformerFactoryInjector {
	return func(ctx context.Context) context.Context {
		f := informers.NewSharedInformerFactoryWithOptions(kubeclient.Get(ctx), controller.GetResyncPeriod(ctx),
			informers.WithNamespace(v1alpha1.SystemNamespace),
			informers.WithTweakListOptions(func(o *metav1.ListOptions) {
				o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
			}))
		return context.WithValue(ctx, factory.Key{}, f)
	}
}
