package evaluate

import (
	"fmt"
	"maps"
	"regexp"
)

var (
	// ofProcess matches the names of the default metrics that are about one process. In other series, a label of
	// scrapeLabels may be one of the application.
	ofProcess = regexp.MustCompile(`^(process|go|jvm)_`)
	// address matches the instance of a target that is scraped. Only one process of a pod listens on a port,
	// except behind a proxy such as kube-rbac-proxy.
	address = regexp.MustCompile(`:\d+$`)
)

// scrapeLabels are the labels by which two scrapes of a process differ. Prometheus and its operator set them. A pod can
// have a target for each container, all with the same address.
var scrapeLabels = []string{"job", "service", "endpoint", "container", "prometheus", "prometheus_replica", "replica"}

// processKey is the key of the series of a process, by which mergeExporters finds those of a second scrape.
func processKey(labels map[string]string) string {
	if !ofProcess.MatchString(labels["__name__"]) || !address.MatchString(labels["instance"]) {
		return ""
	}
	key := maps.Clone(labels)
	for _, label := range scrapeLabels {
		delete(key, label)
	}
	return fmt.Sprint(key)
}
