package settings

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

func TestSettingsOfRollback(t *testing.T) {
	type values struct {
		SelfHealing       bool
		HealAfter         time.Duration
		AutomaticRollback bool
		HistoryLimit      int
	}
	byDefault := values{SelfHealing: true, HealAfter: 2 * time.Minute, HistoryLimit: 10}
	for name, tc := range map[string]struct {
		spec v1alpha1.OpsConfigInfoSpec
		want values
	}{
		"by default": {v1alpha1.OpsConfigInfoSpec{}, byDefault},
		"self-healing with its own threshold": {
			v1alpha1.OpsConfigInfoSpec{Type: v1alpha1.ConfigSelfHealing, Enable: true, Content: "30s"},
			values{SelfHealing: true, HealAfter: 30 * time.Second, HistoryLimit: 10}},
		"self-healing without content keeps the default": {
			v1alpha1.OpsConfigInfoSpec{Type: v1alpha1.ConfigSelfHealing, Enable: true}, byDefault},
		"self-healing disabled": {
			v1alpha1.OpsConfigInfoSpec{Type: v1alpha1.ConfigSelfHealing, Content: "30s"},
			values{HealAfter: 2 * time.Minute, HistoryLimit: 10}},
		"automatic rollback enabled": {
			v1alpha1.OpsConfigInfoSpec{Type: v1alpha1.ConfigAutomaticRollback, Enable: true},
			values{SelfHealing: true, HealAfter: 2 * time.Minute, AutomaticRollback: true, HistoryLimit: 10}},
		"a shorter history": {
			v1alpha1.OpsConfigInfoSpec{Type: v1alpha1.ConfigHistoryLimit, Enable: true, Content: "3"},
			values{SelfHealing: true, HealAfter: 2 * time.Minute, HistoryLimit: 3}},
		"a disabled history limit": {
			v1alpha1.OpsConfigInfoSpec{Type: v1alpha1.ConfigHistoryLimit, Content: "3"}, byDefault},
	} {
		t.Run(name, func(t *testing.T) {
			s := FromObjects([]*v1alpha1.OpsConfigInfo{{
				ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: v1alpha1.SystemNamespace}, Spec: tc.spec,
			}})
			got := values{s.SelfHealing, s.HealAfter, s.AutomaticRollback, s.HistoryLimit}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
