package metrics

// permission are the metrics of part permission.
func permission() []Group {
	return []Group{{
		Title:     "Pods with permissions",
		Processes: text("permission-controller"),
		Metrics: []Definition{
			{Name: "breakwater_permission_sets_revoked_total", Unit: "permission sets",
				Help: "Permission sets that were revoked after their pod had ended."},
			{Name: "breakwater_permission_sets_leaked_total", Unit: "permission sets", Labels: text("reason"),
				Help: "Permission sets that were not revoked when the finalizer of their pod was removed."},
			{Name: "breakwater_permission_uninjected_pods", Unit: "pods", Labels: text("reason"),
				Help: "Pods that need permissions and have no init container that waits for them."},
			{Name: "breakwater_permission_leaked_addresses", Unit: "addresses",
				Help: "Addresses with a leaked grant."},
			{Name: "breakwater_permission_leaked_address_pods", Unit: "pods",
				Help: "Pods with an address that has a leaked grant of another pod."},
			{Name: "breakwater_permission_unreported_pods", Unit: "pods",
				Help: "Pods whose finalizer was removed before their permissions were revoked, and that are not yet reported to the permission centre."},
		},
	}, {
		Title:     "Init containers",
		Processes: text("init-action-server"),
		Metrics: []Definition{
			{Name: "breakwater_init_action_requests_total", Unit: "requests", Labels: text("state reason"),
				Help: "Requests of init containers that ended. The state is the last one that was sent."},
			{Name: "breakwater_init_action_request_duration_seconds", Unit: "seconds", Labels: text("state"),
				Help:    "Duration of a request of an init container, the wait included.",
				Buckets: []float64{.05, .1, .25, .5, 1, 2, 5, 10, 30, 60, 120, 300, 600}},
			{Name: "breakwater_init_action_requests_rejected_total", Unit: "requests", Labels: text("route status reason"),
				Help: "Requests that were rejected."},
			{Name: "breakwater_init_action_requests_waiting", Unit: "requests",
				Help: "Requests of init containers that wait for permissions at this replica."},
			{Name: "breakwater_init_action_leaked_address_pods_total", Unit: "pods",
				Help: "Pods that requested permissions for an address that has a leaked grant of another pod."},
			{Name: "breakwater_permission_breaker_transitions_total", Unit: "transitions", Labels: text("reason"),
				Help: "Breakers of pods that opened or closed."},
		},
	}, {
		Title:     "Permission centre",
		Processes: text("permission-centre"),
		Metrics: []Definition{
			{Name: "breakwater_permission_centre_applications", Unit: "applications", Labels: text("state"),
				Help: "Applications in a state."},
			{Name: "breakwater_permission_centre_grant_transitions_total", Unit: "transitions", Labels: text("provider state reason"),
				Help: "Transitions of grants to a state."},
			{Name: "breakwater_permission_centre_provider_call_duration_seconds", Unit: "seconds", Labels: text("provider operation result reason"),
				Help:    "Duration of a call to a provider.",
				Buckets: []float64{.005, .02, .1, .5, 1, 5, 10, 30}},
			{Name: "breakwater_permission_centre_leaked_grants", Unit: "grants", Labels: text("provider"),
				Help: "Grants that could not be revoked."},
			{Name: "breakwater_permission_centre_leaked_address_reuses_total", Unit: "pods", Labels: text("permission"),
				Help: "Pods that requested permissions for an address that has a leaked grant of another pod."},
			{Name: "breakwater_permission_centre_request_duration_seconds", Unit: "seconds", Labels: text("method route status"),
				Help:    "Duration of a request of the REST interface.",
				Buckets: []float64{.002, .01, .05, .2, 1, 10, 60}},
		},
	}}
}
