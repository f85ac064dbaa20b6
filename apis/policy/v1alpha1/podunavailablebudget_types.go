package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	duckv1 "knative.dev/pkg/apis/duck/v1"
)

// +genclient
// +genreconciler
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=podunavailablebudgets,singular=podunavailablebudget,scope=Namespaced,shortName=pub,categories=breakwater
// +kubebuilder:metadata:labels="policy.kruise.io/disable-cascading-deletion=true"
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Allowed",type=integer,JSONPath=`.status.unavailableAllowed`
// +kubebuilder:printcolumn:name="Current",type=integer,JSONPath=`.status.currentAvailable`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.desiredAvailable`
// +kubebuilder:printcolumn:name="Total",type=integer,JSONPath=`.status.totalReplicas`
// +kubebuilder:printcolumn:name="Guarding",type=string,JSONPath=`.status.conditions[?(@.type=="Guarding")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PodUnavailableBudget denies deletions, evictions and in-place changes that
// would leave an application with fewer available pods than it needs.
type PodUnavailableBudget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PodUnavailableBudgetSpec `json:"spec"`
	// +optional
	Status PodUnavailableBudgetStatus `json:"status,omitempty"`
}

// PodUnavailableBudgetSpec selects pods and limits how many may be unavailable.
// +kubebuilder:validation:XValidation:rule="has(self.selector) != has(self.targetRef)",message="set exactly one of selector and targetRef: which pods are meant"
// +kubebuilder:validation:XValidation:rule="has(self.maxUnavailable) != has(self.minAvailable)",message="set exactly one of maxUnavailable and minAvailable: a number or a percentage"
// +kubebuilder:validation:XValidation:rule="!has(self.protectTotalReplicas)",fieldPath=".protectTotalReplicas",message="remove the field: the replicas of the pods' owners count; for pods without an owner set minAvailable to a number"
// +kubebuilder:validation:XValidation:rule="!has(self.ignoredPodSelector)",fieldPath=".ignoredPodSelector",message="remove the field: give the pods that need no protection a label, and exclude it in selector.matchExpressions"
type PodUnavailableBudgetSpec struct {
	// Selector selects pods of the budget's namespace. An empty selector selects all.
	// +optional
	Selector *PodSelector `json:"selector,omitempty"`
	// TargetRef is the workload whose pods the budget covers.
	// +optional
	TargetRef *TargetRef `json:"targetRef,omitempty"`
	// MaxUnavailable is how many pods may be unavailable: a number, or a
	// percentage of the replicas, rounded up.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(100|[0-9]{1,2})%$')",message="write a number from 0, or a percentage from 0% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// MinAvailable is how many pods have to be available: a number, or a
	// percentage of the replicas, rounded up.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(100|[0-9]{1,2})%$')",message="write a number from 0, or a percentage from 0% to 100%"
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`
	// ProtectOperations are the operations that the budget decides about. Default: all of
	// them. It always decides about an update that takes a pod out of the budget.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:default={DELETE,EVICT,UPDATE,RESIZE,RESTART}
	ProtectOperations []PodOperation `json:"protectOperations,omitempty"`
	// ProtectNotReady also protects pods that are not available: while unavailableAllowed is 0,
	// they cannot be deleted either. If they do not recover by themselves, it stays 0 until a person
	// raises the limit or unsets this field. By default operations on them cost nothing, so that
	// broken pods can be replaced.
	// +optional
	ProtectNotReady bool `json:"protectNotReady,omitempty"`
	// Shadow enables shadow mode: requests are decided and reported, but never
	// denied.
	// +optional
	Shadow bool `json:"shadow,omitempty"`
	// ProtectTotalReplicas is a field of OpenKruise and always rejected: the replicas of
	// the pods' owners count.
	// +optional
	ProtectTotalReplicas *int32 `json:"protectTotalReplicas,omitempty"`
	// IgnoredPodSelector is a field of OpenKruise and always rejected: it would take pods
	// out of the budget that still count as available.
	// +optional
	// +kubebuilder:validation:XPreserveUnknownFields
	// +kubebuilder:validation:Type=object
	IgnoredPodSelector *runtime.RawExtension `json:"ignoredPodSelector,omitempty"`
}

// PodOperation is an operation that may make a pod unavailable.
// +kubebuilder:validation:Enum=DELETE;EVICT;UPDATE;RESIZE;RESTART
type PodOperation string

// Operations of spec.protectOperations.
const (
	// OperationDelete is a DELETE of the pod.
	OperationDelete PodOperation = "DELETE"
	// OperationEvict is the eviction subresource, which kubectl drain uses.
	OperationEvict PodOperation = "EVICT"
	// OperationUpdate is an in-place change: an image, a sidecar, a label that
	// marks the pod as unavailable.
	OperationUpdate PodOperation = "UPDATE"
	// OperationResize is the resize subresource.
	OperationResize PodOperation = "RESIZE"
	// OperationRestart is a ContainerRecreateRequest of OpenKruise.
	OperationRestart PodOperation = "RESTART"
)

// DeletesPod reports whether the operation deletes the pod.
func (o PodOperation) DeletesPod() bool { return o == OperationDelete || o == OperationEvict }

// PodSelector is a label selector. An expression with the field value instead of values,
// a common mistake, is rejected.
type PodSelector struct {
	// MatchLabels are labels that a pod must have.
	// +optional
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
	// MatchExpressions must be met too.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	MatchExpressions []PodSelectorRequirement `json:"matchExpressions,omitempty"`
}

// PodSelectorRequirement is one expression of a selector.
// +kubebuilder:validation:XValidation:rule="!has(self.value)",fieldPath=".values",message="the field is called values and is a list: write values: [...] instead of value"
// +kubebuilder:validation:XValidation:rule="(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0) || has(self.value)",fieldPath=".values",message="values are needed with the operators In and NotIn, and with no other"
type PodSelectorRequirement struct {
	// Key is the key of the label.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key"`
	// Operator relates the label to the values.
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist
	Operator metav1.LabelSelectorOperator `json:"operator"`
	// Values are the values that In and NotIn compare with.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Values []string `json:"values,omitempty"`
	// Value is a common mistake for values and is always rejected.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Value string `json:"value,omitempty"`
}

// TargetRef names a workload of the budget's namespace.
type TargetRef struct {
	// APIVersion is the group of the workload, with or without a version.
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

// PodUnavailableBudgetStatus is the state that decisions follow from. By
// compare-and-swap, the webhook adds charges to the two maps, refunds its own, and
// lowers UnavailableAllowed. The reconciler removes charges whose outcome is known,
// raises UnavailableAllowed, and writes everything else.
type PodUnavailableBudgetStatus struct {
	duckv1.Status `json:",inline"`

	// DeletedPods are the charges of allowed deletions and evictions, until the watch
	// shows that the pod terminates. The key is the UID of the pod, the value is
	// `<resourceVersion>/<token>`. The token changes when another request uses the charge.
	// +optional
	// +mapType=atomic
	DeletedPods map[types.UID]string `json:"deletedPods,omitempty"`
	// UnavailablePods are charges of allowed in-place changes whose pods are not
	// seen to be unavailable yet, or whose containers are not replaced yet: name to
	// `<resourceVersion>/<uid>/<token>`, followed by `/` and the containers.
	// +optional
	// +mapType=atomic
	UnavailablePods map[string]string `json:"unavailablePods,omitempty"`
	// UnavailableAllowed is how many more available pods may become unavailable now.
	UnavailableAllowed int32 `json:"unavailableAllowed"`
	// CurrentAvailable is how many pods are available and not charged.
	CurrentAvailable int32 `json:"currentAvailable"`
	// DesiredAvailable is how many pods must be available.
	DesiredAvailable int32 `json:"desiredAvailable"`
	// TotalReplicas is how many pods are wanted: for the target and for each topmost owner of
	// covered pods its replicas, or the sum of those of the pods' controllers if that is more.
	// Topmost Deployments and StatefulSets whose pod template a selector matches count also
	// without pods. A pod without an owner, or a static pod, counts as 1. If the replicas of an owner are unknown, or may be
	// groups of pods, its existing pods count if they are more.
	TotalReplicas int32 `json:"totalReplicas"`
	// PodsResourceVersion is the resourceVersion of the pod watch from which the
	// numbers were computed. An older watch must not compute them again.
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
