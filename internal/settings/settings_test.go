package settings

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

func TestShadowDisablesDenialsHoldsSelfHealingAndAutomaticRollbacks(t *testing.T) {
	object := func(kind v1alpha1.ConfigType, enable bool) *v1alpha1.OpsConfigInfo {
		return &v1alpha1.OpsConfigInfo{
			ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: string(kind)},
			Spec:       v1alpha1.OpsConfigInfoSpec{Type: kind, Enable: enable},
		}
	}
	blocking, shadow := Default(), Default()
	shadow.Shadow, shadow.Blocking, shadow.SelfHealing = true, false, false
	for name, tc := range map[string]struct {
		objects []*v1alpha1.OpsConfigInfo
		want    Settings
	}{
		"disabled by default":            {nil, blocking},
		"disabled":                       {[]*v1alpha1.OpsConfigInfo{object(v1alpha1.ConfigShadow, false)}, blocking},
		"enabled":                        {[]*v1alpha1.OpsConfigInfo{object(v1alpha1.ConfigShadow, true)}, shadow},
		"enabled, with spaces":           {[]*v1alpha1.OpsConfigInfo{object(v1alpha1.ConfigShadow+" ", true)}, shadow},
		"disabled by an older one":       {[]*v1alpha1.OpsConfigInfo{object(v1alpha1.ConfigShadow, false), object(v1alpha1.ConfigShadow+" ", true)}, blocking},
		"enabled together with blocking": {[]*v1alpha1.OpsConfigInfo{object(v1alpha1.ConfigBlocking, true), object(v1alpha1.ConfigAutomaticRollback, true), object(v1alpha1.ConfigShadow, true)}, shadow},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, FromObjects(tc.objects)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
