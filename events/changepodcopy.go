package events

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// MaxCopiedPods is the largest number of pods of a ChangePod that is copied into an event about
// it. It is about as many as fit.
const MaxCopiedPods = 5

// CopyOf returns the copy of a ChangePod for an event about it; nil if it has more pods, or none
// because it is trimmed. The copy saves the receiver a read: the receiver decides on it and writes
// by compare-and-swap, which fails if the copy is outdated. Without such a write, the receiver must
// read the ChangePod.
func CopyOf(p *v1alpha1.ChangePod) *v1alpha1.ChangePod {
	if n := len(p.Spec.PodInfos); n == 0 || n > MaxCopiedPods {
		return nil
	}
	out := *p
	out.ManagedFields = nil
	return &out
}

// changePodCopy checks the copy of the ChangePod of an event, if there is one.
func (c *checker) changePodCopy(p *v1alpha1.ChangePod, namespace, name string, uid types.UID) {
	if p != nil && (p.Namespace != namespace || p.Name != name || p.UID != uid || p.ResourceVersion == "") {
		c.invalid("changePod", p.Namespace+"/"+p.Name, "must be the ChangePod of the event, with its uid and a resourceVersion")
	}
}

// withoutCopy returns data without its copy of a ChangePod, and whether it had one.
func withoutCopy(d Data) (Data, bool) {
	switch v := d.(type) {
	case ChangePodReady:
		had := v.ChangePod != nil
		v.ChangePod = nil
		return v, had
	case ChangePodVerdict:
		had := v.ChangePod != nil
		v.ChangePod = nil
		return v, had
	default:
		return d, false
	}
}
