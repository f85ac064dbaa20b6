package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	duckv1 "knative.dev/pkg/apis/duck/v1"
)

// +genclient
// +genreconciler
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=opsconfiginfoes,singular=opsconfiginfo,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`,priority=1
// +kubebuilder:printcolumn:name="Enable",type=boolean,JSONPath=`.spec.enable`,priority=1
// +kubebuilder:printcolumn:name="Content",type=string,JSONPath=`.spec.content`,priority=1
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OpsConfigInfo is one switch or value of Breakwater. It counts only in
// SystemNamespace; a change takes effect in every running binary within 2 s.
// docs/configuration.md lists every type with its content and default.
type OpsConfigInfo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec OpsConfigInfoSpec `json:"spec"`
	// +optional
	Status OpsConfigInfoStatus `json:"status,omitempty"`
}

// OpsConfigInfoSpec says which value is meant and what it is.
type OpsConfigInfoSpec struct {
	// Type names the value. An unknown type is refused.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Type ConfigType `json:"type"`
	// Content is the value; how it reads depends on Type.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Content string `json:"content,omitempty"`
	// Remark is a note for people.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Remark string `json:"remark,omitempty"`
	// Enable switches the feature on; for a plain value it says whether the
	// content counts (true) or the default does (false).
	Enable bool `json:"enable"`
}

// OpsConfigInfoStatus says whether the object counts. Written by the
// OpsConfigInfo reconciler.
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
