package centre

import (
	"io"
	"log"
	"log/slog"
)

// NewLog returns the log of the process. It discards the logger of package log, to which
// net/http writes the first bytes of a response without a request: a provider may repeat its
// credential there.
func NewLog(to io.Writer, level slog.Level) *slog.Logger {
	log.SetOutput(io.Discard)
	return slog.New(slog.NewJSONHandler(to, &slog.HandlerOptions{Level: level}))
}
