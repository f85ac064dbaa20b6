// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// scrapeInterval is that of all series.
const scrapeInterval = 10 * time.Second

// kept are the series that a judge may need. Labels that are the same in all
// series of the shop are left out.
const scrapeConfig = `
global: {scrape_interval: 10s, scrape_timeout: 8s}
scrape_configs:
- job_name: pods
  file_sd_configs: [{files: [%q], refresh_interval: 5s}]
  metric_relabel_configs: &kept
  - source_labels: [__name__]
    regex: http_(server|client)_request_duration_seconds_(bucket|count|sum)|traces_service_graph_request(_failed)?_total|go_goroutine_count|go_memory_used_bytes|process_(cpu_seconds_total|resident_memory_bytes|open_fds|start_time_seconds)|kube_.+|container_.+
    action: keep
  - regex: network_protocol_name|network_protocol_version|url_scheme|server_port
    action: labeldrop
- job_name: state
  honor_labels: true
  metrics_path: /state
  static_configs: [{targets: [%q]}]
  metric_relabel_configs: *kept
- job_name: load
  honor_labels: true
  metrics_path: /metrics
  static_configs: [{targets: [%q]}]
  metric_relabel_configs: *kept
`

// prometheus is the server that scrapes a recording.
type prometheus struct{ folder, url string }

// run runs Debian's prometheus until the context ends.
func (p *prometheus) run(ctx context.Context, address, stateAddress string) error {
	config := fmt.Sprintf(scrapeConfig, p.targetsFile(), stateAddress, stateAddress)
	if err := os.WriteFile(filepath.Join(p.folder, "prometheus.yml"), []byte(config), 0o600); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(p.folder, "prometheus.log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.CommandContext(ctx, "prometheus", "--config.file="+filepath.Join(p.folder, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(p.folder, "data"), "--web.listen-address="+address, "--log.level=warn")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("prometheus ended: %w; its log is %s", err, log.Name())
	}
	return nil
}

func (p *prometheus) targetsFile() string { return filepath.Join(p.folder, "targets.json") }

// writeTargets tells Prometheus which pods exist.
func (p *prometheus) writeTargets(list []*pod) error {
	type group struct {
		Targets []string          `json:"targets"`
		Labels  map[string]string `json:"labels"`
	}
	groups := []group{}
	for _, pod := range list {
		groups = append(groups, group{[]string{pod.ip + ":8080"}, map[string]string{
			"namespace": pod.namespace, "pod": pod.name, "node": pod.node, "app": pod.service, "version": pod.version}})
	}
	data, err := json.Marshal(groups)
	if err != nil {
		return err
	}
	return replaceFile(p.targetsFile(), data)
}

// sample is the time in seconds and the value as text.
type sample [2]any

type series struct {
	Metric map[string]string `json:"metric"`
	Values []sample          `json:"values"`
}

// raw returns the samples of a namespace, as they were scraped.
func (p *prometheus) raw(ctx context.Context, namespace string, end time.Time, length time.Duration) ([]series, error) {
	form := url.Values{"query": {fmt.Sprintf("{namespace=%q}[%ds]", namespace, int(length.Seconds()))}, "time": {fmt.Sprint(end.Unix())}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/api/v1/query?"+form.Encode(), nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct {
		Error string `json:"error"`
		Data  struct {
			Result []series `json:"result"`
		} `json:"data"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("series of %s: %w", namespace, err)
	}
	if answer.Error != "" {
		return nil, errors.New(answer.Error)
	}
	return answer.Data.Result, nil
}

// replaceFile writes a file so that a reader sees either the old or the new one.
func replaceFile(path string, data []byte) error {
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
