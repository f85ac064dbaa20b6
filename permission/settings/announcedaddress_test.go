package settings

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// The invalid ConfigMap, or its deletion, may have been meant to switch them off.
func TestAnInvalidConfigMapSwitchesAnnouncedAddressesOff(t *testing.T) {
	s := NewStore()
	on := map[string]string{KeyAnnouncedAddressAnnotation: annotation, KeyAnnouncedAddressWriter: writer}
	for _, step := range []struct {
		name string
		data map[string]string
		want AnnouncedAddress
	}{
		{"set", on, AnnouncedAddress{annotation, writer}},
		{"another setting is invalid", map[string]string{KeyAnnouncedAddressAnnotation: annotation, KeyAnnouncedAddressWriter: writer, KeyCluster: "Shop 1"}, AnnouncedAddress{}},
		{"valid again", on, AnnouncedAddress{annotation, writer}},
		{"removed", nil, AnnouncedAddress{}},
	} {
		s.Update(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Data: step.data})
		if got := s.Get().AnnouncedAddress; got != step.want {
			t.Errorf("%s: %+v, want %+v", step.name, got, step.want)
		}
	}
	s.Update(t.Context(), configMap(on))
	s.Update(t.Context(), nil)
	if got := s.Get().AnnouncedAddress; got != (AnnouncedAddress{}) {
		t.Errorf("after the deletion of the ConfigMap: %+v, want none", got)
	}
}
