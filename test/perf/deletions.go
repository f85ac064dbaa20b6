package perf

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
)

// deletions are how requests to delete pods were answered.
type deletions struct {
	mu sync.Mutex
	// Took is from the first request to the last answer.
	Took time.Duration
	// Latencies are those of the answers that were understood.
	Latencies []time.Duration
	// Passed and Refused are answers, Broken those of 500 and above, Others what
	// came instead of an answer.
	Passed, Refused, Broken, Others int
	// Last is the last error that is none of a refusal.
	Last error
	// CPU is what each part of the system spent meanwhile.
	CPU map[string]time.Duration
}

func (d *deletions) count(err error, latency time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var status apierrs.APIStatus
	answered := errors.As(err, &status)
	switch {
	case err == nil:
		d.Passed++
	case answered && status.Status().Code == http.StatusForbidden:
		d.Refused++
	case answered && status.Status().Code >= http.StatusInternalServerError:
		d.Broken, d.Last = d.Broken+1, err
		return
	default:
		d.Others, d.Last = d.Others+1, err
		return
	}
	d.Latencies = append(d.Latencies, latency)
}

// rate is how many passed a second.
func (d *deletions) rate() float64 { return float64(d.Passed) / d.Took.Seconds() }

// spentEach says what the parts spent for each that passed, the most first.
func (d *deletions) spentEach() string {
	var each []string
	for _, part := range parts(d.CPU) {
		each = append(each, part+" "+d.spent(part))
	}
	return strings.Join(each, ", ")
}

// spent says what a part spent for each that passed.
func (d *deletions) spent(part string) string {
	return fmt.Sprintf("%.2f ms", d.CPU[part].Seconds()*1000/float64(d.Passed))
}

// quantile returns the latency that this share of the answers stayed within.
func (d *deletions) quantile(share float64) time.Duration { return quantile(d.Latencies, share) }

func quantile(all []time.Duration, share float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}

// middle returns the run whose rate is in the middle.
func middle(runs []*deletions) *deletions {
	sorted := slices.Clone(runs)
	slices.SortFunc(sorted, func(a, b *deletions) int { return cmp.Compare(a.rate(), b.rate()) })
	return sorted[len(sorted)/2]
}
