package budget

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// runningPod is pod a with a container, a sidecar and a completed init container.
func runningPod(changes ...func(*corev1.Pod)) *corev1.Pod {
	p := pod("a", "5")
	p.Generation, p.Status.ObservedGeneration = 1, 1
	p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "init:1"}, {Name: "mesh", Image: "mesh:1", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
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

func started(id string) func(*corev1.Pod) {
	return status(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ContainerID = "containerd://" + id })
}

func infeasible(p *corev1.Pod) {
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible})
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
		{"a resize with a restart, infeasible", changes{memory("1Gi")}, changes{memory("1Gi"), status(infeasible)}, expires},
		{"a resize with a restart, done", changes{memory("1Gi")}, changes{memory("1Gi"), started("w2")}, settled},
		{"an image beside an infeasible resize", changes{image("web:2")}, changes{memory("1Gi"), image("web:2"), status(infeasible)}, kept},
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

// checkCharge checks whether a charge is kept before and after it expires.
func checkCharge(t *testing.T, effects []Effect, now *corev1.Pod, want [2]bool) {
	t.Helper()
	for i, expired := range []bool{false, true} {
		b := budgetWith(0)
		b.Spec = maxUnavailable("1")
		b.Status.UnavailablePods = map[string]string{"a": Entry{"5", "uid-a", "7", effects}.String()}
		d := Derive(b, Observed{Pods: []*corev1.Pod{now}, Total: 1, ResourceVersion: "90000", ExistsUncovered: never[types.UID],
			Expired: func(string) bool { return expired }, KeepGone: never[string]})
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
		"nothing":                    {func(*corev1.Pod) {}, nil},
		"an image":                   {image("web:2"), []string{"web"}},
		"a sidecar":                  {func(p *corev1.Pod) { p.Spec.InitContainers[1].Image = "mesh:2" }, []string{"mesh"}},
		"a completed init container": {func(p *corev1.Pod) { p.Spec.InitContainers[0].Image = "init:2" }, nil},
		"memory, which restarts":     {memory("1Gi"), []string{"web"}},
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
	effects := EffectsOfRestart(runningPod(), []string{"web"})
	checkCharge(t, effects, runningPod(), [2]bool{true, false})
	checkCharge(t, effects, runningPod(status(func(p *corev1.Pod) { unready(p) })), [2]bool{true, false})
	checkCharge(t, effects, runningPod(started("w2")), [2]bool{false, false})
	if all := EffectsOfRestart(runningPod(started("")), []string{"other"}); len(all) > 0 {
		t.Errorf("effects of an unknown container are %v", all)
	}
	if all := EffectsOf(pod("a", "5"), pod("a", "5")); len(all) > 0 {
		t.Errorf("effects without IDs are %v", all)
	}
}
