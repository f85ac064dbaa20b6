package admission

import (
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxWarning is the maximum length of a warning in bytes, so that the API server cuts none of the four of a
// denial: it cuts those of a response to 256 characters each if all have more than 4096.
const maxWarning = 1000

// Warn returns the answer with one more warning.
func (a Answer) Warn(text string) Answer {
	a.Response.Warnings = append(a.Response.Warnings, sendable(text))
	return a
}

// sendable returns the text, truncated to maxWarning bytes and without control characters: the API server
// leaves out warnings with any.
func sendable(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	if len(text) <= maxWarning {
		return text
	}
	return strings.ToValidUTF8(text[:maxWarning-3], "") + "..."
}

// WithWarnings adds the causes of a denial as warnings. kubectl prints warnings, but the
// causes of a status only if its reason is Invalid. It is for denials whose message does
// not contain their causes.
func (a Answer) WithWarnings(causes []metav1.StatusCause) Answer {
	for _, c := range causes {
		a = a.Warn(c.Message)
	}
	return a
}
