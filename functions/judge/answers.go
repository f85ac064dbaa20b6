package judge

import (
	"container/list"
	"time"

	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/judge/samples"
)

const (
	// answerTTL is how long an answer of Prometheus is kept after it was read or reused. All batches of a release
	// send the same queries, so the number of queries does not grow with the number of batches. It is
	// longer than the 20 s between two looks: from the end of the analysis on, each look sends the
	// same queries, and one whose time was too short for all of them is completed by later ones.
	answerTTL = 30 * time.Second
	// maxAnswerBytes is the maximum size of all answers. GOMEMLIMIT of config/judge also has room for those
	// that are read, and for those that a look still uses.
	maxAnswerBytes = 256 << 20
	// pointBytes is the size of a sample, and seriesBytes about that of the labels of a series.
	pointBytes, seriesBytes = 16, 1 << 10
)

// answers has the answers of Prometheus that were used in the last answerTTL. Others are freed: later looks
// have later ranges, and never read them.
type answers struct {
	clock clock.PassiveClock
	byKey map[string]*list.Element
	queue list.List // of *answer, the one that was not used for the longest time first
	bytes int
}

// answer is an answer with its key, its size and the time until which it is reused.
type answer struct {
	key    string
	series []samples.Series
	bytes  int
	until  time.Time
}

// get returns the answer of a query, and keeps it for another answerTTL.
func (a *answers) get(key string) ([]samples.Series, bool) {
	a.free()
	e, ok := a.byKey[key]
	if !ok {
		return nil, false
	}
	a.queue.MoveToBack(e)
	found := e.Value.(*answer)
	found.until = a.clock.Now().Add(answerTTL)
	return found.series, true
}

// add adds the answer of a query that has none.
func (a *answers) add(key string, series []samples.Series) {
	n := len(series) * seriesBytes
	for _, s := range series {
		n += len(s.Points) * pointBytes
	}
	a.byKey[key] = a.queue.PushBack(&answer{key: key, series: series, bytes: n, until: a.clock.Now().Add(answerTTL)})
	a.bytes += n
	a.free()
}

// free frees the answers that are too old, and the oldest ones while all are too large.
func (a *answers) free() {
	now := a.clock.Now()
	for e := a.queue.Front(); e != nil; e = a.queue.Front() {
		oldest := e.Value.(*answer)
		if now.Before(oldest.until) && a.bytes <= maxAnswerBytes {
			return
		}
		delete(a.byKey, oldest.key)
		a.bytes -= oldest.bytes
		a.queue.Remove(e)
	}
}
