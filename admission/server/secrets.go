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

// SecretInformerFactory takes the place of the informer factory that knative's webhook
// reads Secrets with. That one lists all of the namespace, and so would need
// the right to read the token of the AlterShield server too; this one sees
// the named Secret only. It must be registered after the packages' own, which
// main does by registering it at all.
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
