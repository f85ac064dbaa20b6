package permission

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
		"no requests and limits":               {[]corev1.Container{{}}, "50m", "0"},
		"only requests":                        {[]corev1.Container{app("1", "")}, "50m", "0"},
		"one of two containers has a limit":    {[]corev1.Container{app("1", "2"), {}}, "50m", "0"},
		"a Guaranteed pod":                     {[]corev1.Container{app("2", "2")}, "2", "2"},
		"a Guaranteed pod with two containers": {[]corev1.Container{app("1", "1"), app("3", "3")}, "3", "3"},
		"a Burstable pod with limits":          {[]corev1.Container{app("100m", "500m"), app("200m", "2")}, "200m", "2"},
		"a limit without a request":            {[]corev1.Container{app("", "500m")}, "500m", "500m"},
		"a limit of zero":                      {[]corev1.Container{app("", "0")}, "50m", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			got := resources(tc.apps)
			if got.Requests.Cpu().Cmp(resource.MustParse(tc.request)) != 0 || got.Limits.Cpu().Cmp(resource.MustParse(tc.limit)) != 0 {
				t.Errorf("request %s, limit %s; want %s, %s", got.Requests.Cpu(), got.Limits.Cpu(), tc.request, tc.limit)
			}
			if got.Requests.Memory().Cmp(*got.Limits.Memory()) != 0 || got.Limits.Memory().IsZero() {
				t.Errorf("memory: request %s, limit %s", got.Requests.Memory(), got.Limits.Memory())
			}
		})
	}
}
