// SPDX-License-Identifier: Apache-2.0

package record

import (
	"strings"
	"testing"
)

func TestSamplesAreWrittenAsOpenMetricsWithTheirTimeShifted(t *testing.T) {
	list := []series{
		{map[string]string{"__name__": "b_total", "pod": "p", "namespace": `n"`}, []sample{{float64(90000), "1"}, {90010.5, "2"}}},
		{map[string]string{"__name__": "a"}, []sample{{float64(90000), "NaN"}}},
	}
	var got strings.Builder
	if err := writeOpenMetrics(&got, list, -86400); err != nil {
		t.Fatal(err)
	}
	want := "a{} NaN 3600.000\nb_total{namespace=\"n\\\"\",pod=\"p\"} 1 3600.000\nb_total{namespace=\"n\\\"\",pod=\"p\"} 2 3610.500\n# EOF\n"
	if got.String() != want {
		t.Errorf("got\n%s, want\n%s", got.String(), want)
	}
}
