package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	duckv1 "knative.dev/pkg/apis/duck/v1"
)

// +genclient
// +genreconciler
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=changeworkloads,singular=changeworkload,scope=Namespaced,shortName=cw,categories=breakwater
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.status`
// +kubebuilder:printcolumn:name="CreateTime",type=string,JSONPath=`.spec.createTime`
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.workloadRef.kind`
// +kubebuilder:printcolumn:name="Workload",type=string,JSONPath=`.spec.workloadRef.name`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Pods",type=integer,JSONPath=`.status.counts.pods`,priority=1
// +kubebuilder:printcolumn:name="Passed",type=integer,JSONPath=`.status.counts.passed`,priority=1
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.counts.failed`,priority=1
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ChangeWorkload is one release: a version and attempt of a workload. The workload
// reconciler creates and deletes it; the workload owns it.
type ChangeWorkload struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ChangeWorkloadSpec `json:"spec"`
	// +optional
	Status ChangeWorkloadStatus `json:"status,omitempty"`
}

// ChangeWorkloadSpec identifies the release. WorkloadRef, Reversion and Attempt are
// immutable (config/core/442-immutable-specs.yaml).
type ChangeWorkloadSpec struct {
	// ChangeWorkloadID is the name of the object.
	ChangeWorkloadID string `json:"changeWorkloadId"`
	// ServiceName is the workload's name.
	ServiceName string `json:"serviceName"`
	// Reversion is the version, the value of VersionKey. The AlterShield Operator spells
	// the field so.
	Reversion string `json:"reversion"`
	// Policies is a field of the AlterShield Operator; Breakwater ignores it.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	Policies []string `json:"policies,omitempty"`
	// CountThreshold is the number of finished pods in a batch, at least 1, when the
	// release began; scaling during the release changes the batch size.
	// +kubebuilder:validation:Minimum=1
	CountThreshold int32 `json:"countThreshold"`
	// WaitTimeThreshold is how many seconds Breakwater waits for a batch to become full,
	// from its first finished pod.
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
	// OrderID is bizExecOrderId at the server; at most 128 bytes. OrderLabel is its
	// hash.
	// +kubebuilder:validation:MaxLength=128
	OrderID string `json:"orderId"`
}

// WorkloadRef refers to a workload in the namespace of the ChangeWorkload.
type WorkloadRef struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Name       string    `json:"name"`
	UID        types.UID `json:"uid"`
}

// ReleasePhase is status.status of a ChangeWorkload.
type ReleasePhase string

// The states of a ChangeWorkload. Init is written as the empty string.
const (
	ReleaseInit    ReleasePhase = ""
	ReleaseRunning ReleasePhase = "Running"
	// ReleaseNoNewBatch: no batch was created for the time wait-threshold of OpsConfigInfo.
	ReleaseNoNewBatch ReleasePhase = "TimeOutPreThreshold"
	ReleaseSuccess    ReleasePhase = "Success"
	ReleaseSuspend    ReleasePhase = "Suspend"
	ReleaseFailed     ReleasePhase = "Failed"
)

// ChangeWorkloadStatus is the state of a release. The ChangeWorkload reconciler derives
// all fields that name no other writer.
//
// +structType=atomic
type ChangeWorkloadStatus struct {
	// Atomic, as ChangePodStatus.

	duckv1.Status `json:",inline"`

	// DefensePreparingPods are pods that are in no batch yet; at most 25, counts has all.
	// +optional
	// +listType=atomic
	DefensePreparingPods []PodSummary `json:"defensePreparingPods,omitempty"`
	// DefenseCheckingPods are pods that wait for a verdict; at most 25, counts has all.
	// +optional
	// +listType=atomic
	DefenseCheckingPods []PodSummary `json:"defenseCheckingPods,omitempty"`
	// DefenseCheckPassPods are pods that passed; at most 25, counts has all.
	// +optional
	// +listType=atomic
	DefenseCheckPassPods []PodSummary `json:"defenseCheckPassPods,omitempty"`
	// DefenseCheckFailPods are pods that failed, with the reason; at most 1000, counts has all.
	// +optional
	// +listType=atomic
	DefenseCheckFailPods []PodSummary `json:"defenseCheckFailPods,omitempty"`
	// Counts has the numbers of all pods by state. The lists of pods above are limited.
	// +optional
	Counts PodCounts `json:"counts,omitempty"`

	// Phase is the state, `status.status` in JSON; empty is Init.
	// +optional
	// +kubebuilder:validation:Enum="";Running;TimeOutPreThreshold;Success;Suspend;Failed
	Phase ReleasePhase `json:"status,omitempty"`
	// EntryTime is the time when Phase was entered, `2006-01-02 15:04:05` in UTC.
	// +optional
	EntryTime string `json:"entryTime,omitempty"`
	// EntryTimeUnix is EntryTime in seconds.
	// +optional
	EntryTimeUnix int64 `json:"entryTimeUnix,omitempty"`
	// UpdateTime is the time of the last write, `2006-01-02 15:04:05` in UTC.
	// +optional
	UpdateTime string `json:"updateTime,omitempty"`
	// UpdateTimeUnix is UpdateTime in seconds.
	// +optional
	UpdateTimeUnix int64 `json:"updateTimeUnix,omitempty"`

	// OrderStep is the last step of the order that became due; it stays when the step is done.
	// If a newer release replaces a suspended one, it is Close, also if the order is not open.
	// Function submit carries it out.
	// +optional
	OrderStep *OrderStep `json:"orderStep,omitempty"`
	// Order is the order at the server. Written by function submit.
	// +optional
	Order *Order `json:"order,omitempty"`
	// OrderVerdicts are the server's verdicts of the whole order, by stage.
	// Written by the functions verdict and submit.
	// +optional
	// +listType=map
	// +listMapKey=stage
	OrderVerdicts []StageVerdict `json:"orderVerdicts,omitempty"`
	// OrderResult is the verdict of a person about the whole order. It overrules the
	// server's verdicts of both stages. People write it with kubectl.
	// +optional
	OrderResult *OrderResult `json:"orderResult,omitempty"`
	// Inbox has verdicts of the server that could not be sent to the Broker, or that it could
	// not deliver. Functions callback and deadletter add them; the ChangeWorkload reconciler sends and removes them.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=64
	Inbox []InboxVerdict `json:"inbox,omitempty"`

	// Announcements are changes of state whose CloudEvent the Broker has not accepted
	// yet, the oldest first. The reconcilers of ChangeWorkload and rollback add them;
	// the ChangeWorkload reconciler sends and removes them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Announcements []Announcement `json:"announcements,omitempty"`

	// Probation is the time after the success in which function judge still looks at the
	// release; absent without probation.
	// +optional
	Probation *Probation `json:"probation,omitempty"`

	// RolledOutPods is the number of pods that decide the release: those in batches when the rollout became complete. The
	// rollout is complete when one pod has passed, all pods have the version, and as many as desired are in batches or
	// were deleted after they passed. Absent until then, and for a Knative Service.
	// +optional
	RolledOutPods int32 `json:"rolledOutPods,omitempty"`

	// SucceededWithoutPods is true if the last announced result was a `Success` without a pod, as at 0 replicas. The next
	// such result is not announced.
	// +optional
	SucceededWithoutPods bool `json:"succeededWithoutPods,omitempty"`

	// SavedTemplateName is the name of the ControllerRevision with the saved template
	// of this release, which succeeded. Written by the savedtemplates reconciler.
	// +optional
	SavedTemplateName string `json:"keptAs,omitempty"`
	// Rollback is the rollback of this release. Written by the rollback reconciler.
	// +optional
	Rollback *Rollback `json:"rollback,omitempty"`
}

// PodCounts counts the pods of a release.
type PodCounts struct {
	// Pods is the number of known pods of the version: existing pods, and deleted pods
	// that failed.
	Pods      int32 `json:"pods"`
	Preparing int32 `json:"preparing"`
	Checking  int32 `json:"checking"`
	Passed    int32 `json:"passed"`
	Failed    int32 `json:"failed"`
	// Unjudged is the number of Passed pods that passed without a verdict.
	Unjudged int32 `json:"unjudged"`
}

// Probation is the time after the success of a release in which function judge still looks at
// its metrics.
type Probation struct {
	// EndTime is the planned end.
	EndTime metav1.Time `json:"endTime"`
	// Looks is the number of looks so far.
	Looks int32 `json:"looks"`
	// NextLookTime is the time of the next look. It is absent after the end: at endTime, after
	// a fail, or when a newer template was applied.
	// +optional
	NextLookTime *metav1.Time `json:"nextLookTime,omitempty"`
	// Message is the result of the last look.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// Order is the state of the order at the server: opening, order check and closing. Facts
// of function submit.
type Order struct {
	// ID is the order id at the server; empty until the server accepted the order.
	// +optional
	ID string `json:"id,omitempty"`
	// URL is the page of the order at the server.
	// +optional
	URL string `json:"url,omitempty"`
	// RequestedTime is the time of the first result of a call that opens the order, from
	// which order-timeout counts; absent until then.
	// +optional
	RequestedTime *metav1.Time `json:"requestedTime,omitempty"`
	// OpenedTime is the time when the server accepted the order.
	// +optional
	OpenedTime *metav1.Time `json:"openedTime,omitempty"`
	// Error is the error of the last attempt to open the order.
	// +optional
	Error *ServerError `json:"error,omitempty"`

	// NodeID is the id of the order check at the server, as ChangePodID of a ChangePod;
	// empty until a start was answered.
	// +optional
	NodeID string `json:"nodeId,omitempty"`
	// Skipped is true if the server answered the start with skipCheck: it does not judge
	// the order as a whole.
	// +optional
	Skipped bool `json:"skipped,omitempty"`
	// Submissions are the start (PRE) and the finish (POST) of the order check.
	// +optional
	// +listType=map
	// +listMapKey=stage
	Submissions []Submission `json:"submissions,omitempty"`
	// Closing records the call that closes the order.
	// +optional
	Closing *OrderClosing `json:"closing,omitempty"`
}

// OrderState is the final state of an order, with the server's names.
type OrderState string

// The final states of an order.
const (
	OrderSuccess  OrderState = "SUCCESS"
	OrderRollback OrderState = "ROLLBACK"
	OrderCancel   OrderState = "CANCEL"
)

// OrderClosing records the call that closes an order. The call is best effort: the deletion
// of the ChangeWorkload waits for it at most two minutes. No release waits for it, except that
// a version that is applied again waits up to five seconds for the name of its ChangeWorkload.
type OrderClosing struct {
	// State is the final state that is sent to the server.
	// +kubebuilder:validation:Enum=SUCCESS;ROLLBACK;CANCEL
	State OrderState `json:"state"`
	// IntentTime is written before the call; only its writer makes the call.
	IntentTime metav1.MicroTime `json:"intentTime"`
	// Attempts counts the intents. From MaxClosingAttempts on, an attempt is repeated only if its
	// result was not stored.
	Attempts int32 `json:"attempts"`
	// AnsweredTime is the time when the server accepted the call.
	// +optional
	AnsweredTime *metav1.MicroTime `json:"answeredTime,omitempty"`
	// Error is the error of the last attempt.
	// +optional
	Error *ServerError `json:"error,omitempty"`
}

// MaxClosingAttempts is the maximum number of attempts to close an order.
const MaxClosingAttempts = 5

// OrderStepName is the name of a step of an order.
type OrderStepName string

// The steps of an order.
const (
	// OrderStepStart: open the order, start its check (PRE), get the verdict.
	OrderStepStart OrderStepName = "Start"
	// OrderStepFinish: all pods passed, the rollout is complete, and stage PRE has a verdict or
	// timed out; finish the check (POST), get the verdict.
	OrderStepFinish OrderStepName = "Finish"
	// OrderStepClose: send the final state to the server.
	OrderStepClose OrderStepName = "Close"
)

// OrderStep is a step that is due.
type OrderStep struct {
	// +kubebuilder:validation:Enum=Start;Finish;Close
	Name OrderStepName `json:"name"`
	// Since is the time when the step became due.
	Since metav1.Time `json:"since"`
	// State is the final state of the order, for Close.
	// +optional
	// +kubebuilder:validation:Enum=SUCCESS;ROLLBACK;CANCEL
	State OrderState `json:"state,omitempty"`
}

// OrderResult is the verdict of a person about the whole order.
type OrderResult struct {
	// Verdict is pass or fail (unpass). Other values are ignored.
	// +kubebuilder:validation:MaxLength=63
	Verdict string `json:"verdict"`
	// Message explains the verdict.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// ServerError is the error of a call to the server.
type ServerError struct {
	// Reason is one of the Reason constants.
	Reason string `json:"reason"`
	// +kubebuilder:validation:MaxLength=1024
	Message string      `json:"message"`
	Time    metav1.Time `json:"time"`
}

// Announcement is a change of state that is to be sent as a CloudEvent.
type Announcement struct {
	// Verb is the last part of the event's type, before the version.
	// +kubebuilder:validation:Enum=started;succeeded;suspended;failed;rolledback;bypassed
	Verb string `json:"verb"`
	// Phase is the state, `status` in JSON; empty is Init.
	// +optional
	Phase ReleasePhase `json:"status,omitempty"`
	// EntryTimeUnix is when the release entered Phase, in seconds.
	// +optional
	EntryTimeUnix int64 `json:"entryTimeUnix,omitempty"`
	// Reason is one of the Reason constants.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message is for people.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// User is the author of a bypass or rollback.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	User string `json:"user,omitempty"`
}

// MaxAnnouncements is the maximum number of Announcements. A further one replaces the
// oldest.
const MaxAnnouncements = 16

// InboxVerdict is a verdict that is to be sent again.
type InboxVerdict struct {
	// ID is the id of the verdict's CloudEvent.
	ID string `json:"id"`
	// NodeID is the id of the order node that was judged: that of a batch, or of the order
	// check.
	NodeID string `json:"nodeId"`
	// Stage is PRE or POST.
	Stage Stage `json:"stage"`
	// Verdict is the server's verdict as received.
	Verdict string `json:"verdict"`
	// WithoutRules, `unjudged` in JSON, marks a pass without rules.
	// +optional
	WithoutRules bool `json:"unjudged,omitempty"`
	// Message explains the verdict.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// PodResults are verdicts of single pods of the batch.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	PodResults []PodSummary `json:"podResults,omitempty"`
	// Time is the time when the verdict was received.
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
