package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	duckv1 "knative.dev/pkg/apis/duck/v1"
)

// +genclient
// +genreconciler
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=podunavailablebudgets,singular=podunavailablebudget,scope=Namespaced,shortName=pub
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Allowed",type=integer,JSONPath=`.status.unavailableAllowed`
// +kubebuilder:printcolumn:name="Current",type=integer,JSONPath=`.status.currentAvailable`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.desiredAvailable`
// +kubebuilder:printcolumn:name="Total",type=integer,JSONPath=`.status.totalReplicas`
// +kubebuilder:printcolumn:name="Guarding",type=string,JSONPath=`.status.conditions[?(@.type=="Guarding")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodUnavailableBudget refuses what would leave an application with fewer
// available pods than it needs, whoever asks: deletions, evictions and changes
// in place.
type PodUnavailableBudget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PodUnavailableBudgetSpec `json:"spec"`
	// +optional
	Status PodUnavailableBudgetStatus `json:"status,omitempty"`
}

// PodUnavailableBudgetSpec says which pods, and how many of them.
// +kubebuilder:validation:XValidation:rule="has(self.selector) != has(self.targetRef)",message="set exactly one of selector and targetRef: which pods are meant"
// +kubebuilder:validation:XValidation:rule="has(self.maxUnavailable) != has(self.minAvailable)",message="set exactly one of maxUnavailable and minAvailable: a number or a per cent"
type PodUnavailableBudgetSpec struct {
	// Selector selects pods of the budget's namespace. An empty one selects all.
	// +optional
	Selector *PodSelector `json:"selector,omitempty"`
	// TargetRef is the workload whose pods are meant.
	// +optional
	TargetRef *TargetRef `json:"targetRef,omitempty"`
	// MaxUnavailable is how many pods may be unavailable: a number, or a per
	// cent of the replicas, rounded up.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(100|[0-9]{1,2})%$')",message="write a number from 0, or a per cent from 0% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// MinAvailable is how many pods have to be available: a number, or a per
	// cent of the replicas, rounded up.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(100|[0-9]{1,2})%$')",message="write a number from 0, or a per cent from 0% to 100%"
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`
	// ProtectOperations are what is judged. Default: all of them.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:default={DELETE,EVICT,UPDATE,RESIZE,RESTART}
	ProtectOperations []PodOperation `json:"protectOperations,omitempty"`
	// ProtectNotReady judges operations on a pod that is not available too. By
	// default they cost nothing, so that what is broken can be replaced.
	// +optional
	ProtectNotReady bool `json:"protectNotReady,omitempty"`
	// Shadow decides, counts and tells, but refuses nothing.
	// +optional
	Shadow bool `json:"shadow,omitempty"`
}

// PodOperation is what may make a pod unavailable.
// +kubebuilder:validation:Enum=DELETE;EVICT;UPDATE;RESIZE;RESTART
type PodOperation string

// The operations.
const (
	// OperationDelete is a DELETE of the pod.
	OperationDelete PodOperation = "DELETE"
	// OperationEvict is the eviction subresource, as kubectl drain uses it.
	OperationEvict PodOperation = "EVICT"
	// OperationUpdate is a change in place: an image, a sidecar, a label that
	// says that the pod is made unavailable.
	OperationUpdate PodOperation = "UPDATE"
	// OperationResize is the resize subresource.
	OperationResize PodOperation = "RESIZE"
	// OperationRestart is a ContainerRecreateRequest of OpenKruise.
	OperationRestart PodOperation = "RESTART"
)

// PodSelector is a label selector that knows a common mistake.
type PodSelector struct {
	// MatchLabels are labels that a pod has to have.
	// +optional
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
	// MatchExpressions have to be met too.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	MatchExpressions []PodSelectorRequirement `json:"matchExpressions,omitempty"`
}

// PodSelectorRequirement is one expression of a selector.
// +kubebuilder:validation:XValidation:rule="!has(self.value)",fieldPath=".values",message="the field is called values and is a list: write values: [...] instead of value"
// +kubebuilder:validation:XValidation:rule="(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0) || has(self.value)",fieldPath=".values",message="values are needed with the operators In and NotIn, and with no other"
type PodSelectorRequirement struct {
	// Key is that of the label.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key"`
	// Operator relates the label to the values.
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist
	Operator metav1.LabelSelectorOperator `json:"operator"`
	// Values are what In and NotIn compare with.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Values []string `json:"values,omitempty"`
	// Value is a mistake for values, and is always refused.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Value string `json:"value,omitempty"`
}

// TargetRef names a workload of the budget's namespace.
type TargetRef struct {
	// APIVersion is the workload's group, with or without a version.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	APIVersion string `json:"apiVersion"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// PodUnavailableBudgetStatus is what a decision follows from. The webhook adds
// to the two maps and lowers UnavailableAllowed with every entry, by
// compare-and-swap; all else the budget reconciler derives.
type PodUnavailableBudgetStatus struct {
	duckv1.Status `json:",inline"`

	// DeletedPods are pods whose deletion or eviction was let through and that
	// are not yet seen to terminate: UID to resourceVersion.
	// +optional
	// +mapType=atomic
	DeletedPods map[types.UID]string `json:"deletedPods,omitempty"`
	// UnavailablePods are pods whose change in place was let through and that
	// are not yet seen to be unavailable: name to resourceVersion and, after a
	// slash, UID; of a resize the generation before it, too.
	// +optional
	// +mapType=atomic
	UnavailablePods map[string]string `json:"unavailablePods,omitempty"`
	// UnavailableAllowed is how many more available pods may become unavailable now.
	UnavailableAllowed int32 `json:"unavailableAllowed"`
	// CurrentAvailable is how many pods are available, without those in the maps.
	CurrentAvailable int32 `json:"currentAvailable"`
	// DesiredAvailable is how many have to be.
	DesiredAvailable int32 `json:"desiredAvailable"`
	// TotalReplicas is how many pods the owners want.
	TotalReplicas int32 `json:"totalReplicas"`
	// PodsResourceVersion is how far the watch of pods was when the numbers were
	// computed: who sees less must not compute them anew.
	// +optional
	PodsResourceVersion string `json:"podsResourceVersion,omitempty"`
}

// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodUnavailableBudgetList is a list of PodUnavailableBudget.
type PodUnavailableBudgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []PodUnavailableBudget `json:"items"`
}
