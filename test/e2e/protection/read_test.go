//go:build e2e || controlplane

package protection

import (
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/jsonpath"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// These helpers read what kubectl get prints, without its process: most reads are repeated until a condition holds.

// resources are the resources that get and list read, by a name that kubectl has for them.
var resources = map[string]schema.GroupVersionResource{
	"daemonset":  appsv1.SchemeGroupVersion.WithResource("daemonsets"),
	"job":        batchv1.SchemeGroupVersion.WithResource("jobs"),
	"namespace":  corev1.SchemeGroupVersion.WithResource("namespaces"),
	"node":       corev1.SchemeGroupVersion.WithResource("nodes"),
	"pdb":        policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"),
	"pdfc":       v1alpha1.SchemeGroupVersion.WithResource("poddeletionflowcontrols"),
	"pod":        corev1.SchemeGroupVersion.WithResource("pods"),
	"pub":        v1alpha1.SchemeGroupVersion.WithResource("podunavailablebudgets"),
	"replicaset": appsv1.SchemeGroupVersion.WithResource("replicasets"),
	"validatingwebhookconfiguration": admissionregistrationv1.SchemeGroupVersion.
		WithResource("validatingwebhookconfigurations"),
}

func (n *namespace) resource(t *testing.T, name string) dynamic.ResourceInterface {
	t.Helper()
	r, ok := resources[name]
	if !ok {
		t.Fatalf("%s is not among the resources", name)
	}
	switch name {
	case "namespace", "node", "pdfc", "validatingwebhookconfiguration":
		return n.objects.Resource(r)
	}
	return n.objects.Resource(r).Namespace(n.name)
}

// get is `kubectl get` of an object with -o jsonpath.
func (n *namespace) get(t *testing.T, resource, name, path string) string {
	t.Helper()
	object, err := n.resource(t, resource).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("get %s %s: %v", resource, name, err)
	}
	return selected(t, object.Object, path)
}

// getIfExists is get with --ignore-not-found.
func (n *namespace) getIfExists(t *testing.T, resource, name, path string) string {
	t.Helper()
	object, err := n.resource(t, resource).Get(t.Context(), name, metav1.GetOptions{})
	if apierrs.IsNotFound(err) {
		return ""
	}
	if err != nil {
		t.Fatalf("get %s %s: %v", resource, name, err)
	}
	return selected(t, object.Object, path)
}

// list is `kubectl get` of objects with -o jsonpath.
func (n *namespace) list(t *testing.T, resource string, options metav1.ListOptions, path string) string {
	t.Helper()
	objects, err := n.resource(t, resource).List(t.Context(), options)
	if err != nil {
		t.Fatalf("list %s: %v", resource, err)
	}
	return selected(t, objects.UnstructuredContent(), path)
}

// itemNames is the JSONPath of the names of listed objects.
const itemNames = "{.items[*].metadata.name}"

func selected(t *testing.T, content map[string]any, path string) string {
	t.Helper()
	var out strings.Builder
	template := jsonpath.New("test").AllowMissingKeys(true)
	if err := template.Parse(path); err != nil {
		t.Fatal(err)
	}
	if err := template.Execute(&out, content); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// livePods returns the names of the pods that are not terminating.
func livePods(t *testing.T, kube kubernetes.Interface, namespace string, options metav1.ListOptions) (names []string) {
	t.Helper()
	list, err := kube.CoreV1().Pods(namespace).List(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if p := &list.Items[i]; p.DeletionTimestamp == nil {
			names = append(names, p.Name)
		}
	}
	return names
}

// eventMessages returns the messages of the Events with these fields.
func (n *namespace) eventMessages(t *testing.T, namespace, fields string) string {
	t.Helper()
	list, err := n.kube.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: fields})
	if err != nil {
		t.Fatal(err)
	}
	var messages strings.Builder
	for i := range list.Items {
		_, _ = fmt.Fprintln(&messages, list.Items[i].Message)
	}
	return messages.String()
}
