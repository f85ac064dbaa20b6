package submit

import (
	"time"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// maxAnswers is the maximum number of cached answers, and of unstored answers of a Finisher.
const maxAnswers = 10000

// cachedAnswer returns the time of the cached answer to the first finish of the batch.
func (f *function) cachedAnswer(p *v1alpha1.ChangePod) (time.Time, bool) {
	s := p.Status.SubmissionOf(v1alpha1.StagePost)
	if s == nil || s.Attempts != 1 {
		return time.Time{}, false
	}
	at, ok := f.answers.Get(p.UID)
	if !ok {
		return time.Time{}, false
	}
	return at.(time.Time), true
}
