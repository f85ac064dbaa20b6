package perf

import (
	"fmt"
	"strings"
)

// The measures from which costs are computed.
const (
	measureCPUOnTop     = "CPU of the whole machine, on top of bare"
	measureCPUPerPod    = "CPU of the whole machine per pod, on top of bare"
	measureWrites       = "writes per pod"
	measureReads        = "reads per pod"
	measureBytes        = "bytes written per pod"
	measureIdleMemory   = "memory of the largest process"
	measureIdleWrites   = "writes per minute"
	measureIdleCPU      = "CPU per minute, all processes of Breakwater"
	oneByOne, inBatches = "one by one: ", "batches of 10 %: "
)

// cost is that of a released pod.
type cost struct {
	// CPU is in seconds, of the whole machine, on top of a bare rollout.
	CPU           float64
	Writes, Bytes float64
}

// costs are the measured ones from which the cost of a cluster is computed.
type costs struct {
	OneByOne, InBatches cost
	// IdleCPU is in seconds per minute, IdleWrites per minute, both with idleMeasured pods.
	IdleCPU, IdleWrites float64
}

// costsOf returns the costs, and whether all of them were measured.
func costsOf(all figures) (c costs, measured bool) {
	measured = true
	of := func(section, measure string) float64 {
		value, ok := all.value(section, measure)
		measured = measured && ok
		return value
	}
	each := func(mode string) cost {
		return cost{CPU: of(sectionReleases, mode+measureCPUPerPod) / 1000, Writes: of(sectionReleases, mode+measureWrites), Bytes: of(sectionReleases, mode+measureBytes)}
	}
	c = costs{OneByOne: each(oneByOne), InBatches: each(inBatches), IdleCPU: of(sectionIdle, measureIdleCPU), IdleWrites: of(sectionIdle, measureIdleWrites)}
	return c, measured
}

// examples are clusters by pods and releases an hour; each release has podsOfExample pods.
var examples = []struct{ Pods, Releases int }{{500, 5}, {2000, 20}, {5000, 100}, {10000, 300}}

const podsOfExample = 20

// markdown renders the average costs of clusters.
func (c costs) markdown() string {
	var s strings.Builder
	fmt.Fprintf(&s, "Averages, computed from the figures below: each release has %d pods that pass. The CPU includes the API server, etcd and Knative, "+
		"and is that of a whole machine on which they all run; your cores may be faster. The idle cost is that of 10,000 pods in every row. "+
		"A pod costs what it costs in a release of 1000 pods; in a small release it is more (section %s).\n\n", podsOfExample, sectionConcurrent)
	s.WriteString("| pods | releases an hour | released pods an hour | CPU, one by one | CPU, batches of 10 % | API writes per second, one by one | batches of 10 % | bytes written an hour, one by one |\n" +
		"|---|---|---|---|---|---|---|---|\n")
	for _, x := range examples {
		released := float64(x.Releases * podsOfExample)
		cores := func(k cost) string { return fmt.Sprintf("%.2f cores", released*k.CPU/3600+c.IdleCPU/60) }
		writes := func(k cost) string { return fmt.Sprintf("%.1f", released*k.Writes/3600+c.IdleWrites/60) }
		fmt.Fprintf(&s, "| %d | %d | %.0f | %s | %s | %s | %s | %.1f MB |\n", x.Pods, x.Releases, released,
			cores(c.OneByOne), cores(c.InBatches), writes(c.OneByOne), writes(c.InBatches), released*c.OneByOne.Bytes/1e6)
	}
	return s.String()
}
