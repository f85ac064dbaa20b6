package catalog

import "slices"

const (
	// QueueProxy is the container that Knative Serving adds to the pods of a Revision.
	QueueProxy = "queue-proxy"
	// knative is the family of the requests that queue-proxy counts.
	knative = "knative"
)

// notQueueProxy are the matchers that leave out the series of queue-proxy. Besides the requests of
// family knative it has the series of an HTTP server, of an HTTP client and of a Go process. With them
// each request would count twice, one that the application rejects would be a failed outgoing call, and
// the threads would not be those of the application. Scraped series have a label with the container,
// or at least label instance with port 9091, which no other container of these pods may use. Series of
// OpenTelemetry have a label with the container.
const notQueueProxy = `container!="queue-proxy",container_name!="queue-proxy",instance!~".+:9091"`

// LeftOut reports whether a series is one of queue-proxy, and not one of the requests that it counts.
func LeftOut(labels map[string]string) bool {
	return (labels["container"] == QueueProxy || labels["container_name"] == QueueProxy) && !isKnative(labels["__name__"])
}

func isKnative(name string) bool {
	return slices.ContainsFunc(familyOf(Found{Name: name}), func(fam family) bool { return fam.name == knative })
}

// hasQueueProxy reports whether queue-proxy counts the requests of the pods.
func hasQueueProxy(found []Found) bool {
	return slices.ContainsFunc(found, func(f Found) bool { return isKnative(f.Name) })
}
