package calibrate

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
)

// maxReleases is the maximum number of releases in a list.
const maxReleases = 20000

// Release is one line of a list.
type Release struct {
	New, Old, At, Check string
	Bad                 bool
	// Line is the number of the line in the file.
	Line int
}

var columns = []string{"new", "old", "at", "check", "label"}

// Read reads a list of labelled releases: CSV with the header
// new,old,at,check,label in any order. Other columns are ignored.
func Read(r io.Reader) ([]Release, error) {
	rows := csv.NewReader(r)
	header, err := rows.Read()
	if err != nil {
		return nil, fmt.Errorf("read the header: %w", err)
	}
	index := map[string]int{}
	for _, name := range columns {
		i := slices.Index(header, name)
		if i < 0 {
			return nil, fmt.Errorf("the header has no column %q, want new,old,at,check,label", name)
		}
		index[name] = i
	}
	var out []Release
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		line, _ := rows.FieldPos(0)
		r := Release{New: row[index["new"]], Old: row[index["old"]], At: row[index["at"]], Check: row[index["check"]], Line: line}
		switch label := row[index["label"]]; label {
		case "good":
		case "bad":
			r.Bad = true
		default:
			return nil, fmt.Errorf("line %d: label %q, want good or bad", line, label)
		}
		out = append(out, r)
		if len(out) > maxReleases {
			return nil, fmt.Errorf("the list has more than %d releases", maxReleases)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("the list has no releases")
	}
	return out, nil
}
