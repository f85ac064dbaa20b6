package v1alpha1

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestANamespaceWithTheLabelIsOptedIn(t *testing.T) {
	tests := map[string]struct {
		namespace string
		labels    map[string]string
		want      bool
	}{
		"a namespace without the label is not opted in": {namespace: "default"},
		"a namespace with the label is opted in":        {"default", map[string]string{NamespaceLabel: "enabled"}, true},
		"another value of the label does not opt in":    {"default", map[string]string{NamespaceLabel: "true"}, false},
		"kube-system cannot opt in":                     {"kube-system", map[string]string{NamespaceLabel: "enabled"}, false},
		"the namespaces of Knative cannot opt in":       {"knative-serving", map[string]string{NamespaceLabel: "enabled"}, false},
		"the namespace of Breakwater cannot opt in":     {SystemNamespace, map[string]string{NamespaceLabel: "enabled"}, false},
		"a namespace with such a prefix can opt in":     {"kube-system-2", map[string]string{NamespaceLabel: "enabled"}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tc.namespace, Labels: tc.labels}}
			if got := OptedIn(ns); got != tc.want {
				t.Errorf("OptedIn = %v, want %v", got, tc.want)
			}
		})
	}
}
