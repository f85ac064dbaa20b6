package metrics

// protection are the metrics of part protection.
func protection() []Group {
	return []Group{{
		Title:      "Budgets and deletion flow control: admission",
		Components: words("protection-webhook"),
		Metrics: []Definition{
			{Name: "breakwater_group_commit_requests", Unit: "requests", Labels: words("kind"),
				Help:   "Admission requests that were decided together and share one write of the status. The kind is that of the object.",
				Bounds: []float64{1, 2, 5, 10, 20, 50, 100, 200, 500}},
			{Name: "breakwater_group_commit_writes_total", Unit: "writes", Labels: words("kind result"),
				Help: "Writes of the status. The result is `written`, or `conflict` when the group was decided again."},
			{Name: "breakwater_deletionflow_clock_skewed",
				Help: "1 while the clock of this replica differs too much from that of the API server, so that it denies the deletions that a flow control counts; 0 otherwise."},
		},
	}, {
		Title:      "Budgets and deletion flow control: status",
		Components: words("protection-controller"),
		Metrics: []Definition{
			{Name: "breakwater_budget_charges_refunded_total", Unit: "charges",
				Help: "Charges that the controller refunded because their request did not take effect. Refunds by the webhook, of requests that it then denied, do not count."},
			{Name: "breakwater_deletionflow_breaker_open", Labels: words("name"),
				Help: "1 while the breaker of a PodDeletionFlowControl is open: further deletions are denied, or only reported in shadow mode; 0 otherwise."},
			{Name: "breakwater_deletionflow_window_deletions", Unit: "deletions", Labels: words("name"),
				Help: "Deletions in the longest window of a PodDeletionFlowControl."},
		},
	}}
}
