// Package monitoring tests the alerts of config/monitoring with promtool, the test tool of Prometheus:
// each alert fires when it should and is quiet otherwise, and each has a runbook. It also tests that
// PodMonitors scrape each process once.
package monitoring
