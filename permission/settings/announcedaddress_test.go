package settings

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

const (
	annotation = "cni.projectcalico.org/podIPs"
	writer     = "system:serviceaccount:calico-system:calico-cni-plugin"
)

func TestTheAnnouncedAddressNeedsAnAnnotationAndItsWriter(t *testing.T) {
	for name, tc := range map[string]struct {
		annotation, writer string
		// want is the key that the error names, empty if there is none.
		want string
	}{
		"neither":                     {"", "", ""},
		"both":                        {annotation, writer, ""},
		"no writer":                   {annotation, "", KeyAnnouncedAddressWriter},
		"no annotation":               {"", writer, KeyAnnouncedAddressAnnotation},
		"an invalid key":              {"pod IPs", writer, KeyAnnouncedAddressAnnotation},
		"a key with a space after it": {annotation + " ", writer, KeyAnnouncedAddressAnnotation},
		"a writer with a line feed":   {annotation, writer + "\n", KeyAnnouncedAddressWriter},
		"a writer of spaces":          {annotation, "  ", KeyAnnouncedAddressWriter},
		"a writer with a quote":       {annotation, "o'brien", KeyAnnouncedAddressWriter},
		"a writer with two quotes":    {annotation, `"cni"`, KeyAnnouncedAddressWriter},
		"a writer with a backslash":   {annotation, `cni\x27`, KeyAnnouncedAddressWriter},
		"a writer with a control":     {annotation, "cni\x00", KeyAnnouncedAddressWriter},
		"a writer that is no UTF-8":   {annotation, "cni\xff", KeyAnnouncedAddressWriter},
		"an invisible character":      {annotation, "cni\u200b", KeyAnnouncedAddressWriter},
		"a key with a quote":          {"x' + 'y", writer, KeyAnnouncedAddressAnnotation},
		"an email address":            {annotation, "cni+é@example.com", ""},
	} {
		got, _, err := Parse(map[string]string{KeyAnnouncedAddressAnnotation: tc.annotation, KeyAnnouncedAddressWriter: tc.writer})
		switch {
		case tc.want == "" && (err != nil || got.AnnouncedAddress != AnnouncedAddress{Annotation: tc.annotation, Writer: tc.writer}):
			t.Errorf("%s: %+v, %v", name, got.AnnouncedAddress, err)
		case tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.want+" ")):
			t.Errorf("%s: %v does not begin with %s", name, err, tc.want)
		}
	}
}

// A pod may have had the annotation before the policy denied it.
func TestOnlyTheAnnotationOfPodsCreatedAfterTheLastChangeOfTheSettingsIsTrusted(t *testing.T) {
	start := time.Unix(1<<30, 0)
	c := clocktesting.NewFakePassiveClock(start)
	s := NewStore()
	s.clock = c
	update := func(at time.Duration, version string, data map[string]string) {
		c.SetTime(start.Add(at))
		s.Update(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: version}, Data: data})
	}
	on := map[string]string{KeyAnnouncedAddressAnnotation: annotation, KeyAnnouncedAddressWriter: writer}
	trustedFrom := func(step string, want AnnouncedAddress) {
		t.Helper()
		if got := s.Get().AnnouncedAddress; got != want {
			t.Errorf("%s: %+v, want %+v", step, got, want)
		}
	}
	trustedFrom("at the start", AnnouncedAddress{})
	update(0, "1", on)
	trustedFrom("set", AnnouncedAddress{annotation, writer, start.Add(AnnouncedAddressDelay)})
	update(time.Hour, "1", on)
	trustedFrom("listed again", AnnouncedAddress{annotation, writer, start.Add(AnnouncedAddressDelay)})
	update(time.Hour, "3", on)
	trustedFrom("changed, perhaps twice", AnnouncedAddress{annotation, writer, start.Add(time.Hour + AnnouncedAddressDelay)})
	update(2*time.Hour, "4", map[string]string{KeyAnnouncedAddressAnnotation: annotation, KeyAnnouncedAddressWriter: writer, KeyCluster: "Shop 1"})
	trustedFrom("another setting is invalid", AnnouncedAddress{})
	update(3*time.Hour, "5", on)
	trustedFrom("valid again", AnnouncedAddress{annotation, writer, start.Add(3*time.Hour + AnnouncedAddressDelay)})
	s.Update(t.Context(), nil)
	trustedFrom("the ConfigMap is deleted", AnnouncedAddress{})
}
