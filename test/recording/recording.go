// SPDX-License-Identifier: Apache-2.0

// Package recording loads the recorded releases of the shop (test/shop) into a
// Prometheus of its own. Thresholds are tuned with the runs Tuning and TuningB only, and are
// then measured with Test.
package recording

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/test/freeport"
)

// Run is one recording run, a folder of testdata.
type Run string

// The runs of the set.
const (
	Tuning  Run = "tuning"
	TuningB Run = "tuning-b"
	Test    Run = "test"
)

// Runs are all runs of the set.
var Runs = []Run{Tuning, TuningB, Test}

// The files of a run.
const (
	// Labels lists the releases as judge calibrate reads them.
	Labels = "labels.csv"
	// NoTraffic lists releases without requests, for which no verdict is right.
	NoTraffic = "no-traffic.csv"
	// Faults lists for each release its fault, and how the release was made.
	Faults = "faults.csv"
)

// programs are used to load a run.
var programs = []string{"prometheus", "promtool", "zstd"}

// startTimeout is how long Prometheus may take to answer.
const startTimeout = time.Minute

// lookback is shorter than the default of 5 minutes, because the recordings do not
// mark the end of a series. A series ends two scrapes after its last sample.
const lookback = 25 * time.Second

// File returns the path of a file of a run.
func (r Run) File(name string) (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		path := filepath.Join(folder, "test", "recording", "testdata", string(r), name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		up := filepath.Dir(folder)
		if up == folder {
			return "", fmt.Errorf("no folder above the working directory has test/recording/testdata/%s/%s", r, name)
		}
		folder = up
	}
}

// Rows returns the rows of a CSV file of a run, by column.
func (r Run) Rows(t testing.TB, name string) []map[string]string {
	t.Helper()
	path, err := r.File(name)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	all, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	var list []map[string]string
	for _, line := range all[1:] {
		row := map[string]string{}
		for i, column := range all[0] {
			row[column] = line[i]
		}
		list = append(list, row)
	}
	return list
}

// Start loads a run into a Prometheus that runs until the test ends, and
// returns its URL. It skips the test if a program is not installed.
func Start(t testing.TB, r Run) string {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not installed: apt-get install prometheus zstd", p)
		}
	}
	s, err := Serve(context.Background(), r, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s.URL
}

// Server is a Prometheus with a run.
type Server struct {
	// URL is on a loopback address.
	URL string

	cmd   *exec.Cmd
	ended chan error
}

// Serve loads a run into a Prometheus whose files are in folder.
func Serve(ctx context.Context, r Run, folder string) (*Server, error) {
	data := filepath.Join(folder, "data")
	for _, name := range []string{"series.om.zst", "day-before.om.zst"} {
		if err := load(ctx, r, name, data); err != nil {
			return nil, err
		}
	}
	config := filepath.Join(folder, "prometheus.yml")
	if err := os.WriteFile(config, []byte("global: {scrape_interval: 10s}\n"), 0o600); err != nil {
		return nil, err
	}
	port, err := freeport.Find(ctx)
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	log, err := os.Create(filepath.Join(folder, "prometheus.log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	s := &Server{URL: "http://" + address, ended: make(chan error, 1)}
	s.cmd = exec.CommandContext(ctx, "prometheus", "--config.file="+config, "--storage.tsdb.path="+data, "--storage.tsdb.retention.time=100y",
		"--query.lookback-delta="+lookback.String(), "--web.listen-address="+address, "--log.level=warn")
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { s.ended <- s.cmd.Wait() }()
	if err := s.waitReady(ctx); err != nil {
		text, _ := os.ReadFile(log.Name())
		return nil, errors.Join(fmt.Errorf("start prometheus: %w: %s", err, text), s.Stop())
	}
	return s, nil
}

// Stop ends the Prometheus.
func (s *Server) Stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	if err := <-s.ended; err != nil {
		return fmt.Errorf("prometheus: %w", err)
	}
	return nil
}

// load writes a file of a run as blocks into the folder data.
func load(ctx context.Context, r Run, name, data string) error {
	packed, err := r.File(name)
	if err != nil {
		return err
	}
	plain := data + ".om"
	defer func() { _ = os.Remove(plain) }()
	for _, c := range []*exec.Cmd{
		exec.CommandContext(ctx, "zstd", "-q", "-d", "--long=27", "-f", "-o", plain, packed),
		exec.CommandContext(ctx, "promtool", "tsdb", "create-blocks-from", "openmetrics", "--quiet", plain, data),
	} {
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w: %s", c.Args, err, out)
		}
	}
	return nil
}

// waitReady waits until Prometheus reports that it is ready.
func (s *Server) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-s.ended:
			s.ended <- err
			return fmt.Errorf("it ended: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/-/ready", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			continue
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return nil
		}
	}
}
