// Package v1beta1 is the second version in which the API server serves
// PodUnavailableBudgets, because OpenKruise serves this version too. Both versions have
// one schema, so the API server converts between them by their apiVersion alone.
// Breakwater reads v1alpha1.
//
// +groupName=policy.kruise.io
// +versionName=v1beta1
package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=podunavailablebudgets,singular=podunavailablebudget,scope=Namespaced,shortName=pub,categories=breakwater
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Allowed",type=integer,JSONPath=`.status.unavailableAllowed`
// +kubebuilder:printcolumn:name="Current",type=integer,JSONPath=`.status.currentAvailable`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.desiredAvailable`
// +kubebuilder:printcolumn:name="Total",type=integer,JSONPath=`.status.totalReplicas`
// +kubebuilder:printcolumn:name="Guarding",type=string,JSONPath=`.status.conditions[?(@.type=="Guarding")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// PodUnavailableBudget denies deletions, evictions and in-place changes that
// would leave an application with fewer available pods than it needs.
type PodUnavailableBudget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec v1alpha1.PodUnavailableBudgetSpec `json:"spec"`
	// +optional
	Status v1alpha1.PodUnavailableBudgetStatus `json:"status,omitempty"`
}
