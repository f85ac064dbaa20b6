package workload

import (
	"cmp"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	kubejson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/internal/knativetraffic"
)

// WriteTemplate says what to write if HasTemplate is false.
const WriteTemplate = "spec.template has no containers: write the pod template there instead of a reference to it (spec.workloadRef)"

// Workload is a workload of any kind. It is read from an object of the API and
// never written back: changes are patches.
type Workload struct {
	Kind Kind
	metav1.ObjectMeta
	// Template is the decoded pod template.
	Template corev1.PodTemplateSpec
	// Replicas is the desired number of pods.
	Replicas int32
	// ReplacesGradually: the workload's controller replaces the pods of an old version by
	// itself, some at a time. False for the strategies Recreate and OnDelete, and for
	// Knative Services.
	ReplacesGradually bool
	// OnDelete: it replaces a pod only after the pod was deleted.
	OnDelete bool
	// InProgress: pods are still to be replaced, even if the rollout is held.
	InProgress bool
	// Complete: all desired pods have the current version and are available.
	Complete bool
	// Stuck is why the workload's controller reports that the rollout makes no progress; empty if it does not report it, or
	// the rollout is paused or held: the Deployment controller then keeps the conditions of the rollout before.
	Stuck string
	// PauseValue is the present value of the field that pauses a rollout (Kind.PauseField), held or not;
	// nil if it is absent.
	PauseValue any
	counts     counts
	// partition is that of the update strategy of a StatefulSet.
	partition int64
	// startOrdinal is the lowest ordinal of the pods of a StatefulSet.
	startOrdinal int64
	// currentRevision and updateRevision are those of the status of a StatefulSet: the revisions of new pods
	// below the partition and of the others.
	currentRevision, updateRevision string
	// pauseDepth is how many fields of the path of Kind.PauseField exist.
	pauseDepth int
	// onTemplate is the release on the template of a Knative Service.
	onTemplate templateRelease
	// Traffic is spec.traffic of a Knative Service.
	Traffic knativetraffic.Split
	// ReadyRevision is the latest Revision of a Knative Service that is Ready; empty if there is none, or
	// if the latest one is not Ready any more.
	ReadyRevision string
	// LatestRevision is the latest Revision that Serving created for a Knative Service; empty if there is
	// none. It may not be Ready yet.
	LatestRevision string
}

// HasTemplate reports whether spec.template has a container. A reference to a template (spec.workloadRef) is none.
func (w *Workload) HasTemplate() bool { return len(w.Template.Spec.Containers) > 0 }

// PausedOrHeld reports whether the rollout is paused by somebody or held by Breakwater.
func (w *Workload) PausedOrHeld() bool {
	return len(w.Kind.PauseField.Path) > 0 && w.PauseValue == w.Kind.PauseField.Paused
}

// Observed reports whether the workload's controller has seen the spec.
func (w *Workload) Observed() bool { return w.counts.observed }

// HasOldPods reports whether pods of an earlier version exist.
func (w *Workload) HasOldPods() bool { return w.counts.all > w.counts.updated }

// Surged reports whether as many pods of the current version exist as are desired, and pods of an earlier version, too.
func (w *Workload) Surged() bool { return w.counts.updated >= w.counts.wanted && w.HasOldPods() }

// StoppedBeforeReplicaSet reports whether the workload has no ReplicaSet of its template because the rollout is
// paused or held: the controller creates none meanwhile, so the observed pods are all of other templates. A hold
// itself begins only after a ReplicaSet was created.
func (w *Workload) StoppedBeforeReplicaSet() bool {
	return w.Kind.Revisions == ReplicaSets && w.PausedOrHeld() && w.counts.observed && w.counts.updated == 0 && w.counts.all > 0
}

// Stopped reports whether the workload's controller replaces no pods now: the rollout is
// paused or held, or the strategy is OnDelete.
func (w *Workload) Stopped() bool { return w.PausedOrHeld() || w.OnDelete }

// Reference returns a reference to the workload, for Kubernetes Events.
func (w *Workload) Reference() *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: w.Kind.GroupVersion().String(), Kind: w.Kind.Kind, Namespace: w.Namespace, Name: w.Name,
		UID: w.UID, ResourceVersion: w.ResourceVersion,
	}
}

// object has the fields that kinds of workloads share.
type object struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Replicas       *int32                 `json:"replicas"`
		Template       corev1.PodTemplateSpec `json:"template"`
		Strategy       strategy               `json:"strategy"`
		UpdateStrategy strategy               `json:"updateStrategy"`
	} `json:"spec"`
	Status status `json:"status"`
}

// strategy has a type except in Argo's Rollout.
type strategy struct {
	Type string `json:"type"`
}

type status struct {
	// ObservedGeneration is a string in Argo's Rollout, else a number.
	ObservedGeneration     intstr.IntOrString `json:"observedGeneration"`
	Replicas               int32              `json:"replicas"`
	UpdatedReplicas        int32              `json:"updatedReplicas"`
	AvailableReplicas      int32              `json:"availableReplicas"`
	DesiredNumberScheduled int32              `json:"desiredNumberScheduled"`
	NumberMisscheduled     int32              `json:"numberMisscheduled"`
	CurrentNumberScheduled int32              `json:"currentNumberScheduled"`
	UpdatedNumberScheduled int32              `json:"updatedNumberScheduled"`
	NumberAvailable        int32              `json:"numberAvailable"`
	// StableRS and CurrentPodHash are hashes of templates of Argo's Rollout.
	StableRS       string `json:"stableRS"`
	CurrentPodHash string `json:"currentPodHash"`
	// HPAReplicas are the pods of Argo's Rollout that AvailableReplicas counts: of a canary all, of blue-green the active ones.
	HPAReplicas int32 `json:"HPAReplicas"`
	BlueGreen   struct {
		ActiveSelector string `json:"activeSelector"`
	} `json:"blueGreen"`
	// revisionReady: the latest Revision of a Knative Service and its routes are Ready.
	revisionReady bool
}

// Read reads a workload from its JSON. Like Kubernetes, it distinguishes upper and
// lower case in field names, so that Breakwater judges the same template that the
// workload's controller reads.
func Read(kind Kind, raw []byte) (*Workload, error) {
	var content map[string]any
	if err := kubejson.Unmarshal(raw, &content); err != nil {
		return nil, fmt.Errorf("decode %s: %w", kind.Kind, err)
	}
	return read(kind, raw, content)
}

// FromUnstructured reads a workload from an object of a dynamic client.
func FromUnstructured(kind Kind, u *unstructured.Unstructured) (*Workload, error) {
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", kind.Kind, err)
	}
	return read(kind, raw, u.Object)
}

func read(kind Kind, raw []byte, content map[string]any) (*Workload, error) {
	var s object
	if err := kubejson.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("decode %s: %w", kind.Kind, err)
	}
	s.Status.revisionReady = kind.Counts == CountRevision && revisionReady(content)
	c := countsOf(kind, s)
	w := &Workload{
		Kind:              kind,
		ObjectMeta:        s.Metadata,
		Template:          s.Spec.Template,
		Replicas:          c.wanted,
		ReplacesGradually: replacesGradually(s.Spec.Strategy) && replacesGradually(s.Spec.UpdateStrategy),
		InProgress:        c.inProgress(),
		Complete:          c.complete(),
		counts:            c,
	}
	if kind.IsStatefulSet() {
		_, partition := find(content, StatefulSet.PauseField.Path)
		w.partition, _ = partition.(int64)
		_, start := find(content, []string{"spec", "ordinals", "start"})
		w.startOrdinal, _ = start.(int64)
		_, current := find(content, []string{"status", "currentRevision"})
		w.currentRevision, _ = current.(string)
		_, update := find(content, []string{"status", "updateRevision"})
		w.updateRevision, _ = update.(string)
	}
	w.OnDelete = s.Spec.UpdateStrategy.Type == "OnDelete"
	w.pauseDepth, w.PauseValue = find(content, kind.PauseField.Path)
	if c.observed && !w.PausedOrHeld() {
		w.Stuck = stuckIn(content)
	}
	if kind.Revisions == KnativeRevisions {
		return w, w.readKnative(content)
	}
	return w, nil
}

// stuckIn returns type and message of a condition with which the controller reports that the rollout makes no progress.
// Deployments, Rollouts and newer CloneSets have them. The refusal of pods comes first: it is the cause of a missed deadline.
func stuckIn(content map[string]any) string {
	conditions, _ := field(content, "status", "conditions").([]any)
	deadline := ""
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		message, _ := condition["message"].(string)
		switch {
		case condition["type"] == "ReplicaFailure" && condition["status"] == "True":
			return "ReplicaFailure: " + message
		case condition["type"] == "Progressing" && condition["reason"] == "ProgressDeadlineExceeded":
			deadline = "ProgressDeadlineExceeded: " + message
		}
	}
	return deadline
}

// find returns how many fields of a path exist, and the value at its end.
func find(content map[string]any, path []string) (depth int, value any) {
	for ; depth < len(path); depth++ {
		at, found, err := unstructured.NestedFieldNoCopy(content, path[:depth+1]...)
		if err != nil || !found || at == nil {
			return depth, nil
		}
		value = at
	}
	return depth, normalizeNumber(value)
}

// counts are numbers of pods: desired, existing, of the current version, and
// available. observed is false until the controller has seen the spec.
type counts struct {
	observed                        bool
	wanted, all, updated, available int32
	// misscheduled is the number of nodes with a pod of a DaemonSet that should not have one.
	misscheduled int32
}

func (c counts) inProgress() bool {
	return !c.observed || c.updated < c.wanted || c.all > c.updated
}

func (c counts) complete() bool { return !c.inProgress() && c.available >= c.wanted }

// Misscheduled returns how many nodes have a pod of the DaemonSet but are not desired,
// such as nodes with a taint that the pod does not tolerate.
func (w *Workload) Misscheduled() int32 { return w.counts.misscheduled }

// ExcludedNodes counts the nodes of a DaemonSet that a release does not wait for, because they are
// not Ready. The DaemonSet controller counts them as desired, but their pods cannot become Ready.
type ExcludedNodes struct {
	// Nodes is the number of these nodes, and Updated the number of those whose pod has
	// the current version.
	Nodes, Updated int32
	// Misscheduled is the number of these nodes if the controller does not count some of them; Nodes and Updated are then 0.
	Misscheduled int32
}

// Without returns the desired number of pods without those on nodes that are not Ready, how many of them are not
// available, and whether they all exist and no other node has a pod of an earlier version.
func (w *Workload) Without(n ExcludedNodes) (replicas, unavailable int32, updated bool) {
	c := w.counts
	c.wanted -= n.Nodes
	c.all -= n.Nodes
	c.updated -= n.Updated
	return c.wanted, c.wanted - c.available, !c.inProgress()
}

func countsOf(kind Kind, s object) counts {
	st := s.Status
	c := counts{observed: int64(st.ObservedGeneration.IntValue()) >= s.Metadata.Generation}
	switch kind.Counts {
	case CountScheduled:
		c.wanted, c.all = st.DesiredNumberScheduled, st.CurrentNumberScheduled
		c.updated, c.available = st.UpdatedNumberScheduled, st.NumberAvailable
		c.misscheduled = st.NumberMisscheduled
	case CountReplicas:
		c.wanted, c.all = ptr.Deref(s.Spec.Replicas, 1), st.Replicas
		c.updated, c.available = st.UpdatedReplicas, st.AvailableReplicas
		if st.StableRS != "" && st.StableRS == st.CurrentPodHash && cmp.Or(st.BlueGreen.ActiveSelector, st.StableRS) == st.StableRS {
			// The Rollout is promoted, and keeps pods of other versions for scaleDownDelaySeconds. A canary counts them as available.
			c.all = c.updated
			c.available -= max(0, st.HPAReplicas-st.UpdatedReplicas)
		}
	case CountRevision:
		c.wanted = 1
		if st.revisionReady {
			c.all, c.updated, c.available = 1, 1, 1
		}
	}
	return c
}

// replacesGradually reports whether the controller replaces pods by itself, some at a time. Custom
// kinds have further strategies that do so, such as InPlaceIfPossible.
func replacesGradually(s strategy) bool { return s.Type != "Recreate" && s.Type != "OnDelete" }

// normalizeNumber converts the whole numbers of all decoders to int64.
func normalizeNumber(value any) any {
	switch n := value.(type) {
	case float64:
		return int64(n)
	case int:
		return int64(n)
	case int32:
		return int64(n)
	default:
		return value
	}
}
