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
		"only requests":                        {[]corev1.Container{app("1", ""), app("200m", "")}, "200m", "0"},
		"a small request":                      {[]corev1.Container{app("1", ""), app("20m", "")}, "50m", "0"},
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

// A LimitRange with a minimum, and a quota, need these values in each container.
func TestTheInitContainerHasTheSmallestRequestsOfTheAppContainers(t *testing.T) {
	list := func(memory, storage string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory), corev1.ResourceEphemeralStorage: resource.MustParse(storage)}
	}
	for name, tc := range map[string]struct {
		apps                            []corev1.ResourceRequirements
		memory, storage, storageMaximum string
	}{
		"none":                {[]corev1.ResourceRequirements{{}}, "32Mi", "0", "0"},
		"requests":            {[]corev1.ResourceRequirements{{Requests: list("1Gi", "2Gi")}, {Requests: list("128Mi", "1Gi")}}, "128Mi", "1Gi", "0"},
		"requests and limits": {[]corev1.ResourceRequirements{{Requests: list("1Gi", "1Gi"), Limits: list("4Gi", "3Gi")}, {Requests: list("2Gi", "2Gi"), Limits: list("2Gi", "2Gi")}}, "1Gi", "1Gi", "2Gi"},
		"only limits":         {[]corev1.ResourceRequirements{{Limits: list("64Mi", "1Gi")}}, "64Mi", "1Gi", "1Gi"},
		"less memory":         {[]corev1.ResourceRequirements{{Requests: list("16Mi", "1Gi")}}, "32Mi", "1Gi", "0"},
		"one without":         {[]corev1.ResourceRequirements{{Requests: list("1Gi", "1Gi"), Limits: list("1Gi", "1Gi")}, {}}, "32Mi", "0", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			var apps []corev1.Container
			for _, r := range tc.apps {
				apps = append(apps, corev1.Container{Resources: r})
			}
			got := resources(apps)
			for what, pair := range map[string][2]resource.Quantity{
				"memory request":  {*got.Requests.Memory(), resource.MustParse(tc.memory)},
				"memory limit":    {*got.Limits.Memory(), resource.MustParse(tc.memory)},
				"storage request": {*got.Requests.StorageEphemeral(), resource.MustParse(tc.storage)},
				"storage limit":   {*got.Limits.StorageEphemeral(), resource.MustParse(tc.storageMaximum)},
			} {
				if pair[0].Cmp(pair[1]) != 0 {
					t.Errorf("%s %s, want %s", what, &pair[0], &pair[1])
				}
			}
		})
	}
}
