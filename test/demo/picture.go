package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// Sizes of the picture, in pixels.
const (
	lineHeight = 18
	// charWidth is the width of a character of a monospace font of 14 pixels.
	charWidth = 8.43
	margin    = 12
	// hold is how long the picture shows the end before it begins again, in seconds.
	hold = 6
	// still is the moment that a reader without animations sees, in seconds.
	still = 40
)

// picture writes a recording as an animated SVG: all its lines in a column, which scrolls behind
// a window of the size of the terminal. The recording may only write lines and bold text.
func picture(out io.Writer, header castHeader, events []castEvent) error {
	lines, frames := layout(header, events)
	last := frames[len(frames)-1]
	duration := last.at + hold
	width, height := int(float64(header.Width)*charWidth)+2*margin, header.Height*lineHeight+2*margin

	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="ui-monospace, Menlo, 'DejaVu Sans Mono', monospace" font-size="14" fill="#d8dee9">`+"\n",
		width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n<style>\n", header.Title)
	fmt.Fprintf(&b, "text { white-space: pre; }\n.b { font-weight: bold; fill: #fff; }\n")
	fmt.Fprintf(&b, "#lines { animation: scroll %.2fs step-end infinite; }\n@keyframes scroll {\n", duration)
	for _, f := range frames {
		fmt.Fprintf(&b, "%.3f%% { transform: translateY(%dpx); }\n", 100*f.at/duration, (header.Height-f.lines)*lineHeight)
	}
	fmt.Fprintf(&b, "}\n@media (prefers-reduced-motion: reduce) { #lines { animation-play-state: paused; animation-delay: -%ds; } }\n", still)
	b.WriteString("</style>\n" + `<rect width="100%" height="100%" rx="8" fill="#1d2330"/>` + "\n")
	fmt.Fprintf(&b, `<svg y="%d" width="%d" height="%d">`+"\n"+`<g id="lines">`+"\n", margin, width, header.Height*lineHeight)
	for i, l := range lines {
		if l.text == "" {
			continue
		}
		class := ""
		if l.bold {
			class = ` class="b"`
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d"%s>`, margin, i*lineHeight+14, class)
		if err := xml.EscapeText(&b, []byte(l.text)); err != nil {
			return err
		}
		b.WriteString("</text>\n")
	}
	b.WriteString("</g>\n</svg>\n</svg>\n")
	_, err := io.WriteString(out, b.String())
	return err
}

// line is a line of the terminal. The demo prints only whole lines in bold.
type line struct {
	text string
	bold bool
}

// frame says how many lines the terminal has from a time on, in seconds.
type frame struct {
	at    float64
	lines int
}

// layout returns the lines of a recording, and when they appear, with pauses limited as the header says.
func layout(header castHeader, events []castEvent) (lines []line, frames []frame) {
	frames = []frame{{}}
	var text string
	var before, at float64
	for _, e := range events {
		at += min(e.at-before, header.IdleTimeLimit)
		before = e.at
		text += e.text
		lines = terminalLines(text, header.Width)
		if last := &frames[len(frames)-1]; at-last.at < 0.01 {
			last.lines = len(lines)
		} else {
			frames = append(frames, frame{at, len(lines)})
		}
	}
	return lines, frames
}

// terminalLines returns what a terminal of a width shows of a text.
func terminalLines(text string, width int) (lines []line) {
	for l := range strings.SplitSeq(strings.TrimSuffix(text, "\r\n"), "\r\n") {
		plain := strings.NewReplacer(boldOn, "", boldOff, "").Replace(l)
		bold := plain != l
		rest := []rune(plain)
		for ; len(rest) > width; rest = rest[width:] {
			lines = append(lines, line{string(rest[:width]), bold})
		}
		lines = append(lines, line{string(rest), bold})
	}
	return lines
}
