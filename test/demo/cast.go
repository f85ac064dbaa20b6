package main

import (
	"encoding/json"
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
	return &cast{lines: json.NewEncoder(out), now: now, began: now()}
}

func (c *cast) Write(output []byte) (int, error) {
	if !c.begun {
		if err := c.lines.Encode(castHeader{Version: 2, Width: 140, Height: 40, Title: "Breakwater", IdleTimeLimit: 2}); err != nil {
			return 0, err
		}
		c.begun = true
	}
	text := strings.ReplaceAll(string(output), "\n", "\r\n")
	if err := c.lines.Encode([]any{c.now().Sub(c.began).Seconds(), "o", text}); err != nil {
		return 0, err
	}
	return len(output), nil
}
