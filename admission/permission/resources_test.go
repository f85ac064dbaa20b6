package permission

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

func TestTheInitContainerHasTheCPUOfTheLargestAppContainer(t *testing.T) {
	app := func(request, limit string) corev1.Container {
		r := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
		if request != "" {
			r.Requests[corev1.ResourceCPU] = resource.MustParse(request)
		}
		if limit != "" {
			r.Limits[corev1.ResourceCPU] = resource.MustParse(limit)
		}
		return corev1.Container{Resources: r}
	}
	for name, tc := range map[string]struct {
		apps           []corev1.Container
		request, limit string
	}{
		"no requests and limits":               {[]corev1.Container{{}}, "20m", "0"},
		"only requests":                        {[]corev1.Container{app("1", "")}, "20m", "0"},
		"one of two containers has a limit":    {[]corev1.Container{app("1", "2"), {}}, "20m", "0"},
		"a Guaranteed pod":                     {[]corev1.Container{app("2", "2")}, "2", "2"},
		"a Guaranteed pod with two containers": {[]corev1.Container{app("1", "1"), app("3", "3")}, "3", "3"},
		"a Burstable pod with limits":          {[]corev1.Container{app("100m", "500m"), app("200m", "2")}, "200m", "2"},
		"a limit without a request":            {[]corev1.Container{app("", "500m")}, "500m", "500m"},
		"a limit of zero":                      {[]corev1.Container{app("", "0")}, "20m", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			got := resources(tc.apps, nil)
			if got.Requests.Cpu().Cmp(resource.MustParse(tc.request)) != 0 || got.Limits.Cpu().Cmp(resource.MustParse(tc.limit)) != 0 {
				t.Errorf("request %s, limit %s; want %s, %s", got.Requests.Cpu(), got.Limits.Cpu(), tc.request, tc.limit)
			}
			if got.Requests.Memory().Cmp(*got.Limits.Memory()) != 0 || got.Limits.Memory().IsZero() {
				t.Errorf("memory: request %s, limit %s", got.Requests.Memory(), got.Limits.Memory())
			}
		})
	}
}

// The API server rejects a pod whose containers request more than the pod.
func TestTheInitContainerIsWithinTheResourcesOfItsPod(t *testing.T) {
	of := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	for name, tc := range map[string]struct {
		pod  *corev1.ResourceRequirements
		want corev1.ResourceRequirements
	}{
		"none":           {nil, corev1.ResourceRequirements{Requests: of("20m", "32Mi"), Limits: of("0", "32Mi")}},
		"large requests": {&corev1.ResourceRequirements{Requests: of("1", "1Gi")}, corev1.ResourceRequirements{Requests: of("20m", "32Mi"), Limits: of("0", "32Mi")}},
		"small requests": {&corev1.ResourceRequirements{Requests: of("10m", "16Mi")}, corev1.ResourceRequirements{Requests: of("10m", "16Mi"), Limits: of("0", "32Mi")}},
		"small limits":   {&corev1.ResourceRequirements{Limits: of("1", "24Mi")}, corev1.ResourceRequirements{Requests: of("20m", "24Mi"), Limits: of("0", "24Mi")}},
	} {
		p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}, Resources: tc.pod}}
		got := Injection{}.container(&p.Spec).Resources
		for _, n := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, limit := got.Requests[n], got.Limits[n]
			if request.Cmp(tc.want.Requests[n]) != 0 || limit.Cmp(tc.want.Limits[n]) != 0 {
				t.Errorf("%s, %s: request %s, limit %s", name, n, &request, &limit)
			}
		}
	}
}

// A resize of the app container does not change the init container, so it requests no more than it must.
func TestTheInitContainerRequestsTheMinimumOfTheLimitRanges(t *testing.T) {
	big := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi")}
	app := []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: big}}}
	minimum := func(of corev1.LimitType, cpu, memory string) corev1.LimitRangeItem {
		return corev1.LimitRangeItem{Type: of, Min: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}}
	}
	for name, tc := range map[string]struct {
		namespace   string
		items       []corev1.LimitRangeItem
		cpu, memory string
	}{
		"no LimitRange":              {"shop", nil, "20m", "32Mi"},
		"a minimum of pods":          {"shop", []corev1.LimitRangeItem{minimum(corev1.LimitTypePod, "1", "1Gi")}, "20m", "32Mi"},
		"a small minimum":            {"shop", []corev1.LimitRangeItem{minimum(corev1.LimitTypeContainer, "10m", "8Mi")}, "20m", "32Mi"},
		"a minimum":                  {"shop", []corev1.LimitRangeItem{minimum(corev1.LimitTypeContainer, "100m", "128Mi")}, "100m", "128Mi"},
		"two minimums":               {"shop", []corev1.LimitRangeItem{minimum(corev1.LimitTypeContainer, "100m", "256Mi"), minimum(corev1.LimitTypeContainer, "200m", "64Mi")}, "200m", "256Mi"},
		"a minimum of another one's": {"other", []corev1.LimitRangeItem{minimum(corev1.LimitTypeContainer, "100m", "128Mi")}, "20m", "32Mi"},
	} {
		t.Run(name, func(t *testing.T) {
			ranges := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
			if err := ranges.Add(&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: "limits"}, Spec: corev1.LimitRangeSpec{Limits: tc.items}}); err != nil {
				t.Fatal(err)
			}
			least, err := minimumOf(corev1listers.NewLimitRangeLister(ranges), "shop")
			if err != nil {
				t.Fatal(err)
			}
			got := resources(app, least)
			for what, pair := range map[string][2]resource.Quantity{
				"CPU request":    {*got.Requests.Cpu(), resource.MustParse(tc.cpu)},
				"memory request": {*got.Requests.Memory(), resource.MustParse(tc.memory)},
				"memory limit":   {*got.Limits.Memory(), resource.MustParse(tc.memory)},
			} {
				if pair[0].Cmp(pair[1]) != 0 {
					t.Errorf("%s %s, want %s", what, &pair[0], &pair[1])
				}
			}
		})
	}
}
