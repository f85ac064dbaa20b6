package server

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/internal/servingcert"
	"github.com/breakwater-dev/breakwater/permission/notifier"
	"github.com/breakwater-dev/breakwater/permission/podbreaker"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/permission/settings"
)

// ServiceName is the name of the server's Service.
const ServiceName = "init-action-server"

// Watch has the informers of the server.
type Watch struct {
	// Pods lists the pods with the label, trimmed.
	Pods corelisters.PodLister
	// ConfigMaps lists the ConfigMaps of the breaker.
	ConfigMaps corelisters.ConfigMapLister
	// Notifier receives changes of pods and ConfigMaps.
	Notifier *notifier.Notifier
	Settings *settings.Store
	// Trust has the certificates that the client of the centre trusts.
	Trust     *servingcert.Bundle
	factories []informers.SharedInformerFactory
	// handled report whether the handlers received the first lists.
	handled []cache.InformerSynced
}

// NewWatch returns a Watch of the cluster. namespace is the system namespace;
// replicas is called with the number of ready servers when it changes.
func NewWatch(ctx context.Context, kube kubernetes.Interface, namespace string, replicas func(int)) (*Watch, error) {
	selectedBy := func(selector string) informers.SharedInformerOption {
		return informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = selector })
	}
	store := settings.NewStore()
	pods := informers.NewSharedInformerFactoryWithOptions(kube, 0, selectedBy(podmeta.Label+"="+podmeta.LabelRequired), informers.WithTransform(trimPod(store)))
	records := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithNamespace(namespace), selectedBy(podbreaker.Label+"=true"))
	named := func(name string) informers.SharedInformerFactory {
		return informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithNamespace(namespace),
			informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = "metadata.name=" + name }))
	}
	config, bundle := named(podmeta.ConfigName), named(podmeta.BundleName)
	slices := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithNamespace(namespace), selectedBy(discoveryv1.LabelServiceName+"="+ServiceName))
	w := &Watch{
		Pods: pods.Core().V1().Pods().Lister(), ConfigMaps: records.Core().V1().ConfigMaps().Lister(), Notifier: notifier.New(), Settings: store,
		Trust: &servingcert.Bundle{Missing: podmeta.ErrNoBundle}, factories: []informers.SharedInformerFactory{pods, records, config, bundle, slices},
	}
	updateReplicas := func(any) {
		all, err := slices.Discovery().V1().EndpointSlices().Lister().List(labels.Everything())
		if err == nil {
			replicas(countReady(all))
		}
	}
	return w, w.addHandlers(map[cache.SharedIndexInformer]func(any){
		pods.Core().V1().Pods().Informer(): func(obj any) {
			if p, ok := obj.(*corev1.Pod); ok {
				w.Notifier.Notify(string(p.UID))
			}
		},
		records.Core().V1().ConfigMaps().Informer(): func(any) { w.Notifier.NotifyAll() },
		config.Core().V1().ConfigMaps().Informer(): func(obj any) {
			cm, _ := obj.(*corev1.ConfigMap) // nil after its deletion
			w.Settings.Update(ctx, cm)
			w.Notifier.NotifyAll()
		},
		bundle.Core().V1().ConfigMaps().Informer(): func(obj any) {
			if cm, ok := obj.(*corev1.ConfigMap); ok {
				w.Trust.Update(cm.Data)
			}
		},
		slices.Discovery().V1().EndpointSlices().Informer(): updateReplicas,
	})
}

func (w *Watch) addHandlers(all map[cache.SharedIndexInformer]func(any)) error {
	for informer, handler := range all {
		registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: handler, UpdateFunc: func(_, obj any) { handler(obj) },
			DeleteFunc: func(obj any) {
				if p, ok := obj.(*corev1.Pod); ok {
					handler(p) // calls of the deleted pod read it from the API server and end
					return
				}
				handler(nil)
			},
		})
		if err != nil {
			return fmt.Errorf("add an event handler: %w", err)
		}
		w.handled = append(w.handled, registration.HasSynced)
	}
	return nil
}

// Start starts the informers and returns when their caches are synced and their handlers have
// received them: Settings are those of the ConfigMap then.
func (w *Watch) Start(ctx context.Context) error {
	for _, f := range w.factories {
		f.Start(ctx.Done())
	}
	if !cache.WaitForCacheSync(ctx.Done(), w.handled...) {
		return fmt.Errorf("sync the caches: %w", context.Cause(ctx))
	}
	return nil
}

// countReady returns the number of ready replicas, at least 1. Each has an endpoint per address family of the Service.
func countReady(all []*discoveryv1.EndpointSlice) int {
	most, ready := 1, map[discoveryv1.AddressType]int{}
	for _, s := range all {
		for _, e := range s.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				ready[s.AddressType]++
			}
		}
		most = max(most, ready[s.AddressType])
	}
	return most
}

// trimPod returns a transform that keeps only the fields of a pod that the server uses. It
// runs before the pod is cached.
func trimPod(store *settings.Store) cache.TransformFunc {
	return func(obj any) (any, error) {
		p, ok := obj.(*corev1.Pod)
		if !ok {
			return obj, nil
		}
		trimmed := &corev1.Pod{TypeMeta: p.TypeMeta, ObjectMeta: metav1.ObjectMeta{
			Name: p.Name, Namespace: p.Namespace, UID: p.UID, ResourceVersion: p.ResourceVersion, DeletionTimestamp: p.DeletionTimestamp,
			CreationTimestamp: p.CreationTimestamp, Finalizers: p.Finalizers, Labels: map[string]string{podmeta.Label: p.Labels[podmeta.Label]},
		}}
		// After a change of the setting, cached pods have no annotation until their next update, and wait for their
		// status. Pods that are older than the policy would wait, too.
		key := store.Get().AnnouncedAddress.Annotation
		if value := p.Annotations[key]; key != "" && len(podmeta.IPs(p)) == 0 && len(podmeta.ParseAnnounced(value)) > 0 {
			trimmed.Annotations = map[string]string{key: value}
		}
		if c := podmeta.InitContainer(p); c != nil {
			trimmed.Spec.InitContainers = []corev1.Container{{Name: c.Name, Env: c.Env}}
		}
		trimmed.Spec.NodeName, trimmed.Spec.HostNetwork, trimmed.Spec.ServiceAccountName = p.Spec.NodeName, p.Spec.HostNetwork, p.Spec.ServiceAccountName
		trimmed.Status.Phase, trimmed.Status.HostIP, trimmed.Status.PodIP, trimmed.Status.PodIPs = p.Status.Phase, p.Status.HostIP, p.Status.PodIP, p.Status.PodIPs
		if c := podmeta.Condition(p, podmeta.ConditionAuthorized); c != nil {
			trimmed.Status.Conditions = []corev1.PodCondition{*c}
		}
		return trimmed, nil
	}
}
