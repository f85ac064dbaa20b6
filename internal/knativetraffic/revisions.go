package knativetraffic

import "slices"

// RevisionsWithTraffic returns the names of the Revisions of a Knative Service to which its Route sends requests:
// those with a share in status.traffic. A Revision that has only a tag is none of them. Before
// Serving has reported the traffic, it is the latest Revision. A Service that is being deleted has
// none.
func RevisionsWithTraffic(service map[string]any) []string {
	metadata, _ := service["metadata"].(map[string]any)
	if metadata["deletionTimestamp"] != nil {
		return nil
	}
	status, _ := service["status"].(map[string]any)
	entries, _ := status["traffic"].([]any)
	if len(entries) == 0 {
		if latest := text(status, "latestCreatedRevisionName"); latest != "" {
			return []string{latest}
		}
		return nil
	}
	var names []string
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		if name := text(entry, "revisionName"); name != "" && percent(entry) > 0 && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
