package deletionflow

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// FuzzRead reads requests that delete pods and namespaces. A request is about the pod or
// the namespace of its object, and a dry run of either form is one.
func FuzzRead(f *testing.F) {
	f.Add("pods", "", []byte(`{"metadata":{"name":"web-0","namespace":"ns","uid":"u","labels":{"pod-template-hash":"h"},"ownerReferences":[{"controller":true,"kind":"ReplicaSet","name":"web-h"}]},"status":{"phase":"Failed"}}`), []byte(``), true)
	f.Add("pods", "eviction", []byte(``), []byte(`{"deleteOptions":{"dryRun":["All"]}}`), false)
	f.Add("pods", "eviction", []byte(``), []byte(`null`), false)
	f.Add("namespaces", "", []byte(`{"metadata":{"name":"ns","uid":"n","deletionTimestamp":"2026-01-01T00:00:00Z"}}`), []byte(``), false)
	f.Add("namespaces", "", []byte(`{"metadata":{"name":"ns","uid":"n"}}`), []byte(``), true)
	f.Add("pods", "", []byte(`null`), []byte(`[]`), false)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", UID: "n"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-0", UID: "u"}}
	kube := kubefake.NewSimpleClientset(namespace, pod)
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := index.Add(namespace); err != nil {
		f.Fatal(err)
	}
	r := reader{pods: kube.CoreV1(), objects: metadataOf(f, pod), namespaces: corev1listers.NewNamespaceLister(index)}
	f.Fuzz(func(t *testing.T, resource, subresource string, before, after []byte, dryRun bool) {
		req := &admissionv1.AdmissionRequest{
			Namespace: "ns", Name: "web-0", Resource: metav1.GroupVersionResource{Version: "v1", Resource: resource}, SubResource: subresource,
			Operation: admissionv1.Delete, OldObject: runtime.RawExtension{Raw: before}, Object: runtime.RawExtension{Raw: after}, DryRun: &dryRun,
		}
		got, err := r.read(t.Context(), req)
		if err != nil {
			if got != nil || len(err.Error()) > 2048 {
				t.Errorf("%+v with an error of %d bytes: %.200v", got, len(err.Error()), err)
			}
			return
		}
		switch {
		case got == nil || got.subject == "" || dryRun && !got.DryRun:
			t.Fatalf("%+v", got)
		case got.OfNamespace != (resource == "namespaces") || got.OfNamespace != (got.pod == nil):
			t.Errorf("%+v", got)
		case !got.OfNamespace && (len(got.Pods) != 1 || got.UID != got.pod.UID || got.Eviction != (subresource == "eviction")):
			t.Errorf("%+v", got)
		}
	})
}
