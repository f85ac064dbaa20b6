package kubectl

import "strings"

// Table is the output of `kubectl get`.
type Table struct {
	Header []string
	Rows   []map[string]string
}

// ParseTable splits lines at the positions of the column names, so that a cell
// may be empty or contain spaces.
func ParseTable(stdout string) Table {
	lines := strings.Split(strings.TrimRight(stdout, "\n"), "\n")
	var t Table
	var starts []int
	for i := 0; i < len(lines[0]); i++ {
		if lines[0][i] != ' ' && (i == 0 || lines[0][i-1] == ' ') {
			starts = append(starts, i)
		}
	}
	cells := func(line string) []string {
		out := make([]string, len(starts))
		for i, from := range starts {
			to := len(line)
			if i+1 < len(starts) {
				to = min(starts[i+1], len(line))
			}
			if from < to {
				out[i] = strings.TrimSpace(line[from:to])
			}
		}
		return out
	}
	t.Header = cells(lines[0])
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, cell := range cells(line) {
			row[t.Header[i]] = cell
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// Column returns the cells of a column.
func (t Table) Column(name string) []string {
	out := make([]string, len(t.Rows))
	for i, row := range t.Rows {
		out[i] = row[name]
	}
	return out
}
