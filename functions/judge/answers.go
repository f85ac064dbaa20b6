package judge

import (
	"time"

	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/judge/samples"
)

const (
	// answerTTL is how long an answer of Prometheus is reused. All batches of a release send
	// the same queries, so the number of queries does not grow with the number of batches. It is
	// longer than the 20 s between two looks: from the end of the analysis on, each look sends the
	// same queries, and one whose time was too short for all of them is completed by the next.
	answerTTL = 30 * time.Second
	// maxAnswerBytes is the maximum size of all answers. GOMEMLIMIT of config/judge also has room for those
	// that are read, and for those that a look still uses.
	maxAnswerBytes = 256 << 20
	// pointBytes is the size of a sample, and seriesBytes about that of the labels of a series.
	pointBytes, seriesBytes = 16, 1 << 10
)

// answers has the answers of Prometheus of the last answerTTL. Others are freed: later looks
// have later ranges, and never read them.
type answers struct {
	clock clock.PassiveClock
	byKey map[string][]samples.Series
	queue []answer // oldest first
	bytes int
}

// answer is the key of an answer, its size and the time until which it is reused.
type answer struct {
	key   string
	bytes int
	until time.Time
}

// get returns the answer of a query.
func (a *answers) get(key string) ([]samples.Series, bool) {
	a.free()
	series, ok := a.byKey[key]
	return series, ok
}

// add adds the answer of a query that has none.
func (a *answers) add(key string, series []samples.Series) {
	n := len(series) * seriesBytes
	for _, s := range series {
		n += len(s.Points) * pointBytes
	}
	a.byKey[key] = series
	a.queue = append(a.queue, answer{key: key, bytes: n, until: a.clock.Now().Add(answerTTL)})
	a.bytes += n
	a.free()
}

// free frees the answers that are too old, and the oldest ones while all are too large.
func (a *answers) free() {
	now := a.clock.Now()
	for len(a.queue) > 0 && (!now.Before(a.queue[0].until) || a.bytes > maxAnswerBytes) {
		delete(a.byKey, a.queue[0].key)
		a.bytes -= a.queue[0].bytes
		a.queue = a.queue[1:]
	}
}
