package changepod

import (
	"time"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/batchstatus"
	"github.com/breakwater-dev/breakwater/internal/settings"
)

// derive returns a copy of the ChangePod with the derived status of a decision, and
// whether anything but updateTime differs.
func derive(c *v1alpha1.ChangePod, d Decision, s settings.Settings, now time.Time) (*v1alpha1.ChangePod, bool) {
	next, changed := batchstatus.Derive(c, batchstatus.State{
		Phase: d.Phase, Message: d.Message, Reason: d.Reason, Detail: d.Detail, HeldUnjudged: d.HeldUnjudged,
	}, s.RuleOfBatch(c), now)
	if st := &next.Status; changed && st.PreTimeoutThreshold == 0 {
		// The values at the first derivation, for people: deadlines follow the current
		// settings. A batch whose verdicts came at once ends without them.
		st.PreTimeoutThreshold = int32(s.PreTimeout / time.Second)
		st.PostTimeOutThreshold = int32(s.PostTimeout / time.Second)
	}
	return next, changed
}
