package chaos

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/test/provider"
)

func TestExactlyTheExistingPodsHaveAGrant(t *testing.T) {
	grant := func(pod, ip string) provider.Entry { return provider.Entry{Pod: pod, IP: ip, Permission: "p"} }
	for name, tc := range map[string]struct {
		want   map[string]string
		grants []provider.Entry
		out    []string
	}{
		"one each":                 {map[string]string{"a": "1", "b": "2"}, []provider.Entry{grant("a", "1"), grant("b", "2")}, nil},
		"one is missing":           {map[string]string{"a": "1", "b": "2"}, []provider.Entry{grant("a", "1")}, []string{"pod b has 0 grants, want 1"}},
		"another address":          {map[string]string{"a": "1"}, []provider.Entry{grant("a", "2")}, []string{"pod a at 1 has a grant for 2"}},
		"two of one pod":           {map[string]string{"a": "1"}, []provider.Entry{grant("a", "1"), grant("a", "1")}, []string{"pod a has 2 grants, want 1"}},
		"one that was not revoked": {map[string]string{"a": "1"}, []provider.Entry{grant("a", "1"), grant("b", "2")}, []string{"pod b does not exist and has a grant for 2"}},
		"a pod of another run":     {nil, []provider.Entry{grant("other", "1")}, nil},
		"all are revoked":          {nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewGrants()
			g.Observe(podOf("a", true, false))
			g.Observe(podOf("b", true, false))
			if diff := cmp.Diff(tc.out, g.Violations(tc.want, tc.grants)); diff != "" {
				t.Error("(-want +got)", diff)
			}
		})
	}
}
