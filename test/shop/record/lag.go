// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"slices"
	"sync"
	"time"
)

// lagMeter measures how late a timer fires: how long a process of this machine waits
// for a CPU. Other programs on the machine must not decide what a recording shows, so a good
// release that keeps no old pods is not in labels.csv if the lag grew (result.disturbed).
type lagMeter struct {
	mu      sync.Mutex
	samples []lagSample
}

type lagSample struct {
	at  time.Time
	lag time.Duration
}

func (m *lagMeter) run(ctx context.Context) {
	for {
		begin := time.Now()
		if !pause(ctx, 50*time.Millisecond) {
			return
		}
		m.mu.Lock()
		m.samples = append(m.samples, lagSample{begin, time.Since(begin) - 50*time.Millisecond})
		m.mu.Unlock()
	}
}

// between returns the median lag between two times. The median ignores a few long
// stops, which do not affect most requests.
func (m *lagMeter) between(from, to time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []time.Duration
	for _, s := range m.samples {
		if !s.at.Before(from) && s.at.Before(to) {
			list = append(list, s.lag)
		}
	}
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[len(list)/2]
}
