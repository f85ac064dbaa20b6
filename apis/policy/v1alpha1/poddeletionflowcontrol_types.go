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
// +kubebuilder:resource:path=poddeletionflowcontrols,singular=poddeletionflowcontrol,scope=Cluster,shortName=pdfc
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Open",type=string,JSONPath=`.status.conditions[?(@.type=="Open")].status`
// +kubebuilder:printcolumn:name="Deleted",type=integer,JSONPath=`.status.deleted`
// +kubebuilder:printcolumn:name="Room",type=string,JSONPath=`.status.roomTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodDeletionFlowControl refuses deletions of pods when too many were let
// through in too short a time.
type PodDeletionFlowControl struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PodDeletionFlowControlSpec `json:"spec"`
	// +optional
	Status PodDeletionFlowControlStatus `json:"status,omitempty"`
}

// PodDeletionFlowControlSpec says how many deletions in which time, and whose.
type PodDeletionFlowControlSpec struct {
	// LimitRules all have to hold.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	LimitRules []LimitRule `json:"limitRules"`
	// WhiteListSelector selects pods whose deletion is neither counted nor refused.
	// +optional
	WhiteListSelector *metav1.LabelSelector `json:"whiteListSelector,omitempty"`
	// NamespaceSelector narrows the scope to the namespaces that it selects.
	// Default: the cluster.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// CountEvictions counts and refuses evictions too.
	// +optional
	// +kubebuilder:default=true
	CountEvictions *bool `json:"countEvictions,omitempty"`
	// Shadow decides, counts and tells, but refuses nothing.
	// +optional
	Shadow bool `json:"shadow,omitempty"`
}

// LimitRule is one window.
type LimitRule struct {
	// Interval is the length of the window: a Go duration, or days (1d). From 10s to 30d.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+d)?([0-9]+(\.[0-9]*)?(h|m|s|ms))*$`
	// +kubebuilder:validation:MinLength=2
	Interval string `json:"interval"`
	// Limit is how many deletions no window of that length exceeds.
	// +kubebuilder:validation:Minimum=0
	Limit int64 `json:"limit"`
}

// PodDeletionFlowControlStatus is the history that decides. The webhook adds to
// Buckets by compare-and-swap; all else its reconciler derives.
type PodDeletionFlowControlStatus struct {
	duckv1.Status `json:",inline"`

	// Buckets are how many deletions were let through, by time, oldest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Buckets []DeletionBucket `json:"buckets,omitempty"`
	// Newest are the pods and namespaces of the newest bucket: an admission that
	// is repeated counts once.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Newest []types.UID `json:"newest,omitempty"`
	// Earlier are the last of the bucket before the newest: an admission of a pod
	// that is repeated when its bucket has ended counts once, too.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Earlier []types.UID `json:"earlier,omitempty"`
	// CommittedTime is the time of the last decision that was committed.
	// +optional
	CommittedTime *metav1.MicroTime `json:"committedTime,omitempty"`
	// Shares say whose deletions were let through lately.
	// +optional
	Shares *DeletionShares `json:"shares,omitempty"`
	// Deleted is how many deletions the longest window holds.
	// +optional
	Deleted int64 `json:"deleted,omitempty"`
	// RoomTime is when the window that is full has room again.
	// +optional
	RoomTime *metav1.Time `json:"roomTime,omitempty"`
}

// DeletionBucket counts the deletions of a part of a window.
type DeletionBucket struct {
	// Start is the second of the first of them, in unix seconds.
	Start int64 `json:"start"`
	// End is the second after that of the last.
	End int64 `json:"end"`
	// Count is how many deletions were let through in it.
	Count int64 `json:"count"`
}

// DeletionShares tell accident from intent. What is older than the shortest
// interval weighs half, and half again after the next one.
type DeletionShares struct {
	// Since is when they were halved last.
	Since metav1.Time `json:"since"`
	// Total is how many deletions they are of.
	Total int64 `json:"total"`
	// Evictions is how many of them were evictions.
	// +optional
	Evictions int64 `json:"evictions,omitempty"`
	// Users are whom the API server knew as the authors; most first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Users []DeletionShare `json:"users,omitempty"`
	// Owners are the topmost known controllers of the pods, as Kind
	// namespace/name; most first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Owners []DeletionShare `json:"owners,omitempty"`
	// Namespaces are those of the pods; most first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Namespaces []DeletionShare `json:"namespaces,omitempty"`
}

// DeletionShare is how many deletions one of them had; rather too many than
// too few, where there are more names than are kept.
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
