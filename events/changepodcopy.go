package events

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// A small ChangePod can be copied into an event about it. The copy saves its receiver a read:
// the receiver decides on it and writes by compare-and-swap, which fails if the copy is outdated.
// Without such a write, the receiver must read the ChangePod.

// changePodCopy checks the copy of the ChangePod of an event, if there is one.
func (c *checker) changePodCopy(p *v1alpha1.ChangePod, namespace, name string, uid types.UID) {
	if p != nil && (p.Namespace != namespace || p.Name != name || p.UID != uid || p.ResourceVersion == "") {
		c.invalid("changePod", p.Namespace+"/"+p.Name, "must be the ChangePod of the event, with its uid and a resourceVersion")
	}
}

// copyWithin returns the copy, or nil if the limit of messages shows that the event is too
// large.
func copyWithin(limit int, p *v1alpha1.ChangePod) *v1alpha1.ChangePod {
	if limit < MaxText {
		return nil
	}
	return p
}
