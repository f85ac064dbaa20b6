package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// castHeader is the first line of an asciinema recording, version 2
// (https://docs.asciinema.org/manual/asciicast/v2/).
type castHeader struct {
	Version int    `json:"version"`
	Width   int    `json:"width"`
	Height  int    `json:"height"`
	Title   string `json:"title"`
	// IdleTimeLimit limits the pauses of the player, in seconds.
	IdleTimeLimit float64 `json:"idle_time_limit"`
}

// castEvent is an output of a recording.
type castEvent struct {
	// at is the time since the start of the recording, in seconds.
	at   float64
	text string
}

// cast writes what a terminal shows as an asciinema recording: one line for each output,
// with its time in seconds.
type cast struct {
	lines *json.Encoder
	now   func() time.Time
	began time.Time
	// begun is true after the header is written.
	begun bool
}

func newCast(out io.Writer, now func() time.Time) *cast {
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	return &cast{lines: lines, now: now, began: now()}
}

func (c *cast) Write(output []byte) (int, error) {
	if !c.begun {
		if err := c.lines.Encode(castHeader{Version: 2, Width: 140, Height: 32, Title: "Breakwater", IdleTimeLimit: 3}); err != nil {
			return 0, err
		}
		c.begun = true
	}
	text := strings.ReplaceAll(string(output), "\n", "\r\n")
	at := c.now().Sub(c.began).Round(time.Millisecond).Seconds()
	if err := c.lines.Encode([]any{at, "o", text}); err != nil {
		return 0, err
	}
	return len(output), nil
}

// readCast reads a recording.
func readCast(in io.Reader) (header castHeader, events []castEvent, err error) {
	lines := json.NewDecoder(in)
	if err := lines.Decode(&header); err != nil {
		return header, nil, fmt.Errorf("read the header: %w", err)
	}
	for {
		var line [3]any
		if err := lines.Decode(&line); errors.Is(err, io.EOF) {
			return header, events, nil
		} else if err != nil {
			return header, nil, fmt.Errorf("read event %d: %w", len(events)+1, err)
		}
		at, isNumber := line[0].(float64)
		text, isText := line[2].(string)
		if !isNumber || line[1] != "o" || !isText {
			return header, nil, fmt.Errorf("event %d is not an output: %v", len(events)+1, line)
		}
		events = append(events, castEvent{at, text})
	}
}
