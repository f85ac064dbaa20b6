package opsconfiginfo

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/settings"
)

// object is an OpsConfigInfo of the system namespace, created at a minute.
func object(name string, minute int, spec v1alpha1.OpsConfigInfoSpec) *v1alpha1.OpsConfigInfo {
	return &v1alpha1.OpsConfigInfo{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: name, Generation: 1,
			CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC))},
		Spec: spec,
	}
}

func TestTheOldestSettingOfATypeTakesEffectIfItIsValid(t *testing.T) {
	type spec = v1alpha1.OpsConfigInfoSpec
	applied := func(message string) Decision {
		return Decision{Applied: true, Reason: "Applied", Message: message}
	}
	elsewhere := object("blocking", 1, spec{Type: "isBlockingUp"})
	elsewhere.Namespace = "default"
	leaving := object("a", 1, spec{Type: "isBranch", Content: "10", Enable: true})
	leaving.DeletionTimestamp = new(metav1.Now())
	wrong := object("a", 1, spec{Type: "isBranch", Content: "many", Enable: true})

	tests := map[string]struct {
		object *v1alpha1.OpsConfigInfo
		others []*v1alpha1.OpsConfigInfo
		want   Decision
	}{
		"a switch that is on": {
			object: object("a", 1, spec{Type: "isBlockingUp", Enable: true}),
			want:   applied("on: a failed check suspends the workload"),
		},
		"a switch that is off": {
			object: object("a", 1, spec{Type: "isBlockingUp"}),
			want:   applied("off: a failed check suspends nothing"),
		},
		"shadow that is on": {
			object: object("a", 1, spec{Type: "shadow", Enable: true}),
			want:   applied("on: the webhooks decide about releases, count and report, but deny none; the controller holds no rollout and rolls back only on request"),
		},
		"shadow that is off": {
			object: object("a", 1, spec{Type: "shadow"}),
			want:   applied("off: releases are denied and held as the other settings say"),
		},
		"batches that are on": {
			object: object("a", 1, spec{Type: "isBranch", Content: "10", Enable: true}),
			want:   applied("on: pods are judged in batches of 10% of the replicas"),
		},
		"batches that are off": {
			object: object("a", 1, spec{Type: "isBranch", Content: "10"}),
			want:   applied("off: each pod is judged on its own"),
		},
		"a value": {
			object: object("a", 1, spec{Type: "pre-timeout", Content: "90s", Enable: true}),
			want:   applied("1m30s"),
		},
		"a policy": {
			object: object("a", 1, spec{Type: "no-verdict", Content: "Hold", Enable: true}),
			want:   applied("Hold"),
		},
		"who must answer": {
			object: object("a", 1, spec{Type: "judges", Content: "server,metrics", Enable: true}),
			want:   applied("server, metrics must answer"),
		},
		"a judge of one's own that must answer": {
			object: object("a", 1, spec{Type: "judges", Content: "server,metricks", Enable: true}),
			want: applied("server, metricks must answer; judges of your own: metricks; each needs its key in Secret external-judge-keys, " +
				"or batches that wait for it stay unjudged"),
		},
		"who must answer by default": {
			object: object("a", 1, spec{Type: "judges", Content: "server"}),
			want:   applied("not enabled: the default applies, every judge that is configured must answer"),
		},
		"who may bypass": {
			object: object("a", 1, spec{Type: "bypass", Content: "Authorized", Enable: true}),
			want:   applied("Authorized"),
		},
		"a value that is not enabled": {
			object: object("a", 1, spec{Type: "wait-threshold", Content: "5s"}),
			want:   applied("not enabled: the default applies, 1m0s"),
		},
		"a release check that is on": {
			object: object("a", 1, spec{Type: "release-check", Enable: true}),
			want:   applied("on: the server checks releases before they are admitted and has 2s to answer"),
		},
		"a release check that is off": {
			object: object("a", 1, spec{Type: "release-check", Content: "3s"}),
			want:   applied("off: the server does not check releases before they are admitted"),
		},
		"a policy of the release check": {
			object: object("a", 1, spec{Type: "release-check-no-verdict", Content: "Fail", Enable: true}),
			want:   applied("Fail"),
		},
		"self-healing that is on": {
			object: object("a", 1, spec{Type: "self-healing", Content: "5m", Enable: true}),
			want:   applied("on: a release is rolled back if one of its pods does not run for 5m0s and none becomes Ready"),
		},
		"self-healing that is off": {
			object: object("a", 1, spec{Type: "self-healing", Content: "5m"}),
			want:   applied("off: no release is rolled back because its pods do not run"),
		},
		"an automatic rollback that is on": {
			object: object("a", 1, spec{Type: "automatic-rollback", Enable: true}),
			want:   applied("on: a release that failed its check is rolled back"),
		},
		"an automatic rollback that is off": {
			object: object("a", 1, spec{Type: "automatic-rollback"}),
			want:   applied("off: no release is rolled back because it failed its check"),
		},
		"in shadow mode nothing is suspended": {
			object: object("a", 1, spec{Type: "isBlockingUp", Enable: true}),
			others: []*v1alpha1.OpsConfigInfo{object("b", 2, spec{Type: "shadow", Enable: true})},
			want:   applied("on, but without effect while shadow is enabled; otherwise a failed check suspends the workload"),
		},
		"in shadow mode nothing is rolled back because its pods do not run": {
			object: object("a", 1, spec{Type: "self-healing", Content: "5m", Enable: true}),
			others: []*v1alpha1.OpsConfigInfo{object("b", 2, spec{Type: "shadow", Enable: true})},
			want: applied("on, but without effect while shadow is enabled; otherwise a release is rolled back if one of its pods does not run for 5m0s " +
				"and none becomes Ready"),
		},
		"an automatic rollback needs a suspension": {
			object: object("a", 1, spec{Type: "automatic-rollback", Enable: true}),
			others: []*v1alpha1.OpsConfigInfo{object("b", 2, spec{Type: "isBlockingUp"})},
			want:   applied("on, but without effect while isBlockingUp is disabled; otherwise a release that failed its check is rolled back"),
		},
		"a switch that is off in shadow mode": {
			object: object("a", 1, spec{Type: "automatic-rollback"}),
			others: []*v1alpha1.OpsConfigInfo{object("b", 2, spec{Type: "shadow", Enable: true})},
			want:   applied("off: no release is rolled back because it failed its check"),
		},
		"shadow mode that is off changes nothing": {
			object: object("a", 1, spec{Type: "automatic-rollback", Enable: true}),
			others: []*v1alpha1.OpsConfigInfo{object("b", 2, spec{Type: "shadow"})},
			want:   applied("on: a release that failed its check is rolled back"),
		},
		"a number of saved templates": {
			object: object("a", 1, spec{Type: "history-limit", Content: "3", Enable: true}),
			want:   applied("at most 3 saved templates per workload"),
		},
		"a number of saved templates that is not enabled": {
			object: object("a", 1, spec{Type: "history-limit", Content: "3"}),
			want:   applied("not enabled: the default applies, at most 10 saved templates per workload"),
		},
		"a number of pods of a Revision": {
			object: object("a", 1, spec{Type: "revision-pods", Content: "3", Enable: true}),
			want:   applied("the first 3 pods of a Revision are judged"),
		},
		"the pods of a Revision that are not enabled": {
			object: object("a", 1, spec{Type: "revision-pods", Content: "3"}),
			want:   applied("not enabled: the default applies, the pods of a Revision that start within 10m0s of its first batch are judged"),
		},
		"an unknown type is invalid": {
			object: object("a", 1, spec{Type: "isBlokingUp", Enable: true}),
			want: Decision{Reason: "Invalid", Message: "unknown type \"isBlokingUp\": spec.type: " +
				"known types are " + strings.Join(v1alpha1.ConfigTypes(), ", ")},
		},
		"a content that does not read is invalid": {
			object: wrong,
			want: Decision{Reason: "Invalid", Message: "invalid content for type isBranch: spec.content: " +
				`"many" is not a percentage of the replicas: write a whole number from 1 to 100`},
		},
		"an object of another namespace does not take effect": {
			object: elsewhere,
			want:   Decision{Reason: "WrongNamespace", Message: "only objects of namespace altershieldoperator-system take effect"},
		},
		"the newer of two of one type is a duplicate": {
			object: object("b", 2, spec{Type: "isBlockingUp"}),
			others: []*v1alpha1.OpsConfigInfo{object("a", 1, spec{Type: "isBlockingUp", Enable: true})},
			want:   Decision{Reason: "Duplicate", Message: "a is older, has the same type isBlockingUp and takes effect instead"},
		},
		"the older of two of one type counts": {
			object: object("b", 1, spec{Type: "isBlockingUp"}),
			others: []*v1alpha1.OpsConfigInfo{object("a", 2, spec{Type: "isBlockingUp", Enable: true})},
			want:   applied("off: a failed check suspends nothing"),
		},
		"an older one that is being deleted makes room": {
			object: object("b", 2, spec{Type: "isBranch", Content: "20", Enable: true}),
			others: []*v1alpha1.OpsConfigInfo{leaving},
			want:   applied("on: pods are judged in batches of 20% of the replicas"),
		},
		"one in another namespace makes no duplicate": {
			object: object("b", 2, spec{Type: "isBlockingUp", Enable: true}),
			others: []*v1alpha1.OpsConfigInfo{elsewhere},
			want:   applied("on: a failed check suspends the workload"),
		},
		"an older one that is invalid still has the type": {
			object: object("b", 2, spec{Type: "isBranch", Content: "20", Enable: true}),
			others: []*v1alpha1.OpsConfigInfo{wrong},
			want:   Decision{Reason: "Duplicate", Message: "a is older, has the same type isBranch and takes effect instead"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Decide(tc.object, append(tc.others, tc.object))); diff != "" {
				t.Error("(-want +got):", diff)
			}
		})
	}
}

func TestEachTypeHasATextForItsEffect(t *testing.T) {
	contents := []string{"", "10", "90s", "Pass", "Recorded", "server"}
	for _, name := range v1alpha1.ConfigTypes() {
		for _, enable := range []bool{true, false} {
			c := object("a", 1, v1alpha1.OpsConfigInfoSpec{Type: v1alpha1.ConfigType(name), Enable: enable})
			i := slices.IndexFunc(contents, func(s string) bool { return v1alpha1.ValidateContent(c.Spec.Type, s) == nil })
			if i < 0 {
				t.Fatalf("no content of this test is valid for type %s", name)
			}
			c.Spec.Content = contents[i]
			if text := effect(c, settings.FromObjects([]*v1alpha1.OpsConfigInfo{c})); text == "" || strings.HasSuffix(text, ", ") {
				t.Errorf("%s with enable %t has the text %q", name, enable, text)
			}
		}
	}
}
