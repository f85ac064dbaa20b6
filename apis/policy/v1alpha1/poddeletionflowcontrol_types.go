package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	duckv1 "knative.dev/pkg/apis/duck/v1"
)

// +genclient
// +genclient:nonNamespaced
// +genreconciler
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=poddeletionflowcontrols,singular=poddeletionflowcontrol,scope=Cluster,shortName=pdfc,categories=breakwater
// +kubebuilder:metadata:labels="policy.kruise.io/disable-cascading-deletion=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Open",type=string,JSONPath=`.status.conditions[?(@.type=="Open")].status`
// +kubebuilder:printcolumn:name="Deleted",type=integer,JSONPath=`.status.deleted`
// +kubebuilder:printcolumn:name="Allowed again",type=string,JSONPath=`.status.roomTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodDeletionFlowControl denies deletions of pods beyond a limit per interval.
type PodDeletionFlowControl struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PodDeletionFlowControlSpec `json:"spec"`
	// +optional
	Status PodDeletionFlowControlStatus `json:"status,omitempty"`
}

// PodDeletionFlowControlSpec has the limits and the pods that they apply to.
type PodDeletionFlowControlSpec struct {
	// LimitRules are the limits. A deletion has to be within all of them.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	LimitRules []LimitRule `json:"limitRules"`
	// WhiteListSelector selects pods whose deletion is neither counted nor denied.
	// +optional
	WhiteListSelector *metav1.LabelSelector `json:"whiteListSelector,omitempty"`
	// NamespaceSelector selects the namespaces whose pods are counted. Default:
	// all namespaces.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// CountEvictions makes evictions count as deletions: they use up the limits and are
	// denied when a limit is reached. If it is false, evictions are neither counted nor
	// denied.
	// +optional
	// +kubebuilder:default=true
	CountEvictions *bool `json:"countEvictions,omitempty"`
	// Shadow enables shadow mode: deletions are counted and reported, but never
	// denied.
	// +optional
	Shadow bool `json:"shadow,omitempty"`
}

// LimitRule limits the deletions of one interval.
type LimitRule struct {
	// Interval is the length of the window: a Go duration or days (1d), from 10s to 30d.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+d)?([0-9]+([.][0-9]*)?(h|m|s|ms))*$')",message="write an interval from 10s to 30d, for example 1m, 1h or 1d"
	// +kubebuilder:validation:MinLength=2
	Interval string `json:"interval"`
	// Limit is the maximum number of deletions in any window of that length.
	// +kubebuilder:validation:Minimum=0
	Limit int64 `json:"limit"`
}

// PodDeletionFlowControlStatus is the state that decisions follow from. The
// webhook adds to Buckets by compare-and-swap; the reconciler derives the rest.
type PodDeletionFlowControlStatus struct {
	duckv1.Status `json:",inline"`

	// Buckets are the cells, which count the deletions that were allowed, oldest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Buckets []DeletionCell `json:"buckets,omitempty"`
	// Newest are the UIDs of pods and namespaces in the newest cell, those of
	// namespaces with a slash and the number of pods. A repeated admission of one of
	// them counts once, if a namespace has not grown.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Newest []types.UID `json:"newest,omitempty"`
	// Earlier are the last UIDs of the cell before the newest, so that a repeated
	// admission of a pod counts once across the end of a cell.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Earlier []types.UID `json:"earlier,omitempty"`
	// CommittedTime is the time of the last committed decision.
	// +optional
	CommittedTime *metav1.MicroTime `json:"committedTime,omitempty"`
	// Shares counts the recent deletions by user, owner and namespace.
	// +optional
	Shares *DeletionShares `json:"shares,omitempty"`
	// Deleted is the number of deletions in the longest window.
	// +optional
	Deleted int64 `json:"deleted,omitempty"`
	// RoomTime is when a deletion is within all limits again.
	// +optional
	RoomTime *metav1.Time `json:"roomTime,omitempty"`
}

// DeletionCell counts the deletions of an interval of time.
type DeletionCell struct {
	// Start is the second of the first deletion, in Unix seconds.
	Start int64 `json:"start"`
	// End is the second after the last deletion, in Unix seconds.
	End int64 `json:"end"`
	// Count is the number of deletions that were allowed.
	Count int64 `json:"count"`
}

// DeletionShares counts the recent deletions by user, owner and namespace. A person
// reads from it whether the deletions are an accident or intended. Once per interval of the
// shortest limit, all counts are halved, so that old deletions count less.
type DeletionShares struct {
	// Since is when the counts were last halved.
	Since metav1.Time `json:"since"`
	// Total is the number of deletions.
	Total int64 `json:"total"`
	// Evictions is the number of deletions that were evictions.
	// +optional
	Evictions int64 `json:"evictions,omitempty"`
	// Users are the users that requested the deletions, most frequent first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Users []DeletionShare `json:"users,omitempty"`
	// Owners are the topmost known controllers of the pods, as Kind
	// namespace/name, most frequent first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Owners []DeletionShare `json:"owners,omitempty"`
	// Namespaces are the namespaces of the pods, most frequent first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Namespaces []DeletionShare `json:"namespaces,omitempty"`
}

// DeletionShare counts the deletions of one user, owner or namespace. With more
// names than are kept, a count may be too high but never too low.
type DeletionShare struct {
	// +kubebuilder:validation:MaxLength=512
	Name  string `json:"name"`
	Count int64  `json:"count"`
}

// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodDeletionFlowControlList is a list of PodDeletionFlowControl.
type PodDeletionFlowControlList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []PodDeletionFlowControl `json:"items"`
}
