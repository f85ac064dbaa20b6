package pod

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
)

const (
	creator          = "kube-controller-manager"
	strategic, apply = types.StrategicMergePatchType, types.ApplyPatchType
)

// patch is a write of a client.
type patch struct {
	manager string
	kind    types.PatchType
	body    string
}

// cachedPod returns a pod as the cache has it, after it was created with two containers and
// patched. The fake client records the managedFields with the code of the API server.
func cachedPod(t *testing.T, rewrite func(*corev1.Pod), patches ...patch) *corev1.Pod {
	t.Helper()
	client := fake.NewClientset().CoreV1().Pods("default")
	p, err := client.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", GenerateName: "web-"},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "init", Image: "busybox:1", ImagePullPolicy: corev1.PullAlways}},
			Containers: []corev1.Container{
				{Name: "app", Image: "busybox:1", Env: []corev1.EnvVar{{Name: "A", Value: "a"}}}, {Name: "log", Image: "log:1"},
			},
		},
	}, metav1.CreateOptions{FieldManager: creator})
	for _, by := range patches {
		if err == nil {
			options := metav1.PatchOptions{FieldManager: by.manager}
			if by.kind == apply {
				options.Force = new(true)
			}
			p, err = client.Patch(t.Context(), "web", by.kind, []byte(by.body), options)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if rewrite != nil {
		rewrite(p)
	}
	trimmed, err := Trim(p)
	if err != nil {
		t.Fatal(err)
	}
	twice, err := Trim(trimmed.(*corev1.Pod).DeepCopy())
	if diff := cmp.Diff(trimmed, twice); err != nil || diff != "" {
		t.Error("a second trim changes the pod (-once +twice):", err, diff)
	}
	return trimmed.(*corev1.Pod)
}

func TestTheImagesThatWereChangedInAPodAreCached(t *testing.T) {
	image := func(container, name string) string {
		return `{"spec":{"containers":[{"name":"` + container + `","image":"` + name + `"}]}}`
	}
	applied := func(fields string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"default"},"spec":{"containers":[{"name":"app",` + fields + `}]}}`
	}
	for name, tc := range map[string]struct {
		patches []patch
		rewrite func(*corev1.Pod)
		want    string
	}{
		"it was not changed":      {},
		"another field":           {patches: []patch{{"kubectl-label", strategic, `{"metadata":{"labels":{"a":"b"}}}`}}},
		"an image":                {patches: []patch{{"kubectl-set", strategic, image("app", "evil")}}, want: "app=evil"},
		"an image, and back":      {patches: []patch{{"kubectl-set", strategic, image("app", "evil")}, {"kubectl-edit", strategic, image("app", "busybox:1")}}, want: "app=busybox:1"},
		"two images":              {patches: []patch{{"a", strategic, image("app", "evil")}, {"b", strategic, image("log", "evil:2")}}, want: "app=evil log=evil:2"},
		"that of init":            {patches: []patch{{"kubectl-set", strategic, strings.Replace(image("init", "evil"), "containers", "initContainers", 1)}}, want: "init=evil"},
		"an image, by an Apply":   {patches: []patch{{"kubectl", apply, applied(`"image":"evil"`)}}, want: "app=evil"},
		"resources, by an Apply":  {patches: []patch{{"resizer", apply, applied(`"resources":{"limits":{"cpu":"1"}}`)}}},
		"resources":               {patches: []patch{{"resizer", strategic, `{"spec":{"containers":[{"name":"app","resources":{"limits":{"cpu":"1"}}}]}}`}}},
		"the same image":          {patches: []patch{{"kubectl-set", strategic, image("app", "busybox:1")}}},
		"in place by its creator": {patches: []patch{{creator, strategic, image("app", "busybox:2")}}},
		"a webhook rewrote the images at the creation": {rewrite: func(p *corev1.Pod) {
			p.Spec.Containers[0].Image, p.Spec.InitContainers[0].Image = "mirror/busybox:1", "mirror/busybox:1"
		}, patches: []patch{{"controller", strategic, `{"metadata":{"labels":{"a":"b"}}}`}}},
		"a webhook added a sidecar": {rewrite: func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "sidecar", Image: "sidecar:1"})
		}, patches: []patch{{"kubectl-set", strategic, image("app", "evil")}}, want: "app=evil"},
		"without managedFields": {patches: []patch{{"kubectl-set", strategic, image("app", "evil")}}, rewrite: func(p *corev1.Pod) { p.ManagedFields = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			p := cachedPod(t, tc.rewrite, tc.patches...)
			if got := images(p.Spec); got != tc.want {
				t.Errorf("cached are %q, want %q", got, tc.want)
			}
			if (len(p.ManagedFields) > 0) != (tc.want != "") {
				t.Errorf("cached are %d entries of managedFields", len(p.ManagedFields))
			}
		})
	}
}

// A sidecar that a webhook added has no creator that could lose its image.
func TestTheImageOfAnAddedSidecarThatIsUpdatedInPlaceIsNotCached(t *testing.T) {
	p := cachedPod(t, func(p *corev1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "sidecar", Image: "sidecar:2"})
		p.ManagedFields = append(p.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: "kruise-manager", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:containers":{"k:{\"name\":\"sidecar\"}":{"f:image":{}}}}}`)},
		})
	})
	if got := images(p.Spec); got != "" {
		t.Errorf("cached are %q", got)
	}
}

func TestTheImagesThatWereChangedInAReplicaSetAreCached(t *testing.T) {
	for name, tc := range map[string]struct {
		patches []string
		want    string
	}{
		"it was scaled": {[]string{`{"spec":{"replicas":2}}`}, ""},
		"its image":     {[]string{`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"evil"}]}}}}`, `{"spec":{"replicas":2}}`}, "app=evil"},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset().AppsV1().ReplicaSets("default")
			rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
			rs.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "busybox:1"}}
			rs, err := client.Create(t.Context(), rs, metav1.CreateOptions{FieldManager: creator})
			for _, body := range tc.patches {
				if err == nil {
					rs, err = client.Patch(t.Context(), "web", strategic, []byte(body), metav1.PatchOptions{FieldManager: "kubectl-edit"})
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // a cache may trim an object twice
				if _, err := TrimReplicaSet(rs); err != nil || images(rs.Spec.Template.Spec) != tc.want {
					t.Errorf("cached are %q, %v, want %q", images(rs.Spec.Template.Spec), err, tc.want)
				}
			}
		})
	}
}

func images(spec corev1.PodSpec) string {
	var out []string
	for _, c := range append(spec.InitContainers, spec.Containers...) {
		out = append(out, c.Name+"="+c.Image)
	}
	return strings.Join(out, " ")
}

// The managedFields of a pod have about 5 kB, and each event of a pod is trimmed.
func BenchmarkTrim(b *testing.B) {
	container := `{".":{},"f:env":{".":{}` + strings.Repeat(`,"k:{\"name\":\"A_VARIABLE\"}":{".":{},"f:name":{},"f:value":{}}`, 20) +
		`},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:resources":{},"f:terminationMessagePath":{},"f:volumeMounts":{}}`
	created := `{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":` + container + `,"k:{\"name\":\"log\"}":` + container + `}}}`
	status := `{"f:status":{"f:conditions":{` + strings.TrimSuffix(strings.Repeat(`"k:{\"type\":\"Ready\"}":{".":{},"f:lastProbeTime":{},"f:status":{},"f:type":{}},`, 10), ",") + `}}}`
	for name, fields := range map[string][]string{
		"unchanged": {created, status},
		"changed":   {strings.Replace(created, `"f:image":{},`, "", 1), status, `{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{"f:image":{}}}}}`},
	} {
		p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "a"}, {Name: "log", Image: "b"}}}}
		for _, f := range fields {
			p.ManagedFields = append(p.ManagedFields, metav1.ManagedFieldsEntry{
				Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: &metav1.FieldsV1{Raw: []byte(f)},
			})
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Trim(p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
