package podmeta

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOnlyAValueOfOneToFourAddressesAnnouncesThem(t *testing.T) {
	for value, want := range map[string][]string{
		"10.0.0.1":                                {"10.0.0.1"},
		"10.0.0.1/32":                             {"10.0.0.1"},
		"fd00:0::1/128, 10.0.0.1":                 {"10.0.0.1", "fd00::1"},
		"10.0.0.2,10.0.0.1":                       {"10.0.0.1", "10.0.0.2"},
		"10.0.0.1,10.0.0.1":                       {"10.0.0.1"},
		"1.0.0.1,1.0.0.2,1.0.0.3,1.0.0.4":         {"1.0.0.1", "1.0.0.2", "1.0.0.3", "1.0.0.4"},
		"1.0.0.1,1.0.0.2,1.0.0.3,1.0.0.4,1.0.0.5": nil,
		"":                nil,
		",":               nil,
		"10.0.0.1,":       nil,
		"10.0.0.1,web":    nil,
		"10.0.0.0/24":     nil,
		"10.0.0.1/":       nil,
		"10.0.0.1/032":    nil,
		"10.0.0.1/128":    nil,
		"fd00::1/32":      nil,
		"fe80::1%eth0":    nil,
		"::ffff:10.0.0.1": nil,
		"0.0.0.0":         nil,
		"::":              nil,
		"224.0.0.1":       nil,
		"010.0.0.1":       nil,
		"[\"10.0.0.1\"]":  nil,
		strings.Repeat(" ", maxAnnouncedLength) + "10.0.0.1": nil,
	} {
		if diff := cmp.Diff(want, ParseAnnounced(value)); diff != "" {
			t.Errorf("%q: %s", value, diff)
		}
	}
}

// FuzzParseAnnounced: each result is at most four different, sorted addresses in canonical form, and
// is its own announcement.
func FuzzParseAnnounced(f *testing.F) {
	for _, seed := range []string{"10.0.0.1/32", "fd00::1/128,10.0.0.1", "10.0.0.0/8", "fe80::1%eth0", "::ffff:1.2.3.4", " , "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		ips := ParseAnnounced(value)
		if len(ips) > maxAnnounced || !slices.IsSorted(ips) || len(slices.Compact(slices.Clone(ips))) != len(ips) {
			t.Errorf("%q: %v", value, ips)
		}
		for _, ip := range ips {
			if a, err := netip.ParseAddr(ip); err != nil || a.String() != ip || a.Unmap() != a || a.Zone() != "" {
				t.Errorf("%q: address %q, %v", value, ip, err)
			}
		}
		if again := ParseAnnounced(strings.Join(ips, ",")); len(ips) > 0 && !slices.Equal(again, ips) {
			t.Errorf("%q: %v is parsed as %v", value, ips, again)
		}
	})
}
