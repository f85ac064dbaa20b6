// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// compress writes the output of write to a file, compressed by zstd.
func compress(ctx context.Context, path string, write func(io.Writer) error) error {
	cmd := exec.CommandContext(ctx, "zstd", "-q", "-12", "--long=27", "-f", "-o", path)
	input, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	buffer := bufio.NewWriterSize(input, 1<<20)
	written := write(buffer)
	if written == nil {
		written = buffer.Flush()
	}
	_ = input.Close()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("zstd: %w", err)
	}
	return written
}

// writeOpenMetrics writes samples as OpenMetrics, each with its time plus shift
// seconds. Series are sorted, so that those with the same values are neighbours.
func writeOpenMetrics(w io.Writer, list []series, shift float64) error {
	lines := map[string]series{}
	for _, s := range list {
		lines[seriesName(s.Metric)] = s
	}
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		for _, v := range lines[name].Values {
			seconds, ok := v[0].(float64)
			if !ok {
				return fmt.Errorf("series %s: time %v is not a number", name, v[0])
			}
			if _, err := fmt.Fprintf(w, "%s %v %s\n", name, v[1], strconv.FormatFloat(seconds+shift, 'f', 3, 64)); err != nil {
				return err
			}
		}
	}
	_, err := io.WriteString(w, "# EOF\n")
	return err
}

func seriesName(metric map[string]string) string {
	var labels []string
	for _, key := range slices.Sorted(maps.Keys(metric)) {
		if key != "__name__" {
			labels = append(labels, fmt.Sprintf("%s=%q", key, metric[key]))
		}
	}
	return metric["__name__"] + "{" + strings.Join(labels, ",") + "}"
}
