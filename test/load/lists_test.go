//go:build controlplane

package load

import (
	"bufio"
	"context"
	"encoding/json"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/builder"
	"github.com/breakwater-dev/breakwater/test/controlplane"
)

// BenchmarkChangePodsOfALargeRelease measures the lists of the callback for one release of
// LOAD_LARGE judged pods, and the memory of its ChangePods in an informer. An early verdict
// costs a list by release. Consistent lists wait until the watch cache of the API server
// is as new as etcd.
func BenchmarkChangePodsOfALargeRelease(b *testing.B) {
	f := newFixture(b)
	f.create(b, builder.Deployment("web", int32(controlplane.Size(b, "LOAD_LARGE", 100)), builder.Simulated))
	release := f.awaitReleases(b, 1)[0]
	api := f.Breakwater.AppV1alpha1().ChangePods(f.namespace)
	all, err := api.List(b.Context(), metav1.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	byNode := metav1.ListOptions{FieldSelector: "status.changePodId=" + all.Items[0].Status.ChangePodID}
	byRelease := metav1.ListOptions{LabelSelector: v1alpha1.VersionKey + "=" + release.Labels[v1alpha1.VersionKey]}
	for _, tc := range []struct {
		name    string
		options metav1.ListOptions
		want    int
	}{{"by node", byNode, 1}, {"by release", byRelease, len(all.Items)}} {
		for _, version := range []string{"", "0"} {
			for _, writes := range []bool{false, true} {
				options := tc.options
				options.ResourceVersion = version
				name := tc.name + map[string]string{"": ", consistent", "0": ", cached"}[version] + map[bool]string{true: ", during writes"}[writes]
				b.Run(name, func(b *testing.B) {
					if writes {
						b.Cleanup(f.writeAll(b, all.Items))
					}
					f.measure(b, func() int {
						list, err := api.List(b.Context(), options)
						if err != nil {
							b.Fatal(err)
						}
						return len(list.Items)
					}, tc.want)
				})
			}
		}
	}
	b.Run("memory", func(b *testing.B) {
		b.ReportMetric(heapOf(b, all.Items), "B/object")
		trimmed := all.DeepCopy() // the benchmark runs twice
		for i := range trimmed.Items {
			trimmed.Items[i].ManagedFields = nil
		}
		b.ReportMetric(heapOf(b, trimmed.Items), "B/trimmed")
	})
}

// measure runs a list, and reports its latencies and the CPU time of the API server.
func (f fixture) measure(b *testing.B, list func() int, want int) {
	b.Helper()
	var took []time.Duration
	before := f.apiServerCPU(b)
	for b.Loop() {
		began := time.Now()
		if got := list(); got != want {
			b.Fatalf("%d objects, want %d", got, want)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	milliseconds := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(milliseconds(took[len(took)/2]), "p50-ms")
	b.ReportMetric(milliseconds(took[len(took)*99/100]), "p99-ms")
	b.ReportMetric((f.apiServerCPU(b)-before)*1000/float64(len(took)), "server-cpu-ms/op")
}

// apiServerCPU returns the CPU seconds of the API server so far.
func (f fixture) apiServerCPU(b *testing.B) float64 {
	b.Helper()
	metrics, err := f.Kube.Discovery().RESTClient().Get().AbsPath("/metrics").Do(b.Context()).Raw()
	if err != nil {
		b.Fatal(err)
	}
	for lines := bufio.NewScanner(strings.NewReader(string(metrics))); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "process_cpu_seconds_total "); ok {
			seconds, err := strconv.ParseFloat(value, 64)
			if err != nil {
				b.Fatal(err)
			}
			return seconds
		}
	}
	b.Fatal("no process_cpu_seconds_total")
	return 0
}

// writeAll writes an annotation of one ChangePod after the other until the result is
// called.
func (f fixture) writeAll(b *testing.B, pods []v1alpha1.ChangePod) (stop func()) {
	ctx, cancel := context.WithCancel(b.Context())
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			patch := []byte(`{"metadata":{"annotations":{"test.breakwater.dev/write":"` + strconv.Itoa(i) + `"}}}`)
			_, err := f.Breakwater.AppV1alpha1().ChangePods(f.namespace).Patch(ctx, pods[i%len(pods)].Name, types.MergePatchType, patch, metav1.PatchOptions{})
			if err != nil && ctx.Err() == nil {
				b.Errorf("write a ChangePod: %v", err)
				return
			}
		}
	})
	return func() { cancel(); writing.Wait() }
}

// heapOf returns the bytes of an object on the heap, decoded as informers do.
func heapOf(b *testing.B, objects []v1alpha1.ChangePod) float64 {
	b.Helper()
	var encoded [][]byte
	for i := range objects {
		raw, err := json.Marshal(&objects[i])
		if err != nil {
			b.Fatal(err)
		}
		encoded = append(encoded, raw)
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const copies = 10
	before := heap()
	kept := make([]*v1alpha1.ChangePod, 0, copies*len(encoded))
	for range copies {
		for _, raw := range encoded {
			into := &v1alpha1.ChangePod{}
			if err := json.Unmarshal(raw, into); err != nil {
				b.Fatal(err)
			}
			kept = append(kept, into)
		}
	}
	after := heap()
	runtime.KeepAlive(encoded)
	perObject := (float64(after) - float64(before)) / float64(len(kept))
	runtime.KeepAlive(kept)
	return perObject
}
