package podbreaker

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
)

func TestStaleEntriesAreRemovedFromTheConfigMapsOfTheBreakerOnly(t *testing.T) {
	denied := encode(apply(t, deny(1)).Entry)
	configMap := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "sys", Name: name, Labels: map[string]string{Label: "true"}},
			Data: map[string]string{"ns.gone": denied, "ns.web": denied}}
	}
	client := fake.NewClientset(configMap(PrimaryName), configMap(ShardName("ns.gone")), configMap("other")).CoreV1().ConfigMaps("sys")
	removed, err := RemoveStale(t.Context(), client, zero.Add(time.Hour), func(key string) (types.UID, bool) { return "uid", key == "ns.web" })
	if err != nil || removed != 2 {
		t.Errorf("removed %d entries, %v, want 2", removed, err)
	}
	for name, want := range map[string][]string{PrimaryName: {"ns.web"}, ShardName("ns.gone"): {"ns.web"}, "other": {"ns.gone", "ns.web"}} {
		cm, err := client.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(cm.Data))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// The cache of pods may not have a new pod yet. Without the entry that its holder has just written,
// another caller could begin an attempt at the same time.
func TestOnlyOldEntriesOfPodsThatDoNotExistAreStale(t *testing.T) {
	entry := func(steps ...Request) string { return encode(apply(t, steps...).Entry) }
	held := entry(acquire("a", 0))
	for name, tc := range map[string]struct {
		entry string
		pod   types.UID
		after time.Duration
		want  bool
	}{
		"the pod exists":                           {entry(deny(1)), "uid", 24 * time.Hour, false},
		"no pod, denied recently":                  {entry(deny(1)), "", minEntryAge, false},
		"no pod, denied a while ago":               {entry(deny(1)), "", minEntryAge + 1, true},
		"another pod of the name, denied long ago": {entry(deny(1)), "another", minEntryAge + 1, true},
		"no pod, with a holder":                    {held, "", 0, false},
		"no pod, its holder timed out recently":    {held, "", holdTime + minEntryAge, false},
		"no pod, its holder timed out a while ago": {held, "", holdTime + minEntryAge + 1, true},
		"invalid": {"no", "uid", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			cm := &corev1.ConfigMap{Data: map[string]string{"ns.pod": tc.entry}}
			got := staleKeys(cm, zero.Add(tc.after-minEntryAge), func(string) (types.UID, bool) { return tc.pod, tc.pod != "" })
			if (len(got) > 0) != tc.want {
				t.Errorf("stale keys %v", got)
			}
		})
	}
}
