package metrics

import (
	"go.opentelemetry.io/otel/metric"

	"github.com/breakwater-dev/breakwater/internal/version"
)

// BuildInfo is the name of the metric that shows the version of a process.
const BuildInfo = "breakwater_build_info"

// BuildLabels are the values of the labels of BuildInfo.
func BuildLabels() []string {
	info := version.Get()
	return []string{info.Version, info.Revision, info.Go}
}

// ObserveBuild creates BuildInfo.
func ObserveBuild(meter metric.Meter) metric.Registration {
	return Observe(meter, BuildInfo, func(observe func(int64, ...string)) { observe(1, BuildLabels()...) })
}
