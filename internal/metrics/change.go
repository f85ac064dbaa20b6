package metrics

// change are the metrics of part change.
func change() []Group {
	return []Group{{
		Title:      "Releases",
		Components: words("controller"),
		Metrics: []Definition{
			{Name: "breakwater_pods_finished_total", Unit: "pods",
				Help: "Pods of a release that became Ready and were labeled `operate-finished`."},
			{Name: "breakwater_releases_held", Unit: "releases", Labels: words("reason"),
				Help: "Releases whose condition Held is True, by its reason: Suspended or HeldUnjudged. Each replica counts those of all opted-in namespaces."},
			{Name: "breakwater_releases_drifted", Unit: "releases",
				Help: "Releases whose condition Drifted is True: images were changed without a release. Each replica counts those of all opted-in namespaces."},
			{Name: "breakwater_oldest_batch_age_seconds", Unit: "seconds",
				Help: "Age of the oldest batch of an opted-in namespace that is not done, 0 if there is none. Each replica has the same."},
			{Name: "breakwater_oldest_stuck_release_age_seconds", Unit: "seconds",
				Help: "Longest time that a release of an opted-in namespace has been in status TimeOutPreThreshold with pods that are in no batch yet, or with reason RolloutStuck; 0 if there is none. Each replica has the same."},
			{Name: "breakwater_batches_unjudged_total", Unit: "batches", Labels: words("reason policy"),
				Help: "Batches that became unjudged, by reason. The policy is the one that decided: that of a setting such as `no-verdict-post`, or `insufficientDataPolicy` of the MetricCheck."},
			{Name: "breakwater_orders_unjudged_total", Unit: "orders", Labels: words("policy"),
				Help: "Orders that became unjudged. The policy is the one that decided, such as that of `no-verdict-order`."},
			{Name: "breakwater_server_calls_queued", Unit: "calls", SummedOverProcesses: true,
				Help: "Calls to the server that wait for their turn in the queue of this process, which all releases share."},
			{Name: "breakwater_server_calls_in_flight", Unit: "calls", SummedOverProcesses: true,
				Help: "Calls in flight: the queue of this process admitted them, and their end was not observed yet. A call counts for at most 35 s."},
			{Name: "breakwater_rollbacks_total", Unit: "rollbacks", Labels: words("reason kind"),
				Help: "Rollbacks of a workload to a version that succeeded or whose pods are Ready."},
			{Name: "breakwater_saved_template_changes_total", Unit: "changes", Labels: words("action kind"),
				Help: "Saved templates that were created, updated or deleted."},
			{Name: "breakwater_workload_readmissions_total", Unit: "readmissions", Labels: words("kind reason result"),
				Help: "Readmissions: updates without a change that pass a workload through the webhook again. The result is `changed` when the webhook changed the workload, because it had missed a version, else `unchanged`."},
			{Name: "breakwater_workload_kind_watched", Labels: words("kind"), LeastIsWorst: true,
				Help: "1 if a kind of workload is watched, else 0: its list or watch failed in the last 2 minutes, or has not succeeded yet. Errors of a watch that client-go retries itself do not count. A kind that the API server does not have is left out."},
			{Name: "breakwater_workload_config_errors_total", Unit: "errors",
				Help: "Invalid versions of ConfigMap `config-workloads` that the controller read. The webhook has `breakwater_workload_config_invalid`."},
		},
	}, {
		Title:      "Release check and kinds of workloads",
		Components: words("webhook"),
		Metrics: []Definition{
			{Name: "breakwater_release_checks_total", Unit: "checks", Labels: words("result reason"),
				Help: "Release checks, by what the answer of the server counts as."},
			{Name: "breakwater_release_check_duration_seconds", Unit: "seconds", Labels: words("result"),
				Help:   "Time that an admission request waited for the release check.",
				Bounds: []float64{.01, .025, .05, .1, .25, .5, 1, 1.5, 2, 3, 4, 5}},
			{Name: "breakwater_workload_config_invalid",
				Help: "1 while the ConfigMap `config-workloads` that the webhook read is invalid, and the webhook uses the last valid version (without one, only the built-in kinds); 0 otherwise."},
		},
	}, {
		Title:      "Functions",
		Components: words("submit verdict judge report deadletter notify"),
		Metrics: []Definition{
			{Name: "breakwater_function_requests_total", Unit: "requests", Labels: words("function type result"),
				Help: "Requests to a function. `type` is `other` for a request without a valid CloudEvent, or with one of an unknown type."},
			{Name: "breakwater_function_event_duration_seconds", Unit: "seconds", Labels: words("function type result"),
				Help:   "Time from the header of a request to the response. It includes the arrival of the body, at most 5 s, and the wait for other events.",
				Bounds: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 40}},
		},
	}, {
		Title:      "Decisions about calls",
		Components: words("submit verdict"),
		Metrics: []Definition{
			{Name: "breakwater_call_decisions_total", Unit: "decisions", Labels: words("action stage"),
				Help: "Decisions of function submit about a batch or an order, and of function verdict to call the finish of a batch, by the action that was decided."},
		},
	}, {
		Title:      "Verdicts",
		Components: words("verdict submit"),
		Metrics: []Definition{
			{Name: "breakwater_verdicts_total", Unit: "verdicts", Labels: words("stage verdict result"),
				Help: "Verdicts that were received. The result says whether the verdict was stored. Verdicts of other judges than the server have stage JUDGE_POST."},
		},
	}, {
		Title:      "Function judge",
		Components: words("judge"),
		Metrics: []Definition{
			{Name: "breakwater_judge_looks_total", Unit: "looks", Labels: words("verdict reason"),
				Help: "Looks at the metrics of a batch, or of a release on probation, with the verdict so far and its reason."},
		},
	}, {
		Title:      "Function report",
		Components: words("report"),
		Metrics: []Definition{
			{Name: "breakwater_reports_total", Unit: "reports", Labels: words("result"),
				Help: "Reports about releases and finished pods, by result: recorded or rejected by the AlterShield server, ServerUnreachable if there was no usable answer, also because the breaker or the rate limit stopped the report, or ReleaseDeleted if the release was deleted and the event has no order, like that of a finished pod or of an earlier version."},
		},
	}, {
		Title:      "Function notify",
		Components: words("notify"),
		Metrics: []Definition{
			{Name: "breakwater_notifications_total", Unit: "messages", Labels: words("result"),
				Help: "Messages about releases for a webhook. The result is `sent`, `failed`, `limited`, `repeated` if the message of the event was sent before, `outdated` if the reported state is older than a day, `superseded` if a newer release replaced the failed one, or `unconfigured` if no webhook is set."},
		},
	}, {
		Title:      "Function callback",
		Components: words("callback"),
		Metrics: []Definition{
			{Name: "breakwater_callback_results_total", Unit: "results", Labels: words("format result"),
				Help: "Results of the verdicts that were received by callback, and of callbacks that were rejected."},
		},
	}, {
		Title:      "Function deadletter",
		Components: words("deadletter"),
		Metrics: []Definition{
			{Name: "breakwater_dead_letters_total", Unit: "events", Labels: words("type result"),
				Help: "CloudEvents that the Broker could not deliver."},
		},
	}, {
		Title:      "Rollback API",
		Components: words("openapi"),
		Metrics: []Definition{
			{Name: "breakwater_rollback_api_requests_total", Unit: "requests", Labels: words("route status dry_run"),
				Help: "Requests of the rollback API."},
		},
	}}
}
