package podmeta

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxAnnounced is how many addresses an annotation may announce, as many as the centre accepts.
	maxAnnounced = 4
	// maxAnnouncedLength is the maximum length of the annotation's value in bytes.
	maxAnnouncedLength = 256
)

// ParseAnnounced returns the addresses that a CNI plugin announces in an annotation, sorted as
// those of IPs. The value has one to four addresses, separated by commas. As Calico writes
// them, they may be networks of one address, such as 10.0.0.1/32. A value with anything else
// announces nothing.
func ParseAnnounced(value string) []string {
	if len(value) > maxAnnouncedLength {
		return nil
	}
	var ips []string
	for item := range strings.SplitSeq(value, ",") {
		text, bits, isNetwork := strings.Cut(strings.TrimSpace(item), "/")
		ip, err := netip.ParseAddr(text)
		switch {
		case err != nil || ip.Zone() != "" || ip.Is4In6() || ip.IsUnspecified() || ip.IsMulticast():
			return nil
		case isNetwork && bits != strconv.Itoa(ip.BitLen()):
			return nil
		}
		ips = append(ips, ip.String())
	}
	slices.Sort(ips)
	if ips = slices.Compact(ips); len(ips) > maxAnnounced {
		return nil
	}
	return ips
}
