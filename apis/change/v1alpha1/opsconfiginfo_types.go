package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	duckv1 "knative.dev/pkg/apis/duck/v1"
)

// +genclient
// +genreconciler
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=opsconfiginfoes,singular=opsconfiginfo,scope=Namespaced,categories=breakwater
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`,priority=1
// +kubebuilder:printcolumn:name="Enable",type=boolean,JSONPath=`.spec.enable`,priority=1
// +kubebuilder:printcolumn:name="Content",type=string,JSONPath=`.spec.content`,priority=1
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,priority=1
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OpsConfigInfo is one setting of Breakwater. It is effective only in SystemNamespace. The
// controller and the webhook watch it, so a change takes effect at once.
// docs/configuration.md lists all types with content and default.
type OpsConfigInfo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec OpsConfigInfoSpec `json:"spec"`
	// +optional
	Status OpsConfigInfoStatus `json:"status,omitempty"`
}

// OpsConfigInfoSpec is the type and the value of a setting.
type OpsConfigInfoSpec struct {
	// Type is the type of the setting. Unknown types are denied.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Type ConfigType `json:"type"`
	// Content is the value; its format depends on Type.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Content string `json:"content,omitempty"`
	// Remark is a note for people.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Remark string `json:"remark,omitempty"`
	// Enable enables the feature. For a plain value, true means that the content is
	// used, false that the default is used.
	Enable bool `json:"enable"`
}

// OpsConfigInfoStatus shows whether the object is in effect. Written by the OpsConfigInfo
// reconciler.
type OpsConfigInfoStatus struct {
	duckv1.Status `json:",inline"`
}

// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OpsConfigInfoList is a list of OpsConfigInfo.
type OpsConfigInfoList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []OpsConfigInfo `json:"items"`
}
