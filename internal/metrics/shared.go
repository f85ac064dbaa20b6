package metrics

// shared are the metrics of packages that several processes use.
func shared() []Group {
	return []Group{{
		Title: "Version",
		Components: words("controller webhook submit verdict report deadletter callback judge notify openapi protection-controller protection-webhook " +
			"permission-controller permission-webhook init-action-server permission-centre"),
		Metrics: []Definition{
			{Name: BuildInfo, Labels: words("version revision go"),
				Help: "Always 1. The labels are the version of Breakwater, the commit and the version of Go."},
		},
	}, {
		Title:      "Admission webhooks",
		Components: words("webhook protection-webhook permission-webhook"),
		Metrics: []Definition{
			{Name: "breakwater_admission_requests_total", Unit: "requests", Labels: words("webhook decision allowed dry_run"),
				Help: "Admission requests that a webhook decided; `allowed` is `false` for denials. Those that vpodbudget.kb.io passes on to flow control also count for vdeletionflow.kb.io."},
			{Name: "breakwater_admission_unauthenticated_requests_total", Unit: "requests",
				Help: "Requests whose path has no valid secret. Whoever may read webhook configurations knows the secret: the API server, webhooks and controllers of Breakwater, and admins."},
			{Name: "breakwater_admission_unread_reviews_total", Unit: "requests",
				Help: "Admission requests that were not read before the API server's timeout, because the limit of bytes in progress was reached."},
		},
	}, {
		Title:      "Certificates",
		Components: words("webhook protection-webhook permission-webhook init-action-server permission-centre openapi"),
		Metrics: []Definition{
			{Name: "breakwater_certificate_expiry_timestamp_seconds", Unit: "seconds", Labels: words("process"), LeastIsWorst: true,
				Help: "End of the certificate with which a process serves, as a Unix time; 0 if the certificate cannot be read."},
		},
	}, {
		Title:      "Events for the Broker",
		Components: words("controller webhook callback judge protection-controller protection-webhook permission-controller init-action-server"),
		Metrics: []Definition{
			{Name: "breakwater_event_send_attempts_total", Unit: "attempts", Labels: words("type result"),
				Help: "Attempts to send a CloudEvent to the Broker."},
			{Name: "breakwater_event_send_duration_seconds", Unit: "seconds", Labels: words("type result"),
				Help:   "Duration of an attempt to send a CloudEvent to the Broker.",
				Bounds: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30}},
			{Name: "breakwater_events_dropped_total", Unit: "events", Labels: words("type reason"),
				Help: "CloudEvents that were given up: the queue was full, the process stopped, or no attempt was accepted. After reason `timeout` the event has probably arrived."},
			{Name: "breakwater_events_coalesced_total", Unit: "events", Labels: words("type"),
				Help: "Queued CloudEvents that were replaced by a newer one with the same id."},
			{Name: "breakwater_events_queued", Unit: "events", SummedOverProcesses: true,
				Help: "CloudEvents in the queues of this process."},
			{Name: "breakwater_event_broker_resolved", LeastIsWorst: true,
				Help: "1 while the address of a Broker is known, 0 otherwise."},
		},
	}, {
		Title:      "Calls to the AlterShield server",
		Components: words("webhook submit verdict report"),
		Metrics: []Definition{
			{Name: "breakwater_altershield_call_attempts_total", Unit: "attempts", Labels: words("action result"),
				Help: "Attempts to call the AlterShield server, with those that the rate limit (`throttled`) or the circuit breaker (`breaker`) stopped before the request. The result is a result code, the reason why there is no usable answer, or `other`."},
			{Name: "breakwater_altershield_call_attempt_duration_seconds", Unit: "seconds", Labels: words("action result"),
				Help:   "Duration of one attempt to call the AlterShield server, without the rate limit and the pauses between attempts. Attempts that the rate limit or the circuit breaker stopped have none.",
				Bounds: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}},
			{Name: "breakwater_altershield_breaker_state",
				Help: "State of the circuit breaker of a process for calls to the AlterShield server: 0 closed, 1 half open (the pause is over, and the next call decides), 2 open."},
			{Name: "breakwater_altershield_breaker_transitions_total", Unit: "transitions", Labels: words("state"),
				Help: "Transitions of the circuit breaker to a state."},
		},
	}, {
		Title:      "Guards",
		Components: words("controller protection-controller permission-controller"),
		Metrics: []Definition{
			{Name: "breakwater_guard_unenforced", Labels: words("reason"),
				Help: "1 while a guard is unenforced for the reason, 0 otherwise. Only the leader has values."},
		},
	}}
}
