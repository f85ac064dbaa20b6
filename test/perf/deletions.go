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

// deletions are the results of requests to delete pods.
type deletions struct {
	mu sync.Mutex
	// Took is from the first request to the last answer.
	Took time.Duration
	// Latencies are the latencies of Allowed and Denied requests.
	Latencies []time.Duration
	// Allowed, Denied and Failed (500 and above) count answers; Others counts
	// other errors, mostly requests without an answer.
	Allowed, Denied, Failed, Others int
	// LastError is the last error that is not a denial.
	LastError error
	// CPU is the CPU time of each component of the system.
	CPU map[string]time.Duration
}

func (d *deletions) count(err error, latency time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var status apierrs.APIStatus
	answered := errors.As(err, &status)
	switch {
	case err == nil:
		d.Allowed++
	case answered && status.Status().Code == http.StatusForbidden:
		d.Denied++
	case answered && status.Status().Code >= http.StatusInternalServerError:
		d.Failed, d.LastError = d.Failed+1, err
		return
	default:
		d.Others, d.LastError = d.Others+1, err
		return
	}
	d.Latencies = append(d.Latencies, latency)
}

// rate returns the number of allowed deletions per second.
func (d *deletions) rate() float64 { return float64(d.Allowed) / d.Took.Seconds() }

// spentEach describes the CPU time of each component per allowed deletion, in
// descending order.
func (d *deletions) spentEach() string {
	var each []string
	for _, component := range components(d.CPU) {
		each = append(each, component+" "+d.spent(component))
	}
	return strings.Join(each, ", ")
}

// spent returns the CPU time of a component per allowed deletion.
func (d *deletions) spent(component string) string {
	return fmt.Sprintf("%.2f ms", d.CPU[component].Seconds()*1000/float64(d.Allowed))
}

// quantile returns the latency that this share of the answers did not exceed.
func (d *deletions) quantile(share float64) time.Duration { return quantile(d.Latencies, share) }

func quantile(all []time.Duration, share float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}

// median returns the run with the median rate.
func median(runs []*deletions) *deletions {
	sorted := slices.Clone(runs)
	slices.SortFunc(sorted, func(a, b *deletions) int { return cmp.Compare(a.rate(), b.rate()) })
	return sorted[len(sorted)/2]
}
