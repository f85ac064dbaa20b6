package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	duckv1 "knative.dev/pkg/apis/duck/v1"
)

// +genclient
// +genreconciler
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=changeworkloads,singular=changeworkload,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.status`
// +kubebuilder:printcolumn:name="CreateTime",type=string,JSONPath=`.spec.createTime`
// +kubebuilder:printcolumn:name="Pods",type=integer,JSONPath=`.status.counts.pods`,priority=1
// +kubebuilder:printcolumn:name="Passed",type=integer,JSONPath=`.status.counts.passed`,priority=1
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.counts.failed`,priority=1
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ChangeWorkload is one version and attempt of a workload. The reconciler of
// the workload's kind creates and deletes it; the workload owns it.
type ChangeWorkload struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ChangeWorkloadSpec `json:"spec"`
	// +optional
	Status ChangeWorkloadStatus `json:"status,omitempty"`
}

// ChangeWorkloadSpec says which release is meant. WorkloadRef, Reversion and
// Attempt are immutable (config/core/442-immutable-specs.yaml).
type ChangeWorkloadSpec struct {
	// ChangeWorkloadID is the object's own name.
	ChangeWorkloadID string `json:"changeWorkloadId"`
	// ServiceName is the workload's name.
	ServiceName string `json:"serviceName"`
	// Reversion (sic) is the version: the value of VersionKey.
	Reversion string `json:"reversion"`
	// Policies is kept from the original; Breakwater gives it no meaning.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	Policies []string `json:"policies,omitempty"`
	// CountThreshold is how many finished pods make a batch, at least 1. It is
	// the size when the release began; a scale during it is followed.
	// +kubebuilder:validation:Minimum=1
	CountThreshold int32 `json:"countThreshold"`
	// WaitTimeThreshold is how many seconds a batch that is not full is waited
	// for, counted from its first finished pod.
	// +kubebuilder:validation:Minimum=1
	WaitTimeThreshold int32 `json:"waitTimeThreshold"`
	// CreateTime is `2006-01-02 15:04:05` in UTC.
	CreateTime string `json:"createTime"`
	// CreateTimeUnix is CreateTime in seconds.
	CreateTimeUnix int64 `json:"createTimeUnix"`
	// AppName is the workload's app label (app.kubernetes.io/name or app), or its name.
	AppName string `json:"appName"`

	// WorkloadRef is the workload.
	WorkloadRef WorkloadRef `json:"workloadRef"`
	// Attempt is the value of AttemptAnnotation; 0 is the baseline.
	// +kubebuilder:validation:Minimum=0
	Attempt int64 `json:"attempt"`
	// OrderID is bizExecOrderId at the server; at most 128 bytes. OrderLabel
	// holds its hash.
	// +kubebuilder:validation:MaxLength=128
	OrderID string `json:"orderId"`
}

// WorkloadRef names a workload of the ChangeWorkload's namespace.
type WorkloadRef struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Name       string    `json:"name"`
	UID        types.UID `json:"uid"`
}

// WorkloadPhase is status.status of a ChangeWorkload.
type WorkloadPhase string

// The states of a ChangeWorkload. Init is written as the empty string.
const (
	WorkloadInit       WorkloadPhase = ""
	WorkloadRunning    WorkloadPhase = "Running"
	WorkloadTimeOutPre WorkloadPhase = "TimeOutPreThreshold"
	WorkloadSuccess    WorkloadPhase = "Success"
	WorkloadSuspend    WorkloadPhase = "Suspend"
	WorkloadFailed     WorkloadPhase = "Failed"
)

// ChangeWorkloadStatus is what is known of a release. Unless a field names
// another writer, the ChangeWorkload reconciler derives it.
type ChangeWorkloadStatus struct {
	duckv1.Status `json:",inline"`

	// DefensePreparingPods are pods that are not before the judge yet; at most 25, counts has all.
	// +optional
	// +listType=atomic
	DefensePreparingPods []PodSummary `json:"defensePreparingPods,omitempty"`
	// DefenseCheckingPods are pods before the judge; at most 25, counts has all.
	// +optional
	// +listType=atomic
	DefenseCheckingPods []PodSummary `json:"defenseCheckingPods,omitempty"`
	// DefenseCheckPassPods are pods that passed; at most 25, counts has all.
	// +optional
	// +listType=atomic
	DefenseCheckPassPods []PodSummary `json:"defenseCheckPassPods,omitempty"`
	// DefenseCheckFailPods are all pods that failed, complete, with the reason.
	// +optional
	// +listType=atomic
	DefenseCheckFailPods []PodSummary `json:"defenseCheckFailPods,omitempty"`
	// Counts are complete where the lists are cut.
	// +optional
	Counts PodCounts `json:"counts,omitempty"`

	// Phase is the state, `status.status` in JSON; empty is Init.
	// +optional
	// +kubebuilder:validation:Enum="";Running;TimeOutPreThreshold;Success;Suspend;Failed
	Phase WorkloadPhase `json:"status,omitempty"`
	// EntryTime is when Phase was entered, `2006-01-02 15:04:05` in UTC.
	// +optional
	EntryTime string `json:"entryTime,omitempty"`
	// EntryTimeUnix is EntryTime in seconds.
	// +optional
	EntryTimeUnix int64 `json:"entryTimeUnix,omitempty"`
	// UpdateTime is the last write, `2006-01-02 15:04:05` in UTC.
	// +optional
	UpdateTime string `json:"updateTime,omitempty"`
	// UpdateTimeUnix is UpdateTime in seconds.
	// +optional
	UpdateTimeUnix int64 `json:"updateTimeUnix,omitempty"`

	// OrderStep is what the order at the server waits for; absent when for
	// nothing. Function submit acts on it.
	// +optional
	OrderStep *OrderStep `json:"orderStep,omitempty"`
	// Order is the order at the server. Written by function submit.
	// +optional
	Order *Order `json:"order,omitempty"`
	// OrderVerdicts are the server's verdicts of the whole order, by stage.
	// Written by function verdict.
	// +optional
	// +listType=map
	// +listMapKey=stage
	OrderVerdicts []StageVerdict `json:"orderVerdicts,omitempty"`
	// OrderResult is a person's verdict of the whole order. It counts above
	// the server's, of both stages. Written by people with kubectl.
	// +optional
	OrderResult *OrderResult `json:"orderResult,omitempty"`
	// Inbox holds verdicts that could not be handed to the Broker. Callback
	// and deadletter add, the ChangeWorkload reconciler sends and removes.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=64
	Inbox []InboxVerdict `json:"inbox,omitempty"`

	// KeptAs names the ControllerRevision that holds the template of this
	// release: it was a Success. Written by the History reconciler.
	// +optional
	KeptAs string `json:"keptAs,omitempty"`
	// Rollback says that the workload went back from this release, and where
	// to. Written by the Rollback reconciler.
	// +optional
	Rollback *Rollback `json:"rollback,omitempty"`
}

// PodCounts counts the pods of a release.
type PodCounts struct {
	// Pods is how many pods of the version are known: those that are there and
	// those that failed and are gone.
	Pods      int32 `json:"pods"`
	Preparing int32 `json:"preparing"`
	Checking  int32 `json:"checking"`
	Passed    int32 `json:"passed"`
	Failed    int32 `json:"failed"`
	// Unjudged is how many of Passed passed because nobody judged them.
	Unjudged int32 `json:"unjudged"`
}

// Order is the change order at the server: that it is open, the check of the
// order as a whole, and its end. Facts of function submit.
type Order struct {
	// ID is the server's order id; empty until it took the order.
	// +optional
	ID string `json:"id,omitempty"`
	// URL shows the order to a person.
	// +optional
	URL string `json:"url,omitempty"`
	// OpenedTime is when the server took the order.
	// +optional
	OpenedTime *metav1.Time `json:"openedTime,omitempty"`
	// Error is why the server did not take it, at the last try.
	// +optional
	Error *ServerError `json:"error,omitempty"`

	// NodeID is the server's id of the check of the whole order; empty until
	// its start was answered.
	// +optional
	NodeID string `json:"nodeId,omitempty"`
	// Skipped says that the server answered the start with skipCheck: it does
	// not judge the order as a whole.
	// +optional
	Skipped bool `json:"skipped,omitempty"`
	// Submissions are the start (PRE) and the finish (POST) of the node.
	// +optional
	// +listType=map
	// +listMapKey=stage
	Submissions []Submission `json:"submissions,omitempty"`
	// Closing is the call that closes the order.
	// +optional
	Closing *OrderClosing `json:"closing,omitempty"`
}

// OrderState is how an order ended, in the server's words.
type OrderState string

// The ends of an order.
const (
	OrderSuccess  OrderState = "SUCCESS"
	OrderRollback OrderState = "ROLLBACK"
	OrderCancel   OrderState = "CANCEL"
)

// OrderClosing is the call that closes an order. It is best effort: no release
// waits for it, only the deletion of the ChangeWorkload does for some minutes.
type OrderClosing struct {
	// State is what the server is told.
	// +kubebuilder:validation:Enum=SUCCESS;ROLLBACK;CANCEL
	State OrderState `json:"state"`
	// IntentTime is written before the call: only its writer calls.
	IntentTime metav1.MicroTime `json:"intentTime"`
	// Attempts counts the intents; the last is MaxClosingAttempts.
	Attempts int32 `json:"attempts"`
	// AnsweredTime is when the server took it.
	// +optional
	AnsweredTime *metav1.MicroTime `json:"answeredTime,omitempty"`
	// Error is why it did not, at the last try.
	// +optional
	Error *ServerError `json:"error,omitempty"`
}

// MaxClosingAttempts is how often an order is tried to be closed.
const MaxClosingAttempts = 5

// OrderStepName is what the order at the server waits for.
type OrderStepName string

// The steps of an order.
const (
	// OrderStepStart: open it, start its check (PRE), get the verdict.
	OrderStepStart OrderStepName = "Start"
	// OrderStepFinish: every batch is over; finish its check (POST), get the verdict.
	OrderStepFinish OrderStepName = "Finish"
	// OrderStepClose: tell the server how it ended.
	OrderStepClose OrderStepName = "Close"
)

// OrderStep is a step that is due.
type OrderStep struct {
	// +kubebuilder:validation:Enum=Start;Finish;Close
	Name OrderStepName `json:"name"`
	// Since is when it became due.
	Since metav1.Time `json:"since"`
	// State is what to close the order with, for Close.
	// +optional
	// +kubebuilder:validation:Enum=SUCCESS;ROLLBACK;CANCEL
	State OrderState `json:"state,omitempty"`
}

// OrderResult is what a person says of the whole order.
type OrderResult struct {
	// Verdict is the word: pass, or fail (unpass). Anything else says nothing.
	// +kubebuilder:validation:MaxLength=63
	Verdict string `json:"verdict"`
	// Message is the reason, for people.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// ServerError is what went wrong in a call to the server.
type ServerError struct {
	// Reason is one of the Reason constants.
	Reason string `json:"reason"`
	// +kubebuilder:validation:MaxLength=1024
	Message string      `json:"message"`
	Time    metav1.Time `json:"time"`
}

// InboxVerdict is a verdict that waits to be sent again.
type InboxVerdict struct {
	// ID is the id of the verdict's CloudEvent.
	ID string `json:"id"`
	// NodeID is the server's id of the batch.
	NodeID string `json:"nodeId"`
	// Stage is PRE or POST.
	Stage Stage `json:"stage"`
	// Verdict is the server's word, as it came.
	Verdict string `json:"verdict"`
	// Unjudged says that the verdict came with no rule.
	// +optional
	Unjudged bool `json:"unjudged,omitempty"`
	// Message is the reason, for people.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// PodResults are verdicts for single pods of the batch.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	PodResults []PodSummary `json:"podResults,omitempty"`
	// Time is when it came.
	Time metav1.MicroTime `json:"time"`
}

// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ChangeWorkloadList is a list of ChangeWorkload.
type ChangeWorkloadList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []ChangeWorkload `json:"items"`
}
