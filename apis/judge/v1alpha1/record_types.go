package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Record is what a judge has seen of one release or batch, and its verdict. With the MetricCheck
// and the samples, the verdict can be recomputed from it. Function judge stores no metrics in a
// record that is not final, and omits those that would make it too large.
type Record struct {
	// Verdict is pass, fail or none.
	Verdict Verdict `json:"verdict"`
	// Reason says in one word why.
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`
	// Message says why for people.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
	// Final reports whether the analysis has ended: the verdict does not change any more.
	Final bool `json:"final"`
	// Target says which pods were compared.
	Target Target `json:"target"`
	// Looks is the number of looks so far.
	Looks int32 `json:"looks"`
	// LookTime is the time of the last look, to which the samples reach.
	LookTime metav1.Time `json:"lookTime"`
	// EndTime is the end of the analysis, or of the probation.
	EndTime metav1.Time `json:"endTime"`
	// SuccessTime is the success of the release, since which its restarts and OOM kills are
	// compared; only of a look during probation.
	// +optional
	SuccessTime *metav1.Time `json:"successTime,omitempty"`
	// ComparedSince is the time since which errors are compared: the previous look or the success,
	// but at most an hour before lookTime; only of a look during probation.
	// +optional
	ComparedSince *metav1.Time `json:"comparedSince,omitempty"`
	// DetectionTime is the time of the look that found the fail.
	// +optional
	DetectionTime *metav1.Time `json:"detectionTime,omitempty"`
	// MaxFalsePositiveRate is that of the MetricCheck, over all looks and metrics.
	// +optional
	MaxFalsePositiveRate string `json:"maxFalsePositiveRate,omitempty"`
	// Metrics is the evidence, failed metrics first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Metrics []Evidence `json:"metrics,omitempty"`
}

// Verdict is the answer of a judge.
// +kubebuilder:validation:Enum=pass;fail;none
type Verdict string

const (
	// VerdictPass means that there was enough data and no change that matters.
	VerdictPass Verdict = "pass"
	// VerdictFail means that a metric changed for the worse.
	VerdictFail Verdict = "fail"
	// VerdictNone means that there is no verdict: insufficient data, unreadable metrics, or an
	// analysis that has not ended.
	VerdictNone Verdict = "none"
)

// Reasons of a Record and of Evidence.
const (
	// ReasonAnalysisRunning: the analysis has not ended.
	ReasonAnalysisRunning = "AnalysisRunning"
	// ReasonNoChange: enough data, and no change that matters.
	ReasonNoChange = "NoChange"
	// ReasonMetricWorse: a metric of the new pods is worse.
	ReasonMetricWorse = "MetricWorse"
	// ReasonPodsUnhealthy: new pods restart, are OOMKilled, cannot run or are not Ready.
	ReasonPodsUnhealthy = "PodsUnhealthy"
	// ReasonPodsWithoutRequests: Ready new pods have none of the requests, which are evenly
	// distributed over the old pods.
	ReasonPodsWithoutRequests = "PodsWithoutRequests"
	// ReasonInconclusive: a metric of the new pods is probably worse, but that is not proven.
	ReasonInconclusive = "Inconclusive"
	// ReasonInsufficientData: fewer events or samples than the minimum.
	ReasonInsufficientData = "InsufficientData"
	// ReasonNoTraffic: the old pods have events, the new pods have none.
	ReasonNoTraffic = "NoTraffic"
	// ReasonNoSeries: no known metric has series of the new pods.
	ReasonNoSeries = "NoSeries"
	// ReasonNoReference: there is nothing to compare with.
	ReasonNoReference = "NoReference"
	// ReasonMetricsUnavailable: Prometheus could not be read, or rejected a query.
	ReasonMetricsUnavailable = "MetricsUnavailable"
)

// Target says which pods are compared.
type Target struct {
	// New is the matcher of the new pods: what stands between the braces of a
	// PromQL selector.
	// +kubebuilder:validation:MaxLength=65536
	New string `json:"new"`
	// Old is the matcher of the old pods.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Old string `json:"old,omitempty"`
	// PodLabel is the label of series that names their pod: pod-label of config-judge, if it is not pod.
	// Without it, the known label that selects the new pods names them.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PodLabel string `json:"podLabel,omitempty"`
	// NewSince has, by the name of a new pod, since when its samples count as new: an earlier pod of a
	// StatefulSet has the same name. It is the creation of the pod or, if the kind updates pods in
	// place and the pod is older than its ChangeWorkload, the first start of a container since then. A
	// pod without such a start has no time.
	// +optional
	// +kubebuilder:validation:MaxProperties=500
	NewSince map[string]metav1.Time `json:"newSince,omitempty"`
	// NoReferenceBefore is true if the new pods are not compared with the time before the change where no old
	// pods are known: no earlier pod had their names, so it would be their own start; or one of a version that failed
	// may have had them.
	// +optional
	NoReferenceBefore bool `json:"noReferenceBefore,omitempty"`
	// StartTime is the start of the compared time: the creation of the first batch of the release
	// or, if the release is slow, the end of the analysis minus analysisDuration; --at of judge
	// replay.
	StartTime metav1.Time `json:"startTime"`
}

// Reference says what the new pods were compared with.
// +kubebuilder:validation:Enum=OldPods;Before
type Reference string

const (
	// ReferenceOldPods are the old pods at the same time and, if they had few requests then, also
	// before the change: old.from is then before the start of the compared time.
	ReferenceOldPods Reference = "OldPods"
	// ReferenceBefore are the old pods, or the same ones, before the change.
	ReferenceBefore Reference = "Before"
)

// Evidence is the comparison of one metric.
type Evidence struct {
	// Name is the name of the metric.
	Name string `json:"name"`
	// Kind is the kind of the metric.
	Kind MetricKind `json:"kind"`
	// Verdict is that of this metric.
	Verdict Verdict `json:"verdict"`
	// Reason says in one word why.
	Reason string `json:"reason"`
	// Message says why for people.
	// +optional
	Message string `json:"message,omitempty"`
	// Weight says whether a fail of this metric alone fails the release.
	// +optional
	Weight Weight `json:"weight,omitempty"`
	// Reference says what the new pods were compared with.
	// +optional
	Reference Reference `json:"reference,omitempty"`
	// Unit is the unit of the values, for example ratio, seconds or bytes.
	// +optional
	Unit string `json:"unit,omitempty"`
	// New has the value of the new pods.
	// +optional
	New *Side `json:"new,omitempty"`
	// Old has the value of the reference.
	// +optional
	Old *Side `json:"old,omitempty"`
	// ConfidenceInterval is that of the difference new minus old, or of the
	// factor new to old.
	// +optional
	ConfidenceInterval *ConfidenceInterval `json:"confidenceInterval,omitempty"`
	// EValue is the evidence against "not worse". At threshold it is a fail.
	// +optional
	EValue string `json:"eValue,omitempty"`
	// Threshold is the e-value of a fail: the number of compared metrics except health, divided by
	// the maximum false-positive rate. It is higher for later looks during probation.
	// +optional
	Threshold string `json:"threshold,omitempty"`
	// SmallestChange is the smallest change that matters.
	// +optional
	SmallestChange *Change `json:"smallestChange,omitempty"`
	// Dispersion is how much more the counts vary than independent events would.
	// +optional
	Dispersion string `json:"dispersion,omitempty"`
}

// Side is one side of a comparison.
type Side struct {
	// Value is the value, as a decimal number.
	Value string `json:"value"`
	// Bad is the number of bad events (Ratio), slow requests (Latency) or events (Counter).
	// +optional
	Bad string `json:"bad,omitempty"`
	// Samples is the number of events (Ratio), requests (Latency), cells with samples (Gauge), or
	// such cells of all pods (Counter); for metric health it is the number of pods.
	Samples int64 `json:"samples"`
	// Pods is the number of pods with samples.
	Pods int32 `json:"pods"`
	// Query is the PromQL expression, without its range.
	Query string `json:"query"`
	// From is the start of the range.
	From metav1.Time `json:"from"`
	// To is the end of the range.
	To metav1.Time `json:"to"`
}

// ConfidenceInterval is a confidence interval that holds at all looks together.
type ConfidenceInterval struct {
	// Low is the lower end, as a decimal number.
	Low string `json:"low"`
	// High is the upper end, as a decimal number.
	High string `json:"high"`
	// Of says what the interval is of: Difference or Factor.
	// +kubebuilder:validation:Enum=Difference;Factor
	Of string `json:"of"`
}
