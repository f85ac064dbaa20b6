package settings

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"
)

// AnnouncedAddressDelay is the minimum time from the creation of the policy to the creation of pods
// whose annotation is trusted. Until then an API server may not apply the policy, and anyone may have
// written the annotation.
const AnnouncedAddressDelay = time.Minute

// AnnouncedAddress says which annotation has the addresses of a pod before its status has
// them. The zero value means none.
type AnnouncedAddress struct {
	// Annotation is the key of the annotation.
	Annotation string
	// Writer is the user who alone may write the annotation. Policy
	// breakwater-permission-announced-address denies it to all others.
	Writer string
}

// announcedAddress reads both keys. The policy has the same values as CEL literals, so they are
// not trimmed, and have no quotes and no backslashes.
func (r *reader) announcedAddress(to *AnnouncedAddress) {
	r.known = append(r.known, KeyAnnouncedAddressAnnotation, KeyAnnouncedAddressWriter)
	to.Annotation, to.Writer = r.data[KeyAnnouncedAddressAnnotation], r.data[KeyAnnouncedAddressWriter]
	switch {
	case to.Annotation == "" && to.Writer == "":
		return
	case to.Annotation == "":
		r.invalid(KeyAnnouncedAddressAnnotation, "is required by "+KeyAnnouncedAddressWriter+"; set both, or none")
	case to.Writer == "":
		r.invalid(KeyAnnouncedAddressWriter, "is required by "+KeyAnnouncedAddressAnnotation+"; set both, or none")
	}
	if why := validation.IsQualifiedName(to.Annotation); to.Annotation != "" && len(why) > 0 {
		r.invalid(KeyAnnouncedAddressAnnotation, "must be the key of an annotation, such as cni.projectcalico.org/podIPs: "+strings.Join(why, "; "))
	}
	if strings.ContainsFunc(to.Writer, isNotLiteral) {
		r.invalid(KeyAnnouncedAddressWriter, "must be a username without spaces, quotes, backslashes and control characters, "+
			"such as system:serviceaccount:calico-system:calico-cni-plugin")
	}
}

// isNotLiteral reports whether a character of a username cannot be in a CEL literal as it is, or is not
// visible in it.
func isNotLiteral(c rune) bool {
	return c == ' ' || !unicode.IsPrint(c) || strings.ContainsRune("'\"`\\", c) || c == utf8.RuneError
}
