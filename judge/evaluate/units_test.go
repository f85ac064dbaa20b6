package evaluate

import (
	"math"
	"testing"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
)

func TestMessagesHaveTheUnitsThatPeopleRead(t *testing.T) {
	for _, c := range []struct {
		value float64
		unit  string
		want  string
	}{
		{0.0691906, "ratio", "6.9 %"},
		{0.00261097, "ratio", "0.3 %"},
		{0.00041, "ratio", "0.041 %"},
		{0, "ratio", "0 %"},
		{1, "ratio", "100 %"},
		{0.9996, "ratio", "100 %"},
		{0.2274, "seconds", "227 ms"},
		{0.0021, "seconds", "2.1 ms"},
		{1.254, "seconds", "1.3 s"},
		{71.2, "milliseconds", "71.2 ms"},
		{1254, "milliseconds", "1.3 s"},
		{0.0093, "cores", "9.3 millicores"},
		{1.5, "cores", "1500 millicores"},
		{1.87732e+07, "bytes", "17.9 MiB"},
		{4 << 30, "bytes", "4096 MiB"},
		{1577, "threads", "1577 threads"},
		{21.6875, "threads", "21.7 threads"},
		{1.2512, "calls per request", "1.3 calls per request"},
		{0.2, "events per second", "0.2 events per second"},
		{-12.34, "", "-12.3"},
		{3.5e+09, "", "3500000000"},
		{math.Inf(1), "ratio", "+Inf %"},
	} {
		if got := readable(c.value, c.unit); got != c.want {
			t.Errorf("%g %s: %q, want %q", c.value, c.unit, got, c.want)
		}
	}
}

func TestAMessageNamesBothValues(t *testing.T) {
	for want, e := range map[string]v1alpha1.Evidence{
		"6.9 % of new pods against 0.3 % of old pods": {
			Kind: v1alpha1.KindRatio, Unit: "ratio", New: &v1alpha1.Side{Value: "0.0691906"}, Old: &v1alpha1.Side{Value: "0.00261097"},
		},
		"quantile 0.97: 227 ms of new pods against 71 ms of old pods": {
			Kind: v1alpha1.KindLatency, Unit: "seconds", New: &v1alpha1.Side{Value: "0.227"}, Old: &v1alpha1.Side{Value: "0.071"},
		},
		"9.3 millicores of new pods against 4.8 millicores of old pods": {
			Kind: v1alpha1.KindGauge, Unit: "cores", New: &v1alpha1.Side{Value: "0.0093"}, Old: &v1alpha1.Side{Value: "0.0048"},
		},
	} {
		quantile := ""
		if e.Kind == v1alpha1.KindLatency {
			quantile = "quantile 0.97"
		}
		if got := summary(e, Data{}, quantile); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
