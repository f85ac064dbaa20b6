package v1alpha1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=releasechecks,singular=releasecheck,scope=Namespaced
// +kubebuilder:printcolumn:name="Outcome",type=string,JSONPath=`.status.outcome`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Asked",type=date,JSONPath=`.status.time`
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ReleaseCheck is what the server answered when a version was to be released
// to a workload: so that a version that passed is not asked about again, and
// one request has one answer, whichever webhook gets it. The webhook writes it
// and deletes it when it is old.
//
// Status is no subresource: question and answer are one write, in the path of
// an admission request.
type ReleaseCheck struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ReleaseCheckSpec `json:"spec"`
	// +optional
	Status ReleaseCheckStatus `json:"status,omitempty"`
}

// ReleaseCheckSpec says what was asked about. It is immutable
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
	// Outcome is what the answer counts as. A Pass counts for as long as the
	// object is there, also one that a person has written.
	// +optional
	// +kubebuilder:validation:Enum=Pass;Fail;NoVerdict
	Outcome Outcome `json:"outcome,omitempty"`
	// Reason is one of the Reason constants.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message says it to a person, with the server's rules.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// Attempt is the attempt that was asked about.
	// +optional
	Attempt int64 `json:"attempt,omitempty"`
	// OrderID is bizExecOrderId at the server.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	OrderID string `json:"orderId,omitempty"`
	// NodeID is the server's id of the check.
	// +optional
	NodeID string `json:"nodeId,omitempty"`
	// URL shows the check to a person.
	// +optional
	URL string `json:"url,omitempty"`
	// Time is when the answer came.
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

// ReleaseCheckName is `<kind>-<workload>--x--<version>`; a name that would be
// too long is shortened with a hash of the whole.
func ReleaseCheckName(kind, workload, version string) string {
	return shorten(strings.ToLower(kind)+"-"+workload+separator+version, validation.DNS1123SubdomainMaxLength)
}
