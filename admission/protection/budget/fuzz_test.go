package budget

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/podlist"
)

// FuzzRead reads requests of all kinds. A deletion of a pod is always an action on that
// pod, an action has an operation and a subject, and an error names what is read.
func FuzzRead(f *testing.F) {
	pod := `{"metadata":{"name":"web-0","namespace":"ns","uid":"u"},"spec":{"containers":[{"name":"a","image":"a:1","resources":{"requests":{"cpu":"1"}}}]},"status":{"phase":"Running"}}`
	f.Add("pods", "", uint8(0), []byte(pod), []byte(``), []byte(`{"propagationPolicy":"Orphan"}`))
	f.Add("pods", "", uint8(1), []byte(pod), []byte(strings.Replace(pod, "a:1", "a:2", 1)), []byte(``))
	f.Add("pods", "resize", uint8(1), []byte(pod), []byte(strings.Replace(pod, `"cpu":"1"`, `"cpu":"1e99999"`, 1)), []byte(``))
	f.Add("pods", "eviction", uint8(2), []byte(``), []byte(`{"deleteOptions":{"dryRun":["All"]}}`), []byte(``))
	f.Add("containerrecreaterequests", "", uint8(2), []byte(``), []byte(`{"spec":{"podName":"web-0"}}`), []byte(``))
	f.Add("replicasets", "", uint8(0), []byte(`{"metadata":{"name":"web","ownerReferences":[{"controller":true,"name":"web"}]},"spec":{"selector":{"matchExpressions":[{"key":"a","operator":"?"}]}}}`), []byte(``), []byte(`{"orphanDependents":true}`))
	f.Add("replicasets", "status", uint8(1), []byte(`{"metadata":{"name":"web","ownerReferences":[{"controller":true,"name":"web"}]},"spec":{"selector":{"matchLabels":{"a":"b"}}}}`), []byte(`{}`), []byte(``))
	f.Add("pods", "", uint8(1), []byte(`null`), []byte(`null`), []byte(`[]`))
	operations := []admissionv1.Operation{admissionv1.Delete, admissionv1.Update, admissionv1.Create}
	kube := kubefake.NewSimpleClientset(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-0", UID: "u"}})
	r := reader{pods: kube.CoreV1(), lists: podlist.ForDeletions(kube.CoreV1()), owners: chains{}}
	f.Fuzz(func(t *testing.T, resource, subresource string, operation uint8, before, after, options []byte) {
		req := &admissionv1.AdmissionRequest{
			Namespace: "ns", Name: "web-0", Resource: metav1.GroupVersionResource{Version: "v1", Resource: resource}, SubResource: subresource,
			Operation: operations[int(operation)%len(operations)],
			OldObject: runtime.RawExtension{Raw: before}, Object: runtime.RawExtension{Raw: after}, Options: runtime.RawExtension{Raw: options},
		}
		action, err := r.read(t.Context(), req)
		if err != nil {
			if action != nil || len(err.Error()) > 2048 {
				t.Errorf("%+v with an error of %d bytes: %.200v", action, len(err.Error()), err)
			}
			return
		}
		deletion := resource == "pods" && (subresource == "eviction" || req.Operation == admissionv1.Delete)
		switch {
		case action == nil && deletion:
			t.Errorf("a deletion of a pod is no action: %s", before)
		case action == nil:
			return
		case action.Operation == "" || action.Subject == "":
			t.Errorf("%+v", action)
		case deletion && (len(action.Pods) != 1 || action.Operation != v1alpha1.OperationDelete && action.Operation != v1alpha1.OperationEvict):
			t.Errorf("%+v", action)
		}
		for _, p := range action.Pods {
			if p == nil {
				t.Errorf("%+v", action)
			}
		}
	})
}
