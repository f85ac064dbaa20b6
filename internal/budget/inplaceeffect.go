package budget

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// deadline is the ContainerID of the Effect of spec.activeDeadlineSeconds.
const deadline = "deadline"

// Effect is what the kubelet does some time after an in-place change: it replaces a
// container, or ends the pod at its deadline. It is written `<name>.<id>.<before>`, and its Grace as
// `.<id>-<seconds>`: an older version, which does not know it, keeps the charge until it expires.
type Effect struct {
	// Container is the name of the container; empty for the deadline.
	Container string
	// ContainerID is the hash of the ID of the container that is replaced.
	ContainerID string
	// Before is the hash of the fields that change, as the container runs with them before
	// the change. It is empty if the spec does not change: OpenKruise restarts the container.
	Before string
	// Grace is for how long OpenKruise may wait until the container has stopped. It may be Ready
	// until then, and the spec does not show that it stops.
	Grace time.Duration
}

// is reports whether two effects are the same one: the same container is replaced, both
// times by a change of the spec or both times by a restart.
func (e Effect) is(other Effect) bool {
	return e.Container == other.Container && e.ContainerID == other.ContainerID && (e.Before == "") == (other.Before == "")
}

func (e Effect) String() string {
	text := e.Container + "." + e.ContainerID
	if e.Before != "" {
		text += "." + e.Before
	}
	if e.Grace > 0 {
		text += ",." + e.ContainerID + "-" + strconv.FormatInt(int64(e.Grace/time.Second), 10)
	}
	return text
}

func formatEffects(all []Effect) string {
	texts := make([]string, len(all))
	for i, e := range all {
		texts[i] = e.String()
	}
	return strings.Join(texts, ",")
}

func parseEffects(text string) []Effect {
	var all []Effect
	for part := range strings.SplitSeq(text, ",") {
		fields := strings.Split(part, ".")
		if len(fields) < 2 || len(fields) > 3 || fields[1] == "" {
			continue
		}
		e := Effect{Container: fields[0], ContainerID: fields[1]}
		if id, seconds, ok := strings.Cut(e.ContainerID, "-"); ok && e.Container == "" {
			n, _ := strconv.ParseInt(seconds, 10, 64) // 0 for another text
			if i := slices.IndexFunc(all, func(e Effect) bool { return e.ContainerID == id && e.Before == "" }); i >= 0 {
				all[i].Grace = graceOf(n)
			}
			continue
		}
		if len(fields) > 2 {
			e.Before = fields[2]
		}
		all = append(all, e)
	}
	return all
}

// mergeEffects returns the effects of two changes of one pod. Of the same effect it
// returns the earlier one: its Before is what the container runs with until it is
// replaced. The later one has a spec that the container perhaps never runs with. The
// returned one has the longer Grace of both.
func mergeEffects(before, after []Effect) []Effect {
	merged := slices.Clone(before)
	for _, a := range after {
		if i := slices.IndexFunc(merged, a.is); i >= 0 {
			merged[i].Grace = max(merged[i].Grace, a.Grace)
		} else {
			merged = append(merged, a)
		}
	}
	return merged
}

// EffectsOf returns the effects of an update or a resize of a pod; before is the pod
// before the request.
func EffectsOf(before, after *corev1.Pod) []Effect {
	effects := effectsOn(before, changedContainers(before, after), true)
	if d := deadlineHash(before); d != deadlineHash(after) {
		effects = append(effects, Effect{ContainerID: deadline, Before: d})
	}
	return effects
}

// ResizeRestarts reports whether the kubelet restarts a container for a resize of a pod.
func ResizeRestarts(before, after *corev1.Pod) bool { return len(changedContainers(before, after)) > 0 }

// changedContainers returns the containers that the kubelet replaces for an update or a resize of a pod.
func changedContainers(before, after *corev1.Pod) (names []string) {
	current := containers(after)
	for name, c := range containers(before) {
		if specHash(c) != specHash(current[name]) {
			names = append(names, name)
		}
	}
	return names
}

// Restart has fields of the spec of a ContainerRecreateRequest.
type Restart struct {
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds"`
	Strategy              struct {
		TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds"`
		UnreadyGracePeriodSeconds     *int64 `json:"unreadyGracePeriodSeconds"`
	} `json:"strategy"`
}

// EffectsOfRestart returns the effects of a restart of containers by OpenKruise. It waits for the unready
// grace period once, and then stops one container after the other. After the deadline it stops no further
// container while kruise-manager runs, which enforces the deadline. But a container that it is stopping may run until the
// end of its grace period.
func EffectsOfRestart(p *corev1.Pod, names []string, r Restart) []Effect {
	effects := effectsOn(p, names, false)
	each := graceOf(ptr.Deref(r.Strategy.TerminationGracePeriodSeconds, ptr.Deref(p.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)))
	left := maxGrace
	if r.ActiveDeadlineSeconds != nil {
		left = min(graceOf(*r.ActiveDeadlineSeconds)+each, maxGrace)
	}
	wait := graceOf(ptr.Deref(r.Strategy.UnreadyGracePeriodSeconds, 0))
	for i := range effects {
		effects[i].Grace = min(wait+each, left)
		left -= effects[i].Grace
		wait = 0
	}
	return effects
}

// maxGrace limits the time that is added for a restart: a request may have any grace period.
const maxGrace = 24 * time.Hour

func graceOf(seconds int64) time.Duration {
	return time.Duration(min(max(seconds, 0), int64(maxGrace/time.Second))) * time.Second
}

// effectsOn returns effects on the running containers of a pod. Pods on simulated nodes
// have no container IDs.
func effectsOn(p *corev1.Pod, names []string, ofSpec bool) []Effect {
	slices.Sort(names)
	specs, statuses := containers(p), containerStatuses(p)
	var effects []Effect
	for _, name := range names {
		status := statuses[name]
		if status.ContainerID == "" {
			continue
		}
		e := Effect{Container: name, ContainerID: hash(status.ContainerID)}
		if ofSpec {
			c := specs[name]
			if status.Resources != nil && pendingResize(p) != "" {
				// The container does not run with those of the spec.
				c.Resources = withPodLimits(*status.Resources, cmp.Or(p.Status.Resources, p.Spec.Resources))
			}
			e.Before = specHash(c)
		}
		effects = append(effects, e)
	}
	return effects
}

// effectState is the progress of an Effect.
type effectState int

const (
	effectUnknown effectState = iota // perhaps the change was never made, or it was changed back
	effectPending                    // the change was made
	effectDone
)

// state returns the progress of the effect on the pod.
func (e Effect) state(p *corev1.Pod) effectState {
	if e.ContainerID == deadline {
		if e.Before == deadlineHash(p) {
			return effectUnknown
		}
		return effectPending // until the pod is completed
	}
	id := containerStatuses(p)[e.Container].ContainerID // empty while a container is created
	replaced := id != "" && hash(id) != e.ContainerID
	switch made := e.Before == "" || isMade(e.Before, specHash(containers(p)[e.Container]), p); {
	// The kubelet may act on an earlier spec: it may have replaced the container before it
	// observed the change, or replace it although the change was changed back.
	case p.Status.ObservedGeneration != 0 && p.Status.ObservedGeneration < p.Generation:
		return effectPending
	case !made, !replaced && e.Before == "":
		return effectUnknown
	case !replaced:
		return effectPending
	}
	return effectDone
}

// isMade reports whether the spec of a container changed. A resize that does not fit on
// the node has no effect.
func isMade(before, now string, p *corev1.Pod) bool {
	if len(before) != len(now) || pendingResize(p) != corev1.PodReasonInfeasible {
		return before != now
	}
	return before[:len(before)/2] != now[:len(now)/2] // the image
}

// pendingResize returns why the kubelet has not accepted the latest resize of the pod:
// Deferred or Infeasible; empty if no resize is pending.
func pendingResize(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodResizePending && c.Status == corev1.ConditionTrue {
			return c.Reason
		}
	}
	return ""
}

// stateOf returns the progress of all effects together.
func stateOf(effects []Effect, p *corev1.Pod) effectState {
	together := effectDone
	for _, e := range effects {
		switch e.state(p) {
		case effectPending:
			return effectPending
		case effectUnknown:
			together = effectUnknown
		}
	}
	return together
}

// restartResources are the resources of a container for whose resize the kubelet
// restarts it.
func restartResources(c corev1.Container) []corev1.ResourceName {
	var names []corev1.ResourceName
	for _, p := range c.ResizePolicy {
		if p.RestartPolicy == corev1.RestartContainer {
			names = append(names, p.ResourceName)
		}
	}
	slices.Sort(names)
	return names
}

// specHash hashes the fields of a container whose change makes the kubelet replace it:
// the image and, in the second half, the values of resources. The status of a container
// may write a value in another format than the spec.
func specHash(c corev1.Container) string {
	var resources strings.Builder
	for _, name := range restartResources(c) {
		request, limit := c.Resources.Requests[name], c.Resources.Limits[name]
		_, _ = fmt.Fprintf(&resources, "%s=%d/%d;", name, request.MilliValue(), limit.MilliValue())
	}
	return hash(c.Image) + hash(resources.String())
}

func deadlineHash(p *corev1.Pod) string {
	if d := p.Spec.ActiveDeadlineSeconds; d != nil {
		return hash(fmt.Sprint(*d))
	}
	return hash("")
}

func hash(s string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s))
	return fmt.Sprintf("%08x", h.Sum32())
}

// isSidecar reports whether an init container runs beside the containers.
func isSidecar(c corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// containers returns the containers and sidecars of a pod by name, with the limits that the kubelet sets.
func containers(p *corev1.Pod) map[string]corev1.Container {
	found := map[string]corev1.Container{}
	for _, c := range p.Spec.InitContainers {
		if isSidecar(c) {
			found[c.Name] = c
		}
	}
	for _, c := range p.Spec.Containers {
		found[c.Name] = c
	}
	for name, c := range found {
		c.Resources = withPodLimits(c.Resources, p.Spec.Resources)
		found[name] = c
	}
	return found
}

// withPodLimits returns the resources with which the kubelet runs a container: a container without a limit has that of
// its pod.
func withPodLimits(r corev1.ResourceRequirements, ofPod *corev1.ResourceRequirements) corev1.ResourceRequirements {
	if ofPod == nil {
		return r
	}
	limits := corev1.ResourceList{}
	maps.Copy(limits, r.Limits)
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if own := limits[name]; own.IsZero() {
			limits[name] = ofPod.Limits[name]
		}
	}
	r.Limits = limits
	return r
}

func containerStatuses(p *corev1.Pod) map[string]corev1.ContainerStatus {
	found := map[string]corev1.ContainerStatus{}
	for _, statuses := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, s := range statuses {
			found[s.Name] = s
		}
	}
	return found
}
