package v1alpha1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=releasechecks,singular=releasecheck,scope=Namespaced,shortName=rck,categories=breakwater
// +kubebuilder:printcolumn:name="Outcome",type=string,JSONPath=`.status.outcome`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Asked",type=date,JSONPath=`.status.time`
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ReleaseCheck stores the server's answer about a version of a workload, so that the
// server is not asked again about a version that passed, and all replicas of the
// webhook give one answer to one request. The webhook writes it, and deletes it when it
// has expired.
//
// Status is no subresource, so that one write during an admission request stores all.
type ReleaseCheck struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ReleaseCheckSpec `json:"spec"`
	// +optional
	Status ReleaseCheckStatus `json:"status,omitempty"`
}

// ReleaseCheckSpec identifies the release. It is immutable
// (config/core/442-immutable-specs.yaml).
type ReleaseCheckSpec struct {
	// Kind is the workload's kind.
	Kind string `json:"kind"`
	// Name is the workload's name.
	Name string `json:"name"`
	// Version is the value of VersionKey.
	Version string `json:"version"`
}

// ReleaseCheckStatus is the last answer.
type ReleaseCheckStatus struct {
	// Outcome is the outcome of the answer. A Pass is valid as long as the object
	// exists, also if a person wrote it.
	// +optional
	// +kubebuilder:validation:Enum=Pass;Fail;NoVerdict
	Outcome Outcome `json:"outcome,omitempty"`
	// Reason is one of the Reason constants.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message explains the outcome, with the names of the server's rules.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// Attempt is the attempt of the release.
	// +optional
	Attempt int64 `json:"attempt,omitempty"`
	// OrderID is bizExecOrderId at the server.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	OrderID string `json:"orderId,omitempty"`
	// NodeID is the server's id of the check.
	// +optional
	NodeID string `json:"nodeId,omitempty"`
	// URL is the page of the check at the server.
	// +optional
	URL string `json:"url,omitempty"`
	// Time is the time of the answer.
	// +optional
	Time metav1.MicroTime `json:"time,omitempty"`
}

// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ReleaseCheckList is a list of ReleaseCheck.
type ReleaseCheckList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []ReleaseCheck `json:"items"`
}

// ReleaseCheckName returns `<kind>-<workload>--x--<version>`. A name that is too long is
// shortened with a hash of the whole name.
func ReleaseCheckName(kind, workload, version string) string {
	return shorten(strings.ToLower(kind)+"-"+workload+separator+version, validation.DNS1123SubdomainMaxLength)
}
