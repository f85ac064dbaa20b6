package permission

import (
	"encoding/json"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/permission/initaction/client"
	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

var testInjection = Injection{Sets: []string{"web", "audit"}, Image: "client:1", Server: "http://server", Deadline: 10 * time.Minute}

func pod(change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{Name: "app", Image: "app"}}},
	}
	if change != nil {
		change(p)
	}
	return p
}

// applyPatch applies a patch as the API server does.
func applyPatch(t *testing.T, p *corev1.Pod, ops any) *corev1.Pod {
	t.Helper()
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	patch, ok := ops.([]byte)
	if !ok {
		if patch, err = json.Marshal(ops); err != nil {
			t.Fatal(err)
		}
	}
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatal(err)
	}
	if raw, err = decoded.Apply(raw); err != nil {
		t.Fatalf("apply %s: %v", patch, err)
	}
	out := &corev1.Pod{}
	if err := json.Unmarshal(raw, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestInjectionIsCompleteAndIdempotent(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	for name, change := range map[string]func(*corev1.Pod){
		"a plain pod":                nil,
		"a pod without labels":       func(p *corev1.Pod) { p.Labels = nil },
		"a pod with annotations":     func(p *corev1.Pod) { p.Annotations = map[string]string{podmeta.PermissionSetAnnotation: "web, audit"} },
		"a pod with init containers": func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "a"}, {Name: "b"}} },
		"a pod with a sidecar":       func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "a", RestartPolicy: &always}} },
		"a pod with volumes":         func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: "data"}} },
		"a pod with another init container first": func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "a"}, testInjection.container(&corev1.PodSpec{})}
		},
		"a pod with a forged container": func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: protocol.ContainerName, Image: "true", Command: []string{"true"}}}
		},
		"a pod with a forged volume": func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: podmeta.TokenVolume}} },
		"a pod with a forged label":  func(p *corev1.Pod) { p.Labels[podmeta.Label] = "no" },
	} {
		t.Run(name, func(t *testing.T) {
			p := pod(change)
			got := applyPatch(t, p, testInjection.Patch(p))
			if diff := cmp.Diff(testInjection.container(&corev1.PodSpec{}), got.Spec.InitContainers[0], cmp.Comparer(sameQuantity)); diff != "" {
				t.Error(diff)
			}
			var users []string
			for _, c := range p.Spec.InitContainers {
				if c.Name != protocol.ContainerName {
					users = append(users, c.Name)
				}
			}
			var kept []string
			for _, c := range got.Spec.InitContainers[1:] {
				kept = append(kept, c.Name)
			}
			if diff := cmp.Diff(users, kept); diff != "" {
				t.Errorf("init containers of the user: %s", diff)
			}
			if got.Labels[podmeta.Label] != podmeta.LabelRequired || got.Annotations[podmeta.PermissionSetAnnotation] != "web,audit" {
				t.Errorf("labels %v, annotations %v", got.Labels, got.Annotations)
			}
			if again := testInjection.Patch(got); len(again) > 0 {
				t.Errorf("second patch: %+v", again)
			}
			if sets := podmeta.Sets(got); cmp.Diff(testInjection.Sets, sets) != "" {
				t.Errorf("the server reads %v", sets)
			}
		})
	}
}

// The plugins of the API server run again after the webhook, and the webhook after them.
// AlwaysPullImages, LimitRanger and SecurityContextConstraint then deny a pod from which the webhook removes what they set.
func TestTheInitContainerKeepsWhatAdmissionPluginsSet(t *testing.T) {
	plugins := func(c *corev1.Container) {
		c.ImagePullPolicy = corev1.PullAlways
		c.Resources.Requests[corev1.ResourceEphemeralStorage] = resource.MustParse("1Mi")
		c.Resources.Limits[corev1.ResourceEphemeralStorage] = resource.MustParse("2Mi")
		c.Resources.Limits[corev1.ResourceCPU] = resource.MustParse("1")
		c.SecurityContext.RunAsUser, c.SecurityContext.RunAsGroup = new(int64(1000650000)), new(int64(1000650000))
	}
	want := testInjection.container(&corev1.PodSpec{})
	plugins(&want)
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		equal  bool // the webhook changes nothing
	}{
		"only what plugins set": {func(*corev1.Pod) {}, true},
		"another init container before it": {func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "a"}, p.Spec.InitContainers[0]}
		}, false},
		"another image": {func(p *corev1.Pod) { p.Spec.InitContainers[0].Image = "other" }, false},
		"another request of CPU": {func(p *corev1.Pod) {
			p.Spec.InitContainers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1m")
		}, false},
		"a claim": {func(p *corev1.Pod) { p.Spec.InitContainers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := pod(nil)
			p = applyPatch(t, p, testInjection.Patch(p))
			plugins(&p.Spec.InitContainers[0])
			tc.change(p)
			ops := testInjection.Patch(p)
			got := applyPatch(t, p, ops)
			if diff := cmp.Diff(want, got.Spec.InitContainers[0], cmp.Comparer(sameQuantity)); diff != "" || (len(ops) == 0) != tc.equal {
				t.Errorf("%d operations (-want +got):\n%s", len(ops), diff)
			}
			if again := testInjection.Patch(got); len(again) > 0 {
				t.Errorf("third patch: %+v", again)
			}
		})
	}
	p := pod(func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: protocol.ContainerName, ImagePullPolicy: corev1.PullNever}}
	})
	if got := applyPatch(t, p, testInjection.Patch(p)).Spec.InitContainers[0].ImagePullPolicy; got != corev1.PullIfNotPresent {
		t.Errorf("imagePullPolicy %s", got)
	}
}

func sameQuantity(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }

// SecurityContextConstraint denies a pod with a user outside the range of its namespace.
func TestTheInitContainerNamesAUserOnlyIfTheUserOfThePodIsRoot(t *testing.T) {
	for name, tc := range map[string]struct {
		pod  *corev1.PodSecurityContext
		want *int64
	}{
		"no securityContext": {nil, nil},
		"no user":            {&corev1.PodSecurityContext{RunAsGroup: new(int64(0))}, nil},
		"another user":       {&corev1.PodSecurityContext{RunAsUser: new(int64(1000650000))}, nil},
		"root":               {&corev1.PodSecurityContext{RunAsUser: new(int64(0))}, new(nonRootUser)},
	} {
		t.Run(name, func(t *testing.T) {
			s := testInjection.container(&corev1.PodSpec{SecurityContext: tc.pod}).SecurityContext
			if diff := cmp.Diff([]*int64{tc.want, tc.want}, []*int64{s.RunAsUser, s.RunAsGroup}); diff != "" || !*s.RunAsNonRoot {
				t.Errorf("%+v: %s", s, diff)
			}
		})
	}
}

func TestTheInitContainerIsRestrictedAndHasResources(t *testing.T) {
	c := testInjection.container(&corev1.PodSpec{})
	s := c.SecurityContext
	if !*s.RunAsNonRoot || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || s.Capabilities.Drop[0] != "ALL" || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("%+v", s)
	}
	if c.Resources.Requests.Cpu().IsZero() || c.Resources.Limits.Memory().IsZero() {
		t.Errorf("%+v", c.Resources)
	}
	env := map[string]string{}
	for _, e := range c.Env {
		env[e.Name] = e.Value
	}
	config, err := client.ReadConfig(func(key string) string { return env[key] })
	if err != nil || config.Deadline != 10*time.Minute || config.TokenFile != "/var/run/secrets/stke.io/init-action/token" {
		t.Errorf("the client reads %+v, %v", config, err)
	}
}
