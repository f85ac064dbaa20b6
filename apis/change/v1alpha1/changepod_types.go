package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	duckv1 "knative.dev/pkg/apis/duck/v1"

	judgev1alpha1 "github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
)

// +genclient
// +genreconciler
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=changepods,singular=changepod,scope=Namespaced,shortName=cp,categories=breakwater
// +kubebuilder:subresource:status
// +kubebuilder:selectablefield:JSONPath=`.status.changePodId`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.status`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="CreateTime",type=string,JSONPath=`.spec.createTime`
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ChangePod is one batch of finished pods that are judged together. The ChangeWorkload
// reconciler creates it, and its ChangeWorkload owns it.
type ChangePod struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ChangePodSpec `json:"spec"`
	// +optional
	Status ChangePodStatus `json:"status,omitempty"`
}

// ChangePodSpec is the claim on a batch of pods. It is immutable
// (config/core/442-immutable-specs.yaml).
type ChangePodSpec struct {
	// PodInfos are the pods of the batch.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10000
	PodInfos []PodSummary `json:"podInfos"`
	// CreateTime is `2006-01-02 15:04:05` in UTC.
	CreateTime string `json:"createTime"`
	// CreateTimeUnix is CreateTime in seconds.
	CreateTimeUnix int64 `json:"createTimeUnix"`
	// ChangeWorkloadID is the name of the ChangeWorkload.
	ChangeWorkloadID string `json:"changeWorkloadId"`

	// BatchNo is the number of the batch at the server, starting at 0.
	// +kubebuilder:validation:Minimum=0
	BatchNo int32 `json:"batchNo"`
	// TotalBatches is the expected number of batches of the release when this batch
	// was created; scaling up adds batches. 0 if unknown.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TotalBatches int32 `json:"totalBatches,omitempty"`
	// Last is true if every desired pod is in this batch or an earlier one. If a pod is
	// replaced later, another batch follows nevertheless.
	// +optional
	Last bool `json:"last,omitempty"`

	// Judges are the judges of the batch, if there are others than the server. Empty
	// means the server alone.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=10
	Judges []Judge `json:"judges,omitempty"`
}

// PodSummary is a pod in the format of the AlterShield Operator, with its verdict.
type PodSummary struct {
	// App is the workload's app name.
	// +optional
	App string `json:"app,omitempty"`
	// HostName is the pod's host name.
	// +optional
	HostName string `json:"hostName,omitempty"`
	// WorkSpace is the server's name for the namespace.
	// +optional
	WorkSpace string `json:"workSpace,omitempty"`
	// Pod is the pod's name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Pod string `json:"pod"`
	// IP is the pod's address.
	// +optional
	IP string `json:"ip,omitempty"`
	// Namespace is the pod's namespace.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Verdict is the verdict as received; ParseVerdict interprets it.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Verdict string `json:"verdict,omitempty"`
	// Message explains the verdict.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// UID distinguishes a pod from a later pod of the same name.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// Source is SourceServer on results that function verdict wrote. A result without
	// it was written by a person, takes precedence over the server's, and is never
	// overwritten.
	// +optional
	Source string `json:"source,omitempty"`
}

// SourceServer marks a result that came from the server.
const SourceServer = "server"

// Stage is a stage of the server's check of a batch.
type Stage string

// The stages.
const (
	// StagePre is the first check of a batch. Breakwater starts it when its call has its turn. The pods
	// of the batch then already run the new version, and are Ready or were.
	StagePre Stage = "PRE"
	// StagePost is the check after the batch counts as released.
	StagePost Stage = "POST"
)

// BatchPhase is status.status of a ChangePod, or its status.message.
type BatchPhase string

// The states of a ChangePod. BatchInit is written as the empty string. BatchPreFailed,
// BatchPreTimeout, BatchPostFailed, BatchPostTimeout and BatchPostFinish are values of
// status.message: they say how a batch in state BatchExecuteDone ended.
const (
	BatchInit          BatchPhase = ""
	BatchPreWait       BatchPhase = "PreWait"
	BatchPreSubmitted  BatchPhase = "PreSubmitted"
	BatchPreFailed     BatchPhase = "PreFailed"
	BatchPreTimeout    BatchPhase = "PreTimeout"
	BatchPostWait      BatchPhase = "PostWait"
	BatchPostSubmitted BatchPhase = "PostSubmitted"
	BatchPostFailed    BatchPhase = "PostFailed"
	BatchPostTimeout   BatchPhase = "PostTimeout"
	BatchPostFinish    BatchPhase = "PostFinish"
	BatchExecuteDone   BatchPhase = "ExecuteDone"
)

// ChangePodStatus is the state of a batch. Functions and people write facts. All other
// fields are derived from them: by the ChangePod reconciler, and by function verdict if a
// verdict of the server ends the batch.
//
// +structType=atomic
type ChangePodStatus struct {
	// Atomic: managedFields names the status, not each of its fields, which each write would compare and store.

	duckv1.Status `json:",inline"`

	// Phase is the state, `status.status` in JSON; empty is Init. ExecuteDone is the end, and
	// Message says how the batch ended. Derived.
	// +optional
	// +kubebuilder:validation:Enum="";PreWait;PreSubmitted;PreFailed;PreTimeout;PostWait;PostSubmitted;PostFailed;PostTimeout;PostFinish;ExecuteDone
	Phase BatchPhase `json:"status,omitempty"`
	// Message says how the batch ended: PreFailed, PreTimeout, PostFailed, PostTimeout or
	// PostFinish; empty before. Derived; manual changes are overwritten.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message"`
	// UpdateTime is the time of the last derivation, `2006-01-02 15:04:05` in UTC.
	// +optional
	UpdateTime string `json:"updateTime,omitempty"`
	// UpdateTimeUnix is UpdateTime in seconds.
	// +optional
	UpdateTimeUnix int64 `json:"updateTimeUnix,omitempty"`
	// PreTimeoutThreshold is the timeout of the PRE verdict in seconds. Derived.
	// +optional
	PreTimeoutThreshold int32 `json:"preTimeoutThreshold,omitempty"`
	// PostTimeOutThreshold (sic) is the same for POST. Derived.
	// +optional
	PostTimeOutThreshold int32 `json:"postTimeOutThreshold,omitempty"`

	// ChangePodID is the id of the batch's order node at the server: that of the last
	// answered start, or that of the finish. Empty until a start was answered. A fact of
	// function submit, or of function verdict when it calls the finish of the batch.
	// +optional
	ChangePodID string `json:"changePodId,omitempty"`
	// PreSubmitTime is the time when the start was answered, `2006-01-02 15:04:05` in
	// UTC. A fact of function submit.
	// +optional
	PreSubmitTime string `json:"preSubmitTime,omitempty"`
	// PreSubmitTimeUnix is PreSubmitTime in seconds.
	// +optional
	PreSubmitTimeUnix int64 `json:"preSubmitTimeUnix,omitempty"`
	// PostSubmitTime is the time when the finish was sent; the submission shows whether
	// it was answered. A fact of function submit, or of function verdict when it calls
	// the finish of the batch.
	// +optional
	PostSubmitTime string `json:"postSubmitTime,omitempty"`
	// PostSubmitTimeUnix is PostSubmitTime in seconds.
	// +optional
	PostSubmitTimeUnix int64 `json:"postSubmitTimeUnix,omitempty"`
	// Submissions are the calls to the server, by stage. Facts of function submit, and of
	// function verdict when it calls the finish of the batch.
	// +optional
	// +listType=map
	// +listMapKey=stage
	Submissions []Submission `json:"submissions,omitempty"`

	// Verdicts are the server's verdicts, by stage. Facts of the functions verdict and
	// submit.
	// +optional
	// +listType=map
	// +listMapKey=stage
	Verdicts []StageVerdict `json:"verdicts,omitempty"`
	// Judges are the verdicts of the judges other than the server, by name. Facts of function
	// verdict.
	// +optional
	// +listType=map
	// +listMapKey=judge
	// +kubebuilder:validation:MaxItems=10
	Judges []JudgeVerdict `json:"judges,omitempty"`
	// MetricRecord is what function judge has seen in the metrics of the batch: the verdict
	// of its looks so far, with evidence. A fact of function judge.
	// +optional
	MetricRecord *judgev1alpha1.Record `json:"metricRecord,omitempty"`
	// Probation is what function judge has seen in the metrics of the release since its
	// success. Only one batch of a release has it. Its verdict is that of the last look; only
	// a fail counts. A fact of function judge.
	// +optional
	Probation *judgev1alpha1.Record `json:"probation,omitempty"`
	// PodResults are verdicts of single pods. Facts of the functions verdict and submit, or of a person
	// with kubectl, whose verdicts take precedence over the server's.
	// +optional
	// +listType=map
	// +listMapKey=pod
	PodResults []PodSummary `json:"podResults,omitempty"`
}

// Submission has the calls of one stage, and the result of the last one.
type Submission struct {
	Stage Stage `json:"stage"`
	// IntentTime is written before the call; only its writer makes the call.
	IntentTime metav1.MicroTime `json:"intentTime"`
	// FirstIntentTime is the IntentTime of the first attempt, from which the timeout of
	// the stage counts; absent after one attempt.
	// +optional
	FirstIntentTime *metav1.MicroTime `json:"firstIntentTime,omitempty"`
	// Attempts counts the intents.
	Attempts int32 `json:"attempts"`
	// AnsweredTime is the time when the server accepted the call. For a finish it is
	// written only if the verdict is late, because the verdict implies the answer.
	// +optional
	AnsweredTime *metav1.MicroTime `json:"answeredTime,omitempty"`
	// Error is the error of the last attempt.
	// +optional
	Error *ServerError `json:"error,omitempty"`
	// Resumptions counts how often the check of an answered start was begun again,
	// because no verdict came; at most MaxResumptions. Absent for a finish.
	// +optional
	Resumptions int32 `json:"resumptions,omitempty"`
	// EarlierNodes are the order nodes of answered starts before the last one, whose
	// checks the server had not begun. Their verdicts count. Absent for a finish.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=3
	EarlierNodes []string `json:"earlierNodes,omitempty"`
}

// MaxResumptions is the maximum number of Resumptions.
const MaxResumptions = 3

// StageVerdict is the server's verdict of one stage.
type StageVerdict struct {
	Stage Stage `json:"stage"`
	// Verdict is the server's verdict as received; ParseVerdict interprets it.
	// +kubebuilder:validation:MaxLength=63
	Verdict string `json:"verdict"`
	// UnconfirmedPass, `unjudged` in JSON, is true if the verdict is a pass without rules
	// that no retrieve has confirmed. It ends nothing before the timeout of its stage.
	// +optional
	UnconfirmedPass bool `json:"unjudged,omitempty"`
	// Contradicted is true if UnconfirmedPass is, and a retrieve was answered and did not
	// return pass.
	// +optional
	Contradicted bool `json:"contradicted,omitempty"`
	// Message explains the verdict.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// NodeID is the id of the order node that was judged.
	NodeID string `json:"nodeId"`
	// Time is the time when the verdict was stored.
	Time metav1.MicroTime `json:"time"`
}

// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ChangePodList is a list of ChangePod.
type ChangePodList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []ChangePod `json:"items"`
}
