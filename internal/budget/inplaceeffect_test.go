package budget

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// runningPod is pod a with a container, a sidecar and a completed init container.
func runningPod(changes ...func(*corev1.Pod)) *corev1.Pod {
	p := pod("a", "5")
	p.Generation, p.Status.ObservedGeneration = 1, 1
	p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "init:1"}, {Name: "mesh", Image: "mesh:1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
	p.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1", ResizePolicy: []corev1.ContainerResizePolicy{
		{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.NotRequired}, {ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer}}}}
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", ContainerID: "containerd://i"}, {Name: "mesh", ContainerID: "containerd://m"}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", ContainerID: "containerd://w"}}
	for _, change := range changes {
		change(p)
	}
	return p
}

// spec changes the spec, as the API server does.
func spec(change func(*corev1.Pod)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		change(p)
		p.Generation++
		p.ResourceVersion += "0"
	}
}

// status changes the status, as a kubelet does that has observed the spec.
func status(change func(*corev1.Pod)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		change(p)
		p.Status.ObservedGeneration = p.Generation
		p.ResourceVersion += "0"
	}
}

func image(i string) func(*corev1.Pod) {
	return spec(func(p *corev1.Pod) { p.Spec.Containers[0].Image = i })
}

func memory(m string) func(*corev1.Pod) {
	return spec(func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(m)}
	})
}

// podMemory changes the memory limit of the pod, which is that of its container.
func podMemory(limit string) func(*corev1.Pod) {
	return spec(func(p *corev1.Pod) {
		p.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}}
	})
}

func started(id string) func(*corev1.Pod) {
	return status(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ContainerID = "containerd://" + id })
}

// pending is the status of a pod whose resize the kubelet has not accepted: the container
// runs with this memory.
func pending(reason, runsWith string) func(*corev1.Pod) {
	return status(func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: reason})
		p.Status.ContainerStatuses[0].Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(runsWith)}}
	})
}

func deadlineAfter(seconds int64) func(*corev1.Pod) {
	return spec(func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = &seconds })
}

// The charge of an in-place change is kept until the kubelet has replaced the containers,
// however long that takes. If the change was never made, the charge expires.
func TestTheChargeOfAnInPlaceChangeEndsWithItsEffects(t *testing.T) {
	observed, notReady := status(func(*corev1.Pod) {}), status(func(p *corev1.Pod) { unready(p) })
	type changes = []func(*corev1.Pod)
	const kept, settled, expires = "kept", "settled", "expires"
	for _, tc := range []struct {
		name      string
		requested changes // from runningPod
		then      changes // what the watch shows since, from runningPod
		want      string
	}{
		{"an image that was not written", changes{image("web:2")}, nil, expires},
		{"an image, not written, and the pod crashed", changes{image("web:2")}, changes{notReady, started("w2")}, expires},
		{"an image, written", changes{image("web:2")}, changes{image("web:2")}, kept},
		{"an image, observed", changes{image("web:2")}, changes{image("web:2"), observed}, kept},
		{"an image, observed, not Ready", changes{image("web:2")}, changes{image("web:2"), notReady}, kept},
		{"an image, the container is replaced", changes{image("web:2")}, changes{image("web:2"), started("w2")}, settled},
		{"an image, the container had crashed before the kubelet observed it", changes{image("web:2")}, changes{started("w2"), image("web:2")}, kept},
		{"an image, the container is created", changes{image("web:2")}, changes{image("web:2"), started(""), status(func(p *corev1.Pod) {
			unready(p)
			p.Status.ContainerStatuses = nil
		})}, kept},
		{"an image that was written back", changes{image("web:2")}, changes{image("web:2"), image("web:1"), observed}, expires},
		{"an image, the pod failed", changes{image("web:2")}, changes{image("web:2"), status(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })}, settled},
		{"an image, another container is replaced", changes{image("web:2")},
			changes{image("web:2"), status(func(p *corev1.Pod) { p.Status.InitContainerStatuses[1].ContainerID = "containerd://m2" })}, kept},
		{"a sidecar, written", changes{spec(func(p *corev1.Pod) { p.Spec.InitContainers[1].Image = "mesh:2" })},
			changes{spec(func(p *corev1.Pod) { p.Spec.InitContainers[1].Image = "mesh:2" })}, kept},
		{"a resize with a restart, deferred", changes{memory("1Gi")}, changes{memory("1Gi"), observed}, kept},
		{"a resize with a restart, infeasible", changes{memory("1Gi")}, changes{memory("1Gi"), pending(corev1.PodReasonInfeasible, "0")}, expires},
		{"a resize with a restart, done", changes{memory("1Gi")}, changes{memory("1Gi"), started("w2")}, settled},
		{"a resize of the pod with a restart, deferred", changes{podMemory("1Gi")}, changes{podMemory("1Gi"), observed}, kept},
		{"a resize of the pod with a restart, infeasible", changes{podMemory("1Gi")}, changes{podMemory("1Gi"), pending(corev1.PodReasonInfeasible, "0")}, expires},
		{"a resize of the pod with a restart, done", changes{podMemory("1Gi")}, changes{podMemory("1Gi"), started("w2")}, settled},
		{"an image beside an infeasible resize", changes{image("web:2")}, changes{memory("1Gi"), image("web:2"), pending(corev1.PodReasonInfeasible, "0")}, kept},
		{"a deadline, not written", changes{deadlineAfter(3600)}, nil, expires},
		{"a deadline, written", changes{deadlineAfter(3600)}, changes{deadlineAfter(3600), observed}, kept},
		{"a deadline, reached", changes{deadlineAfter(3600)}, changes{deadlineAfter(3600), status(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })}, settled},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := runningPod()
			now := runningPod(tc.then...)
			effects := EffectsOf(before, runningPod(tc.requested...))
			if len(effects) != 1 {
				t.Fatalf("effects are %v", effects)
			}
			checkCharge(t, effects, now, map[string][2]bool{kept: {true, true}, settled: {false, false}, expires: {true, false}}[tc.want])
		})
	}
}

// Until the container is replaced, it runs with what it had before the first change. A
// change back to that leaves the kubelet nothing to do; a change to something else, or one
// that was not made because another webhook denied it, leaves the effect of the first one.
func TestTheChargeOfSeveralChangesIsComparedWithWhatTheContainerRunsWith(t *testing.T) {
	type changes = []func(*corev1.Pod)
	observed := status(func(*corev1.Pod) {})
	deferred, infeasible := pending(corev1.PodReasonDeferred, "1Gi"), pending(corev1.PodReasonInfeasible, "1Gi")
	accepted := status(func(p *corev1.Pod) { p.Status.Conditions = p.Status.Conditions[:len(p.Status.Conditions)-1] })
	small, big := memory("1Gi"), memory("64Gi")
	smallPod, bigPod := podMemory("1Gi"), podMemory("64Gi")
	infeasiblePod := status(func(p *corev1.Pod) {
		pending(corev1.PodReasonInfeasible, "0")(p)
		p.Status.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}
	})
	kept, settled, expires := [2]bool{true, true}, [2]bool{false, false}, [2]bool{true, false}
	for _, tc := range []struct {
		name string
		// charged are the pods before and after each request whose charge was not removed.
		charged [][2]changes
		now     changes
		want    [2]bool
	}{
		{"an image, changed back", [][2]changes{{nil, {image("web:2")}}, {{image("web:2")}, {image("web:2"), image("web:1")}}},
			changes{image("web:2"), image("web:1"), observed}, expires},
		{"an image, changed back while the kubelet perhaps replaces the container", [][2]changes{{nil, {image("web:2")}}, {{image("web:2")}, {image("web:2"), image("web:1")}}},
			changes{image("web:2"), observed, image("web:1")}, kept},
		{"an image, made, then one that was denied", [][2]changes{{nil, {image("web:2")}}, {{image("web:2")}, {image("web:2"), image("web:3")}}},
			changes{image("web:2"), observed}, kept},
		{"an image, made, then one that was denied, and the container is replaced", [][2]changes{{nil, {image("web:2")}}, {{image("web:2")}, {image("web:2"), image("web:3")}}},
			changes{image("web:2"), started("w2")}, settled},
		{"an image, and a restart of the container", [][2]changes{{nil, {image("web:2")}}, {{image("web:2")}, nil}}, changes{image("web:2"), observed}, kept},
		{"an image, changed back when the container is replaced", [][2]changes{{nil, {image("web:2")}}, {{image("web:2"), started("w2")}, {image("web:2"), started("w2"), image("web:1")}}},
			changes{image("web:2"), started("w2"), image("web:1"), observed}, kept},
		{"a deadline, made, then one that was denied", [][2]changes{{nil, {deadlineAfter(3600)}}, {{deadlineAfter(3600)}, {deadlineAfter(60)}}},
			changes{deadlineAfter(3600), observed}, kept},
		{"a deferred resize, changed back", [][2]changes{{{small}, {small, big}}, {{small, big, deferred}, {small, big, deferred, small}}},
			changes{small, big, deferred, small, accepted}, expires},
		{"an infeasible resize, changed back", [][2]changes{{{small}, {small, big}}, {{small, big, infeasible}, {small, big, infeasible, small}}},
			changes{small, big, infeasible, small, accepted}, expires},
		{"an infeasible resize, refunded, changed back", [][2]changes{{{small, big, infeasible}, {small, big, infeasible, small}}},
			changes{small, big, infeasible, small, accepted}, expires},
		{"an infeasible resize, refunded, changed back, and the status has another format", [][2]changes{{{big, pending(corev1.PodReasonInfeasible, "500000Ki")}, {memory("512M")}}},
			changes{memory("512M"), observed}, expires},
		{"an infeasible resize, refunded, changed to something else", [][2]changes{{{small, big, infeasible}, {small, big, infeasible, memory("2Gi")}}},
			changes{small, big, infeasible, memory("2Gi"), accepted}, kept},
		{"an infeasible resize, refunded, changed to something else, and the container is replaced", [][2]changes{{{small, big, infeasible}, {small, big, infeasible, memory("2Gi")}}},
			changes{small, big, infeasible, memory("2Gi"), accepted, started("w2")}, settled},
		{"an infeasible resize of the pod, refunded, changed back", [][2]changes{{{smallPod, bigPod, infeasiblePod}, {smallPod, bigPod, infeasiblePod, smallPod}}},
			changes{smallPod, bigPod, infeasiblePod, smallPod, accepted}, expires},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var effects []Effect
			for _, pods := range tc.charged {
				before := runningPod(pods[0]...)
				of := EffectsOf(before, runningPod(pods[1]...))
				if pods[1] == nil {
					of = EffectsOfRestart(before, []string{"web"}, Restart{})
				}
				effects = mergeEffects(effects, of)
			}
			checkCharge(t, effects, runningPod(tc.now...), tc.want)
		})
	}
}

// checkCharge checks whether a charge is kept before and after it expires.
func checkCharge(t *testing.T, effects []Effect, now *corev1.Pod, want [2]bool) {
	t.Helper()
	for i, expired := range []bool{false, true} {
		b := budgetWith(0)
		b.Spec = maxUnavailable("1")
		b.Status.UnavailablePods = map[string]string{"a": Entry{"5", "uid-a", "7", effects}.String()}
		d := Derive(b, Observed{Pods: []*corev1.Pod{now}, Total: 1, ResourceVersion: "90000", ExistsUncovered: never[types.UID],
			Expired: func(string) bool { return expired }, KeepSettled: never[string]})
		if kept := len(d.Unavailable) > 0; kept != want[i] {
			t.Errorf("expired %v: kept %v", expired, kept)
		}
		if refunded := d.Refunded > 0; refunded != (expired && want[0] && !want[1]) {
			t.Errorf("expired %v: refunded %v", expired, refunded)
		}
	}
}

func TestWhatAnInPlaceChangeReplaces(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		want   []string
	}{
		"nothing":                     {func(*corev1.Pod) {}, nil},
		"an image":                    {image("web:2"), []string{"web"}},
		"a sidecar":                   {func(p *corev1.Pod) { p.Spec.InitContainers[1].Image = "mesh:2" }, []string{"mesh"}},
		"a completed init container":  {func(p *corev1.Pod) { p.Spec.InitContainers[0].Image = "init:2" }, nil},
		"memory, which restarts":      {memory("1Gi"), []string{"web"}},
		"the memory limit of the pod": {podMemory("1Gi"), []string{"web"}},
		"the memory request of the pod": {func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}
		}, nil},
		"CPU, which does not restart": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		}, nil},
		"a deadline": {deadlineAfter(1), []string{""}},
		"two images": {func(p *corev1.Pod) { p.Spec.Containers[0].Image, p.Spec.InitContainers[1].Image = "web:2", "mesh:2" }, []string{"mesh", "web"}},
	} {
		var got []string
		for _, e := range EffectsOf(runningPod(), runningPod(tc.change)) {
			got = append(got, e.Container)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// A restart does not change the spec. Simulated pods have no IDs of containers.
func TestTheChargeOfARestartEndsWhenTheContainerIsReplaced(t *testing.T) {
	effects := EffectsOfRestart(runningPod(), []string{"web"}, Restart{})
	checkCharge(t, effects, runningPod(), [2]bool{true, false})
	checkCharge(t, effects, runningPod(status(func(p *corev1.Pod) { unready(p) })), [2]bool{true, false})
	checkCharge(t, effects, runningPod(started("w2")), [2]bool{false, false})
	if all := EffectsOfRestart(runningPod(started("")), []string{"other"}, Restart{}); len(all) > 0 {
		t.Errorf("effects of an unknown container are %v", all)
	}
	if all := EffectsOf(pod("a", "5"), pod("a", "5")); len(all) > 0 {
		t.Errorf("effects without IDs are %v", all)
	}
}
