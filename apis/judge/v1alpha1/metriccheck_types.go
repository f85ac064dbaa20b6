package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:noStatus
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=metricchecks,singular=metriccheck,scope=Namespaced,shortName=mc
// +kubebuilder:printcolumn:name="Duration",type=string,JSONPath=`.spec.analysisDuration`
// +kubebuilder:printcolumn:name="Insufficient data",type=string,JSONPath=`.spec.insufficientDataPolicy`
// +kubebuilder:printcolumn:name="False positives",type=string,JSONPath=`.spec.maxFalsePositiveRate`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MetricCheck says how the released pods of workloads are judged by comparing
// their metrics with those of the old pods. The MetricCheck default in the
// namespace of Breakwater applies to workloads that no other one selects.
type MetricCheck struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec MetricCheckSpec `json:"spec"`
}

// MetricCheckSpec has the metrics and the rules of the verdict. An empty spec
// judges by the default metrics.
//
// +kubebuilder:validation:XValidation:rule="!has(self.analysisDuration) || self.analysisDuration.matches('^(0|([0-9]{1,5}([.][0-9]+)?[mh]|[0-9]{1,9}([.][0-9]+)?m?s|[0-9]{1,15}([.][0-9]+)?[nu]s)+)$') && duration(self.analysisDuration) >= duration('1m') && duration(self.analysisDuration) <= duration('24h')",message="write a duration from 1m to 24h, for example 5m",fieldPath=".analysisDuration"
// +kubebuilder:validation:XValidation:rule="!has(self.warmUp) || self.warmUp.matches('^(0|([0-9]{1,5}([.][0-9]+)?[mh]|[0-9]{1,9}([.][0-9]+)?m?s|[0-9]{1,15}([.][0-9]+)?[nu]s)+)$') && (!has(self.analysisDuration) || !self.analysisDuration.matches('^(0|([0-9]{1,5}([.][0-9]+)?[mh]|[0-9]{1,9}([.][0-9]+)?m?s|[0-9]{1,15}([.][0-9]+)?[nu]s)+)$') || duration(self.analysisDuration) < duration('1m') || duration(self.warmUp) < duration(self.analysisDuration))",message="write a duration of at least 0s and below analysisDuration, for example 30s",fieldPath=".warmUp"
// +kubebuilder:validation:XValidation:rule="!has(self.probation) || self.probation.matches('^(0|([0-9]{1,5}([.][0-9]+)?[mh]|[0-9]{1,9}([.][0-9]+)?m?s|[0-9]{1,15}([.][0-9]+)?[nu]s)+)$') && duration(self.probation) >= duration('1m') && duration(self.probation) <= duration('72h')",message="write a duration from 1m to 72h, for example 24h",fieldPath=".probation"
// +kubebuilder:validation:XValidation:rule="!has(self.defaultMetrics) || self.defaultMetrics != 'None' || (has(self.metrics) && size(self.metrics) > 0)",message="metrics must not be empty if defaultMetrics is None",fieldPath=".metrics"
type MetricCheckSpec struct {
	// WorkloadSelector selects workloads of this namespace by their labels.
	// Default: all workloads.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, (e.operator in ['In', 'NotIn']) ? (has(e.values) && size(e.values) > 0) : (e.operator in ['Exists', 'DoesNotExist'] && (!has(e.values) || size(e.values) == 0)))",fieldPath=".matchExpressions",message="operators are In and NotIn, which need values, and Exists and DoesNotExist, which have none"
	WorkloadSelector *metav1.LabelSelector `json:"workloadSelector,omitempty"`
	// DefaultMetrics says whether the metrics that Breakwater knows are judged in addition
	// to those in the field metrics, if their series exist: Discover or None.
	// +optional
	// +kubebuilder:default=Discover
	DefaultMetrics DiscoverPolicy `json:"defaultMetrics,omitempty"`
	// Metrics are judged besides the default metrics. A metric with the name of a
	// default metric replaces it.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Metrics []Metric `json:"metrics,omitempty"`
	// AnalysisDuration is how long the metrics of new pods are analyzed for each batch, from
	// the creation of its ChangePod; a fail ends it early. From 1m to 24h. Each look reads the
	// samples of the whole time, and Prometheus may return about 2.5 million for a query: with one
	// in 15s, these are about 9000 series for 1h, and 430 for 24h.
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	AnalysisDuration metav1.Duration `json:"analysisDuration,omitempty"`
	// WarmUp is how long after its start the latency, the calls per request, the resources (CPU,
	// memory and so on) and other gauges of a new pod are not compared. Errors and restarts
	// count from the start.
	// +optional
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	WarmUp *metav1.Duration `json:"warmUp,omitempty"`
	// InsufficientDataPolicy says what happens to a release without a verdict at the end
	// of the analysis: Hold, Pass or Fail. The cause is insufficient data, nothing to compare
	// with, metrics that could not be read, or a metric that is probably worse without proof.
	// +optional
	// +kubebuilder:default=Hold
	InsufficientDataPolicy InsufficientDataPolicy `json:"insufficientDataPolicy,omitempty"`
	// MaxFalsePositiveRate is the maximum share of good releases that fail by chance, over
	// all looks and metrics of a release: above 0%, at most 20%. The thresholds of a fail
	// follow from it, if events are independent. A lower rate needs more data for a fail.
	// +optional
	// +kubebuilder:default="1%"
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="self.matches('^(0[.][0-9]*[1-9][0-9]*|([1-9]|1[0-9])([.][0-9]+)?|20([.]0+)?)%$')",message="write a percentage above 0% and at most 20%, for example 1%"
	MaxFalsePositiveRate string `json:"maxFalsePositiveRate,omitempty"`
	// Probation is how long the errors, restarts and OOM kills of a release are still looked
	// at after its success, from 1m to 72h. The first look is 10 minutes after the success,
	// and the distance to the next one doubles, up to an hour. A fail suspends the workload,
	// and no rollback returns to this version, as after any late fail. Too little data changes nothing.
	// Default: no probation.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	Probation *metav1.Duration `json:"probation,omitempty"`
	// Callers says whether the series of the callers of the service are judged
	// where they exist (service graph): Discover or None.
	// +optional
	// +kubebuilder:default=Discover
	Callers DiscoverPolicy `json:"callers,omitempty"`
}

// DiscoverPolicy says whether the known metrics, or the known series of callers, are judged.
// +kubebuilder:validation:Enum=Discover;None
type DiscoverPolicy string

const (
	// Discover judges those whose series exist.
	Discover DiscoverPolicy = "Discover"
	// DiscoverNone judges none of them.
	DiscoverNone DiscoverPolicy = "None"
)

// InsufficientDataPolicy says what happens to a release without a verdict.
// +kubebuilder:validation:Enum=Hold;Pass;Fail
type InsufficientDataPolicy string

const (
	// InsufficientDataHold holds the release until a person decides or a late verdict comes.
	InsufficientDataHold InsufficientDataPolicy = "Hold"
	// InsufficientDataPass continues the release.
	InsufficientDataPass InsufficientDataPolicy = "Pass"
	// InsufficientDataFail fails the release.
	InsufficientDataFail InsufficientDataPolicy = "Fail"
)

// Metric is one comparison of new with old pods.
//
// +kubebuilder:validation:XValidation:rule="(self.kind == 'Ratio') == has(self.bad)",message="bad is required for kind Ratio and allowed only there",fieldPath=".bad"
// +kubebuilder:validation:XValidation:rule="!has(self.causedByCallers) || !self.causedByCallers || self.kind == 'Ratio'",message="causedByCallers is allowed only for kind Ratio",fieldPath=".causedByCallers"
// +kubebuilder:validation:XValidation:rule="self.query.contains('{{pods}}')",message="query must contain {{pods}} between the braces of its selectors",fieldPath=".query"
// +kubebuilder:validation:XValidation:rule="!has(self.bad) || self.bad.contains('{{pods}}')",message="bad must contain {{pods}} between the braces of its selectors",fieldPath=".bad"
type Metric struct {
	// Name identifies the metric in verdicts.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// Kind says what the query returns and how it is compared: Ratio (bad of all
	// events), Latency (buckets of a histogram), Gauge (a value per pod) or Counter
	// (events per pod and time).
	Kind MetricKind `json:"kind"`
	// Query is a PromQL expression that returns an instant vector. {{pods}} stands
	// for the matcher of the new pods, and then for that of the old pods, for example
	// http_requests_total{job="web",{{pods}}}. Ratio and Counter: counters of events,
	// not rates; Latency: counters with label le. A plain selector is read sample by
	// sample, any other expression every 15 seconds.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Query string `json:"query"`
	// Bad is the PromQL expression of the bad events of a Ratio, like query.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Bad string `json:"bad,omitempty"`
	// CausedByCallers says that the callers cause the bad events of a Ratio, for example with
	// requests that are answered with 4xx. The bad events are then not compared after the success
	// of a release (probation). Callers may send more of them than before the release, so these are
	// compared only with old pods at the same time: bad events of a kind of request that follows from
	// the answer, for example without a route; all requests, if no label names their kind, if all
	// kinds are compared together, or if bad events have kinds that query does not have. If more than
	// half of the requests of the new pods have bad events, all are compared with the time before, too.
	// +optional
	CausedByCallers bool `json:"causedByCallers,omitempty"`
	// Direction is the direction that is bad: Higher, Lower or Either.
	// +optional
	// +kubebuilder:default=Higher
	Direction Direction `json:"direction,omitempty"`
	// SmallestChange is the smallest change that matters: a smaller one never fails.
	// +optional
	SmallestChange *Change `json:"smallestChange,omitempty"`
	// Weight says what a fail of this metric does. Alone: it fails the release.
	// WithOthers: it fails the release only if another metric fails too.
	// +optional
	// +kubebuilder:default=Alone
	Weight Weight `json:"weight,omitempty"`
	// MinimumData is the least number of events (Ratio), requests (Latency) or cells
	// with samples (Gauge, Counter) of the new pods, and of the old pods, for a pass. A fail
	// needs significance instead. Default: 15 events or requests, or 8 cells.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinimumData *int64 `json:"minimumData,omitempty"`
}

// Change is a difference between new and old pods. If both fields are set, a
// change must exceed both.
type Change struct {
	// Relative is the difference as a share of the old value, for example 50%.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?%$`
	Relative string `json:"relative,omitempty"`
	// Absolute is the difference in the unit of the metric: the share of bad events
	// (Ratio), the unit of the buckets (Latency), the value (Gauge) or events per pod
	// and second (Counter), for example 0.01.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?$`
	Absolute string `json:"absolute,omitempty"`
}

// MetricKind says how a metric is compared.
// +kubebuilder:validation:Enum=Ratio;Latency;Gauge;Counter
type MetricKind string

const (
	// KindRatio compares the share of bad events.
	KindRatio MetricKind = "Ratio"
	// KindLatency compares the buckets of a histogram.
	KindLatency MetricKind = "Latency"
	// KindGauge compares the mean value of a pod.
	KindGauge MetricKind = "Gauge"
	// KindCounter compares the number of events per pod and time.
	KindCounter MetricKind = "Counter"
)

// Direction is the direction of a change that is bad.
// +kubebuilder:validation:Enum=Higher;Lower;Either
type Direction string

const (
	// DirectionHigher is bad if the new value is higher.
	DirectionHigher Direction = "Higher"
	// DirectionLower is bad if the new value is lower.
	DirectionLower Direction = "Lower"
	// DirectionEither is bad if the new value is higher or lower.
	DirectionEither Direction = "Either"
)

// Weight says whether a fail of one metric fails the release.
// +kubebuilder:validation:Enum=Alone;WithOthers
type Weight string

const (
	// WeightAlone means that a fail of the metric fails the release.
	WeightAlone Weight = "Alone"
	// WeightWithOthers means that a fail of the metric fails the release only if another metric
	// fails too.
	WeightWithOthers Weight = "WithOthers"
)

// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MetricCheckList is a list of MetricCheck.
type MetricCheckList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []MetricCheck `json:"items"`
}
